// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace chime_bench {

/// What one run shall do; the same for every contender.
struct plan {
    std::size_t timers;        ///< N.
    std::uint64_t operations;  ///< How many operations are timed.
    std::uint64_t seed;
    unsigned threads = 1;  ///< T, where a workload uses more than one.
};

/// Something that a run has measured beside the time: how much memory, how many wake-ups. The name ends in its unit.
struct figure {
    std::string name;
    double value;
};

/// What came of it: the time of all operations together, or why there is none.
struct outcome {
    std::int64_t elapsed_ns = 0;
    std::string error;
    std::uint64_t early = 0;  ///< How many timers fired before their deadline, where a workload looks at that.
    std::vector<figure> figures{};
};

/// Set by the signal handler; long loops look at it once per turn.
inline std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");

/// The error of a run that was cut short: not a failure of the contender.
inline constexpr const char* interrupted_error = "interrupted";

}  // namespace chime_bench
