// SPDX-License-Identifier: MIT
#include "base/clock.hpp"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace chime::inline v0::base {

// The kernel's waits below are told CLOCK_MONOTONIC times; libstdc++ and libc++ read the same clock.
time_point now() noexcept {
    return clock::now();
}

timespec to_timespec(time_point time) noexcept {
    const std::chrono::nanoseconds since_epoch = time.time_since_epoch();
    if (since_epoch.count() <= 0) return {0, 0};
    constexpr std::chrono::nanoseconds::rep second_ns = 1'000'000'000;
    return {static_cast<time_t>(since_epoch.count() / second_ns), static_cast<long>(since_epoch.count() % second_ns)};
}

bool set_timer_slack(std::chrono::nanoseconds slack) noexcept {
    if (slack.count() < 0) return false;
    return ::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack.count()), 0UL, 0UL, 0UL) == 0;
}

std::optional<std::chrono::nanoseconds> timer_slack() noexcept {
    // Not ::prctl, which answers with an int: more than two seconds would not fit.
    const long slack_ns = ::syscall(SYS_prctl, PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL);
    if (slack_ns < 0) return std::nullopt;
    return std::chrono::nanoseconds{slack_ns};
}

}  // namespace chime::inline v0::base
