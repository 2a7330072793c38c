// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

// Stands in front of src/base/old_bug.hpp in the test build.

namespace chime::inline v0::base {

enum class old_bug : std::uint8_t {
    none,
    counts_out_twice,
    remembers_the_first,
    runs_timers_alone,
    runs_tasks_alone,
    forgets_the_doom,
    destroys_by_frame,
};

/// Set by tests/shim/old_bugs.cpp, before anything runs.
inline old_bug put_back = old_bug::none;

[[nodiscard]] inline bool has(old_bug asked) noexcept {
    return asked == put_back;
}

}  // namespace chime::inline v0::base
