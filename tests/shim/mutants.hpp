// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace chime::shim {

/// Makes every atomic step of the library weaker by one order, or leaves it out, one after the other, runs the scenarios
/// that reach it, and prints which of them notices. Those that nobody notices must be known to be harmless.
///
/// Only those whose place contains `filter`. Answers the exit code: 0, all were noticed or are harmless.
[[nodiscard]] int run_mutants(std::string_view filter);

/// Why a mutant is harmless; empty: it is not known to be.
[[nodiscard]] std::string_view harmless_because(std::string_view file, std::string_view source,
                                                std::string_view change);

/// The bug that a mutant puts back; empty: none that has a name.
[[nodiscard]] std::string_view old_bug_named(std::string_view file, std::string_view source, std::string_view change);

}  // namespace chime::shim
