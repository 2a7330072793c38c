// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace chime_demo {

/// What the command line asks for.
struct options {
    std::chrono::seconds duration{10};
    std::size_t sleepers = 1'000'000;
    unsigned workers = 0;  ///< After parse() never zero.
    std::string json_path;
    bool help = false;

    /// One line that says what is wrong with the command line and what would be right; empty if nothing is.
    std::string error;
};

/// Never fails: what it cannot understand is in `error`.
[[nodiscard]] options parse(int count, const char* const* arguments);

/// The first line of the help.
[[nodiscard]] std::string usage_line();
[[nodiscard]] std::string help_text();

}  // namespace chime_demo
