// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace chime::inline v0::base {

/// So few that threads share them, and that whoever sums them has few steps to take.
inline constexpr std::size_t usual_stripes = 2;

}  // namespace chime::inline v0::base
