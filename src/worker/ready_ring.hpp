// SPDX-License-Identifier: MIT
#pragma once

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "timer/unit_pool.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace chime::inline v0::detail {

/// Tasks that are ready to run, first in, first out: the owner adds them, and anybody takes them.
///
/// Two counters that only grow: what is between them is there. The tail is the owner's. Whoever moves the head forward by
/// compare-and-swap has taken what it moved over; he read it before, and the owner writes over it only after the head
/// has passed (models/steal.pml).
class ready_ring {
 public:
    static constexpr std::uint32_t capacity = 256;

    /// False: it is full. The owner.
    [[nodiscard]] bool push(unit_index added) noexcept {
        const std::uint32_t tail = tail_.load(base::memory_order_relaxed);
        // Acquire: pairs with the release of whoever took what was in this place [steal: ring is full].
        if (tail - head_.load(base::memory_order_acquire) == capacity) return false;
        entries_[tail % capacity].store(added, base::memory_order_relaxed);
        // Seq_cst: comes before the look at who is parked, in crew::call_somebody(); pairs with the look at the rings after
        // publishing. It is a release too, for whoever takes it [steal: push].
        tail_.store(tail + 1, base::memory_order_seq_cst);
        return true;
    }

    /// The first one; no_unit: there is none. Any thread.
    [[nodiscard]] unit_index pop() noexcept {
        // Acquire, also if the step below fails: pairs with the release of who took the one before, and had seen that there is
        // more; so the tail is not older than the head. No two heads are the same, so who succeeds has acquired it.
        std::uint32_t head = head_.load(base::memory_order_acquire);
        for (;;) {
            if (tail_.load(base::memory_order_acquire) == head) return no_unit;
            const unit_index first = entries_[head % capacity].load(base::memory_order_relaxed);
            // Release: pairs with the acquire in push(); we have read the place before it is used again [steal: pop].
            if (head_.compare_exchange_weak(head, head + 1, base::memory_order_release, base::memory_order_acquire)) {
                return first;
            }
        }
    }

    /// The first half, rounded up, into `taken`; answers how many. Any thread.
    [[nodiscard]] std::size_t take_half(std::array<unit_index, capacity / 2>& taken) noexcept {
        // Relaxed, unlike in pop(): if the tail is older than the head, there seems to be more than there is room for.
        std::uint32_t head = head_.load(base::memory_order_relaxed);
        for (;;) {
            // Acquire: pairs with the release in push().
            const std::uint32_t there = tail_.load(base::memory_order_acquire) - head;
            if (there == 0) return 0;
            if (there > capacity) {  // One of the two was read too long ago [steal: stale head].
                head = head_.load(base::memory_order_relaxed);
                continue;
            }
            const std::uint32_t half = there - there / 2;
            // Before the head has passed, or the owner may write over it [steal: copy].
            for (std::uint32_t position = 0; position < half; ++position) {
                taken[position] = entries_[(head + position) % capacity].load(base::memory_order_relaxed);
            }
            // Release: as in pop() [steal: take half].
            if (head_.compare_exchange_weak(head, head + half, base::memory_order_release)) return half;
        }
    }

    /// How many were ever taken. Any thread. Relaxed: who asks only wants to know whether it changes.
    [[nodiscard]] std::uint32_t taken() const noexcept { return head_.load(base::memory_order_relaxed); }

    /// Any thread; for anybody but the owner it is a guess.
    [[nodiscard]] std::size_t size() const noexcept {
        // Seq_cst: see push(). The head may be relaxed: an old one makes it more than there is, but not more than there is
        // room for, because the owner has read it before it stored the tail.
        const std::uint32_t tail = tail_.load(base::memory_order_seq_cst);
        const std::uint32_t there = tail - head_.load(base::memory_order_relaxed);
        return there > capacity ? 0 : there;
    }
    [[nodiscard]] bool is_empty() const noexcept { return size() == 0; }

 private:
    alignas(base::cache_line_bytes) base::atomic<std::uint32_t> head_{0};
    alignas(base::cache_line_bytes) base::atomic<std::uint32_t> tail_{0};
    std::array<base::atomic<unit_index>, capacity> entries_{};
};

}  // namespace chime::inline v0::detail
