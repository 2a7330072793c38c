// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace chime::inline v0::base {

/// Bugs that somebody has shipped in code like this. A test build puts them back, one at a time, to see that a test notices
/// (tests/shim/old_bugs.cpp). Here nobody has them, and nothing is left of the question.
enum class old_bug : std::uint8_t {
    none,
    counts_out_twice,     ///< A periodic timer that is cancelled in its own callback takes another one along.
    remembers_the_first,  ///< When the last timer was cancelled, the loop still wakes up for it.
    runs_timers_alone,    ///< A turn that has fired a timer runs nothing else.
    runs_tasks_alone,     ///< A turn that finds something ready fires no timer.
    forgets_the_doom,     ///< A sleep that ends in time ends what was asked of the task meanwhile.
    destroys_by_frame,    ///< The outermost frame of a task is destroyed, and that destroys those inside.
};

[[nodiscard]] constexpr bool has(old_bug) noexcept {
    return false;
}

}  // namespace chime::inline v0::base
