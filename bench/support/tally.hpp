// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace chime_bench {

/// How often each thing happened to the timers of a run.
struct tally {
    std::uint64_t armed = 0;
    std::uint64_t cancelled = 0;
    std::uint64_t postponed = 0;
    std::uint64_t fired = 0;
    std::uint64_t pending = 0;

    friend bool operator==(const tally&, const tally&) = default;
};

inline std::string describe(const tally& it) {
    return "armed " + std::to_string(it.armed) + ", cancelled " + std::to_string(it.cancelled) + ", postponed " +
           std::to_string(it.postponed) + ", fired " + std::to_string(it.fired) + ", pending " +
           std::to_string(it.pending);
}

}  // namespace chime_bench
