// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

// Which bug is put back in the copies of the headers that put_back.cmake makes.

namespace chime::old_bugs {

/// From 1 on; 0: none. Set by main.cpp, before anything runs.
inline unsigned put_back = 0;

/// What the compiler works out is right.
[[nodiscard]] constexpr bool has(unsigned number) noexcept {
    return !std::is_constant_evaluated() && put_back == number;
}

}  // namespace chime::old_bugs
