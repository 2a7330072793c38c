// SPDX-License-Identifier: MIT
#pragma once

#include <chime/time.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace chime::soak {

/// What was broken, and how often things were done. Any thread.
class promises {
 public:
    void broken(std::string_view sentence) {
        const std::lock_guard lock(mutex_);
        count_.fetch_add(1);
        try {
            if (sentences_.size() < 20) sentences_.emplace_back(sentence);
        } catch (const std::bad_alloc&) {
            return;  // It counts all the same.
        }
    }
    void require(bool holds, std::string_view sentence) {
        if (!holds) broken(sentence);
    }
    [[nodiscard]] std::uint64_t count() const noexcept { return count_.load(); }
    [[nodiscard]] std::vector<std::string> sentences() const {
        const std::lock_guard lock(mutex_);
        if (sentences_.empty() && count() != 0) return {"something, when there was no memory to say what"};
        return sentences_;
    }

    std::atomic<std::uint64_t> operations{0};
    std::atomic<std::uint64_t> refused{0};  ///< For want of memory.
    std::atomic<std::uint64_t> early{0};
    std::atomic<std::int64_t> latest_ns{0};  ///< How late the latest one was.

 private:
    mutable std::mutex mutex_;
    std::atomic<std::uint64_t> count_{0};
    std::vector<std::string> sentences_;
};

/// Where a timer is written down while it is pending: fired and cancelled at once, or twice, is noticed by whoever comes second.
///
/// The word holds a number that is never used again, and whether that timer has ended; any thread may end it. Begun,
/// and given other deadlines, by the thread that owns it.
class tracked_timer {
 public:
    /// The number of the new timer, which is armed with that home.
    std::uint64_t begin(std::size_t home, time_point deadline) noexcept {
        const std::uint64_t number = (word_.load() >> 1U) + 1;
        home_ = home;
        allow_from(deadline);
        word_.store(number << 1U | 1U);
        return number;
    }
    /// It must not fire before.
    void allow_from(time_point deadline) noexcept { deadline_ns_.store(deadline.time_since_epoch().count()); }
    [[nodiscard]] time_point allowed_from() const noexcept { return time_point{duration{deadline_ns_.load()}}; }

    [[nodiscard]] std::size_t home() const noexcept { return home_.load(); }

    /// False: it has ended before.
    bool end(std::uint64_t number) noexcept {
        std::uint64_t pending = number << 1U | 1U;
        return word_.compare_exchange_strong(pending, number << 1U);
    }
    [[nodiscard]] bool is_pending() const noexcept { return (word_.load() & 1U) != 0; }

 private:
    std::atomic<std::uint64_t> word_{0};
    std::atomic<std::size_t> home_{0};
    std::atomic<duration::rep> deadline_ns_{0};
};

}  // namespace chime::soak
