// SPDX-License-Identifier: MIT
#pragma once

#include "base/atomic.hpp"
#include "base/futex.hpp"
#include "base/thread.hpp"
#include "base/thread_number.hpp"
#include "worker/crew.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

namespace chime::inline v0::detail {

/// Looks after the workers of a crew while any of them is awake: who is stuck in user code, what is to be told to whoever
/// exports numbers, and what time it is, for those who need not know exactly. Silent while all of them sleep. Nothing
/// depends on it.
class metronome {
 public:
    struct report {
        std::uint32_t seat = 0;
        std::chrono::nanoseconds since{};
        std::chrono::nanoseconds overdue{};
        std::size_t overdue_timers = 0;
    };

    struct settings {
        std::chrono::nanoseconds period{};
        std::chrono::nanoseconds stuck_after{};
        std::function<void(const report&)> on_stuck{};
        std::function<void()> on_beat{};
    };

    metronome(crew& watched, settings wanted);
    metronome(const metronome&) = delete;
    metronome& operator=(const metronome&) = delete;

    /// A thread of its own drives it from now on. Throws std::system_error.
    void start();
    void stop() noexcept;

    /// One look, at this time. The thread, or whoever drives it in its place.
    void beat(time_point now);

    /// A worker is awake again: it may have to go on. Any thread.
    void nudge() noexcept {
        // Seq_cst: the worker counts as awake before; pairs with the look at who is parked in run().
        if (is_silent_.load(base::memory_order_seq_cst)) wake();
    }

    [[nodiscard]] bool is_this_thread() const noexcept {
        return running_on_.load(base::memory_order_relaxed) == base::this_thread_mark();
    }
    [[nodiscard]] std::uint64_t beats() const noexcept { return beats_.load(base::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t stuck_reports() const noexcept { return reports_.load(base::memory_order_relaxed); }

 private:
    /// What was last seen of a worker.
    struct sight {
        std::uint64_t progress = 0;
        time_point since{};
        std::chrono::nanoseconds next_report{};  ///< So long after that it is told, once more if it was told before.
        bool is_news = false;                    ///< Not told yet.
    };

    void run() noexcept;
    void report_stuck(time_point now, ordinal shown);
    void wake() noexcept;
    [[nodiscard]] bool all_sleep() const noexcept;

    crew& watched_;
    const settings settings_;
    std::vector<sight> sights_;
    std::vector<overdue_timers> overdue_;
    base::atomic<bool> is_silent_{false};
    base::atomic<bool> is_stopped_{false};
    base::futex_word bell_{0};
    base::atomic<std::uint64_t> beats_{0};
    base::atomic<std::uint64_t> reports_{0};
    base::atomic<const void*> running_on_{nullptr};
    base::thread thread_;
};

}  // namespace chime::inline v0::detail
