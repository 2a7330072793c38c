// SPDX-License-Identifier: MIT
#pragma once

#include <chime/detail/round_up.hpp>

#include <chrono>
#include <concepts>
#include <limits>

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

namespace detail {

template <class T>
inline constexpr bool is_time_point = false;
template <class Clock, class Duration>
inline constexpr bool is_time_point<std::chrono::time_point<Clock, Duration>> = true;

/// A number where a delay or a deadline belongs: the compiler asks for more.
template <class Number>
concept without_unit = std::is_arithmetic_v<Number>;

/// A deadline as users write it: a time_point of chime's clock, whatever it counts in. Rounded up like a delay, as exactly
/// as its representation can tell, and a day too far away is `never`.
class any_deadline {
 public:
    constexpr any_deadline() noexcept = default;
    constexpr any_deadline(time_point exact) noexcept : time_(exact) {}

    /// What says itself that it is a time_point: an atomic, a reference_wrapper, a type of the user's.
    template <class Other>
    requires(std::convertible_to<const Other&, time_point> &&
             !is_time_point<Other>) constexpr any_deadline(const Other& other)
        : time_(static_cast<time_point>(other)) {}

    /// Throws std::system_error (std::errc::invalid_argument) for NaN; an integer representation never throws.
    template <class Rep, class Period>
    constexpr any_deadline(const std::chrono::time_point<clock, std::chrono::duration<Rep, Period>>& other) noexcept(
        !rounding::is_floating<Rep>)
        : time_(round_up(other.time_since_epoch())) {
        static_assert(!rounding::is_floating<Rep> || std::numeric_limits<Rep>::digits >= 53,
                      "a time in so few digits is off by milliseconds: give the time that is left as a delay, to "
                      "after(), postpone(), sleep_for() or run_for()");
    }

    /// A time of another clock: the compiler says what to write.
    template <class Other, class Duration>
    requires(!std::same_as<Other, clock>) any_deadline(const std::chrono::time_point<Other, Duration>&) {
        static_assert(
            std::same_as<Other, clock>,
            "a deadline is a time of chime::clock, which is std::chrono::steady_clock; for one of another clock "
            "give the time that is left, after(deadline - OtherClock::now(), function) or sleep_for(): it "
            "does not move when that clock is set");
    }

    /// A number: the compiler says what to write.
    template <without_unit Number>
    any_deadline(Number) {
        static_assert(sizeof(Number) == 0,
                      "a deadline is a time, and this is a number: write at(chime::clock::now() + 5s, function), or "
                      "after(5s, function)");
    }

    /// A delay: the compiler says what to write.
    template <class Rep, class Period>
    any_deadline(const std::chrono::duration<Rep, Period>&) {
        static_assert(
            sizeof(Rep) == 0,
            "a deadline is a time, and this is a delay: write after(), postpone(), sleep_for() or run_for() for it");
    }

    [[nodiscard]] constexpr time_point time() const noexcept { return time_; }

 private:
    time_point time_{};
};

template <without_unit Number>
constexpr void ask_for_unit() {
    static_assert(sizeof(Number) == 0,
                  "a delay has a unit, and this is a number: write 5s or 5ms, after using namespace "
                  "std::chrono_literals, or std::chrono::milliseconds{number}");
}

/// A delay as users write it, where it is kept: any std::chrono::duration, rounded up.
class any_delay : public std::chrono::nanoseconds {
 public:
    constexpr any_delay() noexcept : std::chrono::nanoseconds{0} {}

    /// Throws std::system_error (std::errc::invalid_argument) for NaN; an integer representation never throws.
    template <class Rep, class Period>
    constexpr any_delay(const std::chrono::duration<Rep, Period>& delay) noexcept(!rounding::is_floating<Rep>)
        : std::chrono::nanoseconds(round_up(delay)) {}

    /// A number: the compiler says what to write.
    template <without_unit Number>
    constexpr any_delay(Number) {
        ask_for_unit<Number>();
    }
};

/// For what was given a time where a delay belongs.
template <class Clock>
constexpr void ask_for_delay() {
    static_assert(
        sizeof(Clock) == 0,
        "a delay is a duration, and this is a time: write at(), postpone_until(), sleep_until(), run_until() or advance_to() for it");
}

}  // namespace detail

}  // namespace v0
}  // namespace chime
