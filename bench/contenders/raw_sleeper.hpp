// SPDX-License-Identifier: MIT
#pragma once

#include "support/contender.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/prctl.h>
#include <time.h>

namespace chime_bench {

/// No timer queue at all: a thread that knows all deadlines beforehand and sleeps from one to the next, with the smallest
/// timer slack that the kernel has. What nobody can be better than.
class raw_sleeper {
 public:
    static constexpr std::string_view name = "raw.sleeper";
    static constexpr std::string_view clock_reads = "per turn";
    static std::string version() { return "clock_nanosleep"; }

    raw_sleeper(std::size_t count, firing_log& log) : log_(log), slack_(prctl(PR_GET_TIMERSLACK)) {
        deadlines_.reserve(count);
        prctl(PR_SET_TIMERSLACK, 1UL);
    }
    raw_sleeper(const raw_sleeper&) = delete;
    raw_sleeper& operator=(const raw_sleeper&) = delete;
    ~raw_sleeper() { prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack_)); }

    void arm(slot_index slot, std::chrono::nanoseconds delay) {
        deadlines_.emplace_back((std::chrono::steady_clock::now() + delay).time_since_epoch().count(), slot);
    }

    void wait() {
        if (next_ == 0) std::sort(deadlines_.begin(), deadlines_.end());
        const auto [deadline_ns, slot] = deadlines_[next_++];
        // To sleep until a moment that has passed costs as much as to sleep.
        const bool is_due = std::chrono::steady_clock::now().time_since_epoch().count() >= deadline_ns;
        const timespec until{.tv_sec = deadline_ns / 1'000'000'000, .tv_nsec = deadline_ns % 1'000'000'000};
        while (!is_due && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {}
        log_.note(slot);
    }

 private:
    firing_log& log_;
    int slack_;
    std::size_t next_ = 0;
    std::vector<std::pair<std::int64_t, slot_index>> deadlines_;
};

}  // namespace chime_bench
