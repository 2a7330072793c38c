// SPDX-License-Identifier: MIT
#pragma once

#include "base/atomic.hpp"

#include <chime/time.hpp>

#include <cstdint>

namespace chime::inline v0::base {

/// What a thread sleeps on. It must stay where it is and alive until nobody wakes it any more.
using futex_word = atomic<std::uint32_t>;
static_assert(sizeof(futex_word) == 4 && futex_word::is_always_lock_free, "the kernel reads the word as an integer");

enum class futex_result {
    woken,      ///< By a wake-up, by a signal, or for no reason: look at the word again.
    changed,    ///< The word was not what was expected; nobody slept.
    timed_out,  ///< The deadline has passed.
};

/// Sleeps while `word` holds `expected`, at most until `deadline` (`never`: no limit).
///
/// The comparison and falling asleep are one step against futex_wake: a waker that changes the word first and wakes
/// afterwards is never missed. `timed_out` is never answered before the deadline. A deadline that has passed does not
/// sleep. Any thread of this process.
[[nodiscard]] futex_result futex_wait(const futex_word& word, std::uint32_t expected,
                                      time_point deadline = never) noexcept;

/// Wakes one thread that sleeps on `word`; true: there was one. Any thread of this process.
bool futex_wake_one(const futex_word& word) noexcept;

/// Wakes all threads that sleep on `word`; answers how many there were. Any thread of this process.
std::uint32_t futex_wake_all(const futex_word& word) noexcept;

}  // namespace chime::inline v0::base
