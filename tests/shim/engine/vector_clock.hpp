// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace chime::shim {

/// So many threads may be part of one execution, the first one included.
inline constexpr unsigned most_threads = 10;

/// How far a thread knows the others: everything that thread n did up to its step at[n] happened before.
struct vector_clock {
    std::array<std::uint32_t, most_threads> at{};
    std::uint32_t seq_cst = 0;  ///< And so far it comes behind others in the order of all seq_cst steps.

    void join(const vector_clock& other) noexcept {
        for (unsigned thread = 0; thread < most_threads; ++thread) at[thread] = std::max(at[thread], other.at[thread]);
        seq_cst = std::max(seq_cst, other.seq_cst);
    }
    [[nodiscard]] bool knows(unsigned thread, std::uint32_t step) const noexcept { return at[thread] >= step; }
};

}  // namespace chime::shim
