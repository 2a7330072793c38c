// SPDX-License-Identifier: MIT
//
// Arithmetic on time points that no test lets overflow: all of them saturate.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace chime::test {

using time_point = std::chrono::steady_clock::time_point;
using std::chrono::nanoseconds;

inline constexpr time_point never = time_point::max();
inline constexpr std::int64_t year_ns = 31'556'952'000'000'000;

/// The time point so many nanoseconds after (or, if negative, before) the clock's epoch.
constexpr time_point at_ns(std::int64_t since_epoch_ns) {
    return time_point(nanoseconds(since_epoch_ns));
}

constexpr std::int64_t to_ns(time_point when) {
    return nanoseconds(when.time_since_epoch()).count();
}

/// `when + delay_ns`, or the end of time on that side.
constexpr time_point later(time_point when, std::int64_t delay_ns) {
    std::int64_t sum_ns = 0;
    if (__builtin_add_overflow(to_ns(when), delay_ns, &sum_ns)) {
        return delay_ns > 0 ? time_point::max() : time_point::min();
    }
    return at_ns(sum_ns);
}

/// 2^exponent nanoseconds, saturating: no level of a wheel can span more than all of time.
constexpr std::int64_t power_ns(unsigned exponent) {
    return exponent < 63 ? std::int64_t{1} << exponent : std::numeric_limits<std::int64_t>::max();
}

}  // namespace chime::test
