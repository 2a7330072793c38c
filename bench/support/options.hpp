// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chime_bench {

/// What the command line asks for; empty lists mean all.
struct options {
    bool quick = false;
    bool help = false;
    std::vector<std::string> workloads;
    std::vector<std::string> contenders;
    std::vector<std::uint64_t> sizes;
    std::vector<unsigned> threads;
    std::optional<unsigned> repetitions;
    std::uint64_t seed = 1;
    std::string json_path;
    std::string report_path;
    std::string others_path;  ///< Where the contenders are that are programs of their own; empty: there are none.

    /// One line that says what is wrong with the command line and what would be right; empty if nothing is.
    std::string error;
};

/// Never fails: what it cannot understand is in `error`.
[[nodiscard]] options parse(int count, const char* const* arguments, const std::vector<std::string>& workloads,
                            const std::vector<std::string>& contenders);

[[nodiscard]] std::string help_text(const std::vector<std::string>& workloads,
                                    const std::vector<std::string>& contenders);

}  // namespace chime_bench
