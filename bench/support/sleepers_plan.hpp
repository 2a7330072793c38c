// SPDX-License-Identifier: MIT
#pragma once

#include "support/sequence.hpp"
#include "support/shared_contender.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace chime_bench {

/// What the coroutines of the workload `sleepers` have in common: how long each sleeps, and the count of those that woke.
struct sleepers_plan {
    using clock = std::chrono::steady_clock;

    /// How late a sleeper may be, where that can be said: as late as with those who count in milliseconds.
    static constexpr std::chrono::milliseconds slack{1};

    sleepers_plan(std::size_t count_wanted, delay_range range, std::uint64_t seed)
        : count(count_wanted), delays(range), draws(seed) {}

    /// Of the next sleeper; by whoever starts them, one after the other.
    [[nodiscard]] std::chrono::nanoseconds next_delay() { return delays.at(draws.next().delay_fraction); }

    /// Looking at the clock costs as much as sleeping does: one sleeper in 64 checks that it was not woken early.
    [[nodiscard]] static clock::time_point now_if_checked(std::size_t which) {
        return which % 64 == 0 ? clock::now() : clock::time_point{};
    }

    /// A sleeper is awake. Any thread.
    void note(std::size_t which, clock::time_point started, std::chrono::nanoseconds delay) {
        if (which % 64 == 0 && clock::now() < started + delay) early.fetch_add(1, std::memory_order_relaxed);
        woken.add_one();
    }

    std::size_t count;
    delay_range delays;
    sequence draws;
    scattered_count woken;
    std::atomic<std::uint64_t> early{0};
};

}  // namespace chime_bench
