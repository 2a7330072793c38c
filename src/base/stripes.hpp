// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace chime::inline v0::base {

/// How many threads of a program have a stripe of striped_counters to themselves, and how many stripes the others share.
inline constexpr std::size_t usual_stripes = 32;

}  // namespace chime::inline v0::base
