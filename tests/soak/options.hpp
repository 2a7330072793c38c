// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace chime::soak {

struct options {
    unsigned seconds = 60;
    std::uint64_t seed = 0;  ///< Drawn if none is given.
    bool wants_help = false;
};

/// Nothing, and in `problem` what is wrong, if they cannot be understood.
[[nodiscard]] std::optional<options> read_options(int count, char** words, std::string& problem);

[[nodiscard]] const char* usage() noexcept;

}  // namespace chime::soak
