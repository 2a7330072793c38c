// SPDX-License-Identifier: MIT
#pragma once

#include <chime/detail/export.hpp>

#include <string_view>

/// The version of these headers; before 1.0 a new minor version may break what the last one promised.
#define CHIME_VERSION_MAJOR 0
#define CHIME_VERSION_MINOR 1
#define CHIME_VERSION_PATCH 0

/// One number to compare with: `#if CHIME_VERSION >= 200` asks for 0.2.0 or later.
#define CHIME_VERSION (CHIME_VERSION_MAJOR * 10000 + CHIME_VERSION_MINOR * 100 + CHIME_VERSION_PATCH)

namespace chime {
inline namespace v0 {

/// The version of the library that the program really runs with, such as "0.1.0".
///
/// It differs from the macros when a program was compiled against one version and loads another. Any thread.
[[nodiscard]] CHIME_API std::string_view version() noexcept;

}  // namespace v0
}  // namespace chime
