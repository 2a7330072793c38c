// SPDX-License-Identifier: MIT
#pragma once

#include <chime/time.hpp>

#include <chrono>
#include <optional>

#include <time.h>

namespace chime::inline v0::base {

/// The monotonic time, which does not move when the wall clock does. Any thread.
[[nodiscard]] time_point now() noexcept;

/// `time` as the kernel takes an absolute CLOCK_MONOTONIC time. What lies before the clock's epoch becomes the epoch,
/// because the kernel refuses negative times; both are in the past.
[[nodiscard]] timespec to_timespec(time_point time) noexcept;

/// Asks the kernel to wake the calling thread at most `slack` after its deadlines; false: the kernel refused.
///
/// The kernel's own default is 50 µs, half of what a sleeping thread is usually late. Zero means that default again;
/// a negative slack is refused.
bool set_timer_slack(std::chrono::nanoseconds slack) noexcept;

/// The calling thread's timer slack, or nothing if the kernel does not tell.
[[nodiscard]] std::optional<std::chrono::nanoseconds> timer_slack() noexcept;

}  // namespace chime::inline v0::base
