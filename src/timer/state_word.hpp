// SPDX-License-Identifier: MIT
#pragma once

#include "base/atomic.hpp"

#include <cstdint>

namespace chime::inline v0::detail {

/// The one word that decides about a record or a task slot: which life it is in, in what state, and who holds on to it.
/// Every transition is one compare-and-swap of the whole word, so whoever wins it knows all of it.
using state_word = std::uint64_t;

inline constexpr unsigned life_shift = 10;
inline constexpr unsigned life_bits = 64 - life_shift;
inline constexpr state_word one_life = state_word{1} << life_shift;
inline constexpr state_word flag_mask = one_life - 1;
inline constexpr state_word state_mask = 7;

/// It is in an inbox, or about to be pushed there by whoever set this. Cleared by the owner's drain alone, and until then
/// the record or slot is not used again [I11].
inline constexpr state_word linked_flag = 1U << 3U;
/// Somebody who is not the owner is writing its deadline. It may be cancelled meanwhile, but not fired or used again.
inline constexpr state_word locked_flag = 1U << 4U;
/// Somebody who is not the owner has written its deadline. Cleared by the owner alone, before it looks at the deadline.
inline constexpr state_word moved_flag = 1U << 5U;

[[nodiscard]] constexpr state_word life_of(state_word value) noexcept {
    return value >> life_shift;
}

/// What a timer's word says, in its low three bits.
enum class timer_state : std::uint8_t {
    vacant,     ///< Free, or being prepared by whoever took it.
    preparing,  ///< Its token is being watched already; it is not armed yet.
    armed,
    running,  ///< Its callback is running.
    ending,   ///< It was cancelled or has run, and its closure is being destroyed.
    posted,   ///< Not a timer but a function to run soon: it cannot be cancelled.
};
/// While preparing: it was cancelled. While running: this is its last run.
inline constexpr state_word last_run_flag = 1U << 6U;
/// Somebody waits for the end of this run.
inline constexpr state_word waited_flag = 1U << 7U;
/// It has a period or a token: see callback::extra.
inline constexpr state_word extra_flag = 1U << 8U;

/// Its closure has something to destroy. So the word of a plain timer that is armed has no flags at all, and whoever finds it
/// so can end it in one step.
inline constexpr state_word owning_flag = 1U << 9U;

[[nodiscard]] constexpr timer_state state_of(state_word value) noexcept {
    return static_cast<timer_state>(value & state_mask);
}

[[nodiscard]] constexpr state_word with_state(state_word value, timer_state state) noexcept {
    return (value & ~state_mask) | static_cast<state_word>(state);
}

/// What a task's word says, in its low three bits.
enum class task_phase : std::uint8_t {
    vacant,
    executing,
    suspending,   ///< What will wake it was started, but it has not let go of its frame yet.
    idle,         ///< Waiting to be woken.
    woken_early,  ///< Woken while suspending: it goes on without suspending.
    scheduled,    ///< Woken, and on its way to be resumed.
};

/// Who has woken it.
enum class wake_cause : std::uint8_t { timer, cancelled, completion, shutdown };

inline constexpr unsigned cause_shift = 6;
inline constexpr state_word cause_mask = state_word{3} << cause_shift;
/// Its cancellation was asked for; holds until it ends.
inline constexpr state_word doomed_flag = 1U << 8U;
/// It was told that everything stops; if it waits once more, it is destroyed where it stands.
inline constexpr state_word told_flag = 1U << 9U;

[[nodiscard]] constexpr task_phase phase_of(state_word value) noexcept {
    return static_cast<task_phase>(value & state_mask);
}

[[nodiscard]] constexpr wake_cause cause_of(state_word value) noexcept {
    return static_cast<wake_cause>((value & cause_mask) >> cause_shift);
}

[[nodiscard]] constexpr state_word with_phase(state_word value, task_phase phase) noexcept {
    return (value & ~state_mask) | static_cast<state_word>(phase);
}

[[nodiscard]] constexpr state_word with_cause(state_word value, wake_cause cause) noexcept {
    return (value & ~cause_mask) | (static_cast<state_word>(cause) << cause_shift);
}

}  // namespace chime::inline v0::detail
