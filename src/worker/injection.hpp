// SPDX-License-Identifier: MIT
#pragma once

#include "base/atomic.hpp"
#include "base/mutex.hpp"
#include "worker/units.hpp"

#include <array>
#include <cstddef>

namespace chime::inline v0::detail {

/// Ready tasks that are nobody's: what threads outside have spawned or woken, and what did not fit into a ring. First in,
/// first out, linked through the slots. Any thread; the lock is held for a few steps.
class injection {
 public:
    void push(const units& all, unit_index added) noexcept {
        const base::lock_guard lock(mutex_);
        queue_.push(all, added);
        // Seq_cst: comes before the look at who is parked, in crew::call_somebody(); see is_empty().
        size_.store(queue_.size(), base::memory_order_seq_cst);
    }

    /// Up to `most` of them into `taken`; answers how many.
    template <std::size_t Size>
    [[nodiscard]] std::size_t take(const units& all, std::array<unit_index, Size>& taken, std::size_t most) noexcept {
        if (size_.load(base::memory_order_relaxed) == 0) return 0;
        const base::lock_guard lock(mutex_);
        std::size_t count = 0;
        while (count < most && count < Size && !queue_.is_empty()) taken[count++] = queue_.pop(all);
        size_.store(queue_.size(), base::memory_order_seq_cst);
        return count;
    }

    /// Seq_cst: comes after publishing, for who goes to sleep.
    [[nodiscard]] bool is_empty() const noexcept { return size_.load(base::memory_order_seq_cst) == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return size_.load(base::memory_order_relaxed); }

 private:
    base::mutex mutex_;
    unit_queue queue_ CHIME_GUARDED_BY(mutex_);
    base::atomic<std::size_t> size_{0};
};

}  // namespace chime::inline v0::detail
