// SPDX-License-Identifier: MIT
#pragma once

#include "base/atomic.hpp"

#include <chime/stats.hpp>
#include <chime/wheel.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace chime::inline v0::detail {

/// A number that one thread counts and any thread reads.
class counter {
 public:
    // Relaxed: it publishes nothing else, and there is one writer, so no read-modify-write is needed.
    void add(std::uint64_t amount = 1) noexcept { set(get() + amount); }
    void subtract(std::uint64_t amount = 1) noexcept { set(get() - amount); }
    void set(std::uint64_t value) noexcept { value_.store(value, base::memory_order_relaxed); }
    void raise_to(std::uint64_t value) noexcept {
        if (value > get()) set(value);
    }
    [[nodiscard]] std::uint64_t get() const noexcept { return value_.load(base::memory_order_relaxed); }

    // For who has to know what was done before it was counted: acquire pairs with release.
    void add_and_publish() noexcept { value_.store(get() + 1, base::memory_order_release); }
    [[nodiscard]] std::uint64_t get_acquired() const noexcept { return value_.load(base::memory_order_acquire); }

 private:
    base::atomic<std::uint64_t> value_{0};
};

/// What a worker counts. The owner writes; anybody reads.
struct worker_counters {
    counter armed, fired, cancelled, postponed, pending;
    counter tasks, suspensions, waiting, destroyed;
    std::array<counter, 4> resumed_by;  ///< By wake_cause.
    counter resumed_inline, resumed_queued;
    counter tickets, stale_tickets, stale_dropped, stale_vacant, stale_cancelled, compactions, scrubbed, cascaded;
    counter turns, parks, idle_wakeups, commands;
    counter stolen, adopted, migrated;
    counter longest_callback_ns, longest_turn_ns, latest_ns;
    std::array<counter, lateness_histogram::bucket_count> lateness;

    /// What was due centuries ago counts as that; the last bucket is for what comes too early, which nothing does [I1].
    void add_lateness(ordinal now, ordinal deadline) noexcept {
        constexpr std::uint64_t most_ns = (std::uint64_t{1} << 62U) - 1;
        if (now < deadline) [[unlikely]]
            return lateness.back().add();
        const std::uint64_t late_ns = std::min(now - deadline, most_ns);
        lateness[static_cast<std::size_t>(std::bit_width(late_ns))].add();
        latest_ns.raise_to(late_ns);
    }
};

}  // namespace chime::inline v0::detail
