// SPDX-License-Identifier: MIT
//
// What the seed of a duel decides, but for who does what.
#pragma once

#include "support/random.hpp"

#include <chime/runtime.hpp>
#include <chime/time.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace chime::test {

inline constexpr std::size_t duel_stale_slack = 64;  ///< The least that there may be, so that it matters.

/// Small budgets, so that there is always something left for another turn.
inline runtime_config draw_config(random_source& random) {
    static constexpr std::int64_t resolutions[] = {1, 1 << 10, 1 << 18, 1 << 24};
    runtime_config config;
    config.workers = static_cast<unsigned>(1 + random.below(5));
    config.resolution = std::chrono::nanoseconds{resolutions[random.below(4)]};
    config.timer_budget = 1 + random.below(8);
    config.task_budget = 1 + random.below(8);
    config.inline_budget = random.below(4);
    config.inline_resumption = !random.one_in(4);
    config.stale_slack = duel_stale_slack;
    config.max_timers = 1 << 12;
    config.max_tasks = 1 << 12;
    config.huge_pages = false;
    config.metronome = random.one_in(4);
    return config;
}

inline std::chrono::nanoseconds draw_delay(random_source& random) {
    switch (random.below(5)) {
    case 0: return std::chrono::nanoseconds{0};
    case 1: return std::chrono::nanoseconds{random.below(1'000)};
    case 2: return std::chrono::microseconds{random.below(50) * 100};  // Often the same.
    case 3: return std::chrono::milliseconds{random.below(1'000)};
    default: return std::chrono::seconds{random.below(10'000)};
    }
}

/// Now and then it is over: that is how ticks are missed where time stands while anybody is busy.
inline time_point draw_deadline(random_source& random, time_point now) {
    if (random.one_in(6)) return now - std::chrono::microseconds{random.below(300'000)};
    return now + draw_delay(random);
}

}  // namespace chime::test
