// SPDX-License-Identifier: MIT
//
// What a histogram of lateness tells of timers that were not late but early.
#pragma once

#include <chime/stats.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace chime::test {

/// How many have fired before their deadline: the last bucket is theirs.
inline std::uint64_t count_early(const lateness_histogram& seen) {
    return seen.buckets.back();
}

/// Is the latest one in the last bucket that counts any?
inline bool is_max_sane(const lateness_histogram& seen) {
    if (seen.max.count() < 0) return false;
    std::size_t last = lateness_histogram::bucket_count - 1;
    while (last != 0 && seen.buckets[last] == 0) --last;
    const auto width = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(seen.max.count())));
    return std::min(width, lateness_histogram::bucket_count - 1) == last;
}

}  // namespace chime::test
