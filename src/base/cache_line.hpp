// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace chime::inline v0::base {

/// What is written by different threads is kept this far apart.
///
/// A fixed number, because std::hardware_destructive_interference_size changes with the compiler's options and would
/// change the layout of types with it.
inline constexpr std::size_t cache_line_bytes = 64;

}  // namespace chime::inline v0::base
