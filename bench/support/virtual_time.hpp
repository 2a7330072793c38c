// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>

namespace chime_bench {

/// While an instance lives, time stands still for the whole process and moves only through advance().
///
/// Every contender then sees the same deadlines come due at the same point of its work, however fast it or the
/// machine is, and ten seconds of timers run out in milliseconds. It works because the executable defines
/// clock_gettime() and the timerfd calls itself, and the dynamic linker makes libstdc++, libuv, libevent and libev
/// use those. A virtual read still performs the real one and throws its answer away: a contender that reads the
/// clock for every timer pays what that costs.
///
/// At most one instance at a time; everything that reads the clock must have been created after it and be gone
/// before it. Main thread only.
class virtual_time {
 public:
    virtual_time() noexcept;
    ~virtual_time();
    virtual_time(const virtual_time&) = delete;
    virtual_time& operator=(const virtual_time&) = delete;

    /// Moves the clock, and makes the descriptor of an expired timerfd readable.
    void advance(std::chrono::nanoseconds step) noexcept;

    /// What std::chrono::steady_clock gives now, without the cost of asking.
    [[nodiscard]] std::chrono::steady_clock::time_point now() const noexcept;
};

/// How long this thread has run on a processor, in real time also while time is virtual.
///
/// It is what runs are timed with: they are single-threaded and never wait, so it is their duration without the
/// moments at which other programs had the processor.
[[nodiscard]] std::int64_t processor_time_ns() noexcept;

}  // namespace chime_bench
