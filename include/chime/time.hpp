// SPDX-License-Identifier: MIT
#pragma once

#include <chime/detail/round_up.hpp>

#include <chrono>

namespace chime {
inline namespace v0 {

/// Delays count on the monotonic clock: they do not move when the wall clock does.
using clock = std::chrono::steady_clock;
using duration = clock::duration;
using time_point = clock::time_point;

/// A deadline that does not come.
inline constexpr time_point never = time_point::max();

/// Any std::chrono::duration in units of chime's clock: the smallest one that is not shorter.
///
/// What is too long becomes duration::max(), what is too far below zero duration::min(); infinities are no exception.
/// Nothing overflows and nothing is lost to floating point on the way, so 0.1 s as a double, which is a little more than
/// a tenth, becomes 100'000'001 ns. The representation is any integer or floating-point type.
///
/// Throws std::system_error (std::errc::invalid_argument) for NaN; an integer representation never throws.
template <class Rep, class Period>
[[nodiscard]] constexpr duration
round_up(const std::chrono::duration<Rep, Period>& delay) noexcept(!detail::rounding::is_floating<Rep>) {
    return duration{detail::rounding::round_up<Rep, Period, duration::period>(delay.count())};
}

/// The deadline of something that is asked for at `now` and due `delay` later.
///
/// Zero or less is due now. What lies beyond the end of time, or is as long as a duration can be, is `never`.
///
/// Throws std::system_error (std::errc::invalid_argument) for NaN; an integer representation never throws.
template <class Rep, class Period>
[[nodiscard]] constexpr time_point
deadline_after(time_point now,
               const std::chrono::duration<Rep, Period>& delay) noexcept(!detail::rounding::is_floating<Rep>) {
    const duration wait = round_up(delay);
    if (wait <= duration::zero()) return now;
    if (wait == duration::max() || now >= never - wait) return never;
    return now + wait;
}

}  // namespace v0
}  // namespace chime
