// SPDX-License-Identifier: MIT
#pragma once

#include "base/descriptor.hpp"

namespace chime::inline v0::base {

/// A descriptor that is readable while either of two others is: an epoll instance. It does not own them.
/// Throws std::system_error when the process or the system has no descriptor left.
[[nodiscard]] descriptor watch_either(int first, int second);

}  // namespace chime::inline v0::base
