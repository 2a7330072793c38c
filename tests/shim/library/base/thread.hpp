// SPDX-License-Identifier: MIT
#pragma once

#include "shim/engine/sync.hpp"

#include <string_view>
#include <system_error>

// Stands in front of src/base/thread.hpp in the test build.

namespace chime::inline v0::base {

using thread = shim::thread;

[[nodiscard]] int fork_number() noexcept;
inline void call_around_fork(void (*)(), void (*)()) noexcept {}
[[nodiscard]] unsigned usable_processors() noexcept;
[[nodiscard]] unsigned usable_processor(unsigned position) noexcept;
[[nodiscard]] std::error_code pin_this_thread(unsigned processor) noexcept;
void name_this_thread(std::string_view name) noexcept;

inline constexpr unsigned most_looks = 3;
inline void pause_between_looks() noexcept {}

inline void yield_this_thread() noexcept {
    shim::yield();
}

}  // namespace chime::inline v0::base
