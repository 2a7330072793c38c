// SPDX-License-Identifier: MIT
//
// runtime_config::slack: timers that may be late share a wake-up, on every worker.

#include "runtime/watchdog.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

constexpr unsigned worker_count = 3;
constexpr int neighbours = 9;  ///< Due 1 ms, 2 ms, and so on from the start.

/// When they woke up, and how many of the workers had any of them.
struct wakes {
    std::set<time_point> moments;
    std::size_t busy_workers = 0;
};

task<> sleep_and_note(testing::simulation& sim, time_point deadline, duration slack, wakes& seen) {
    co_await sleep_until(deadline);
    EXPECT_GE(sim.now(), deadline) << "never early [G1]";
    EXPECT_LE(sim.now(), deadline + slack) << "later than it may be";
    seen.moments.insert(sim.now());
}

/// Tasks of all workers sleep, and so does one callback of each deadline.
wakes sleep_as_neighbours(std::uint64_t seed, duration slack) {
    wakes seen;
    testing::simulation sim(seed, {.workers = worker_count, .slack = slack});
    for (int count = 0; count < 10 * neighbours; ++count) {
        const time_point deadline = sim.now() + std::chrono::milliseconds{1 + count % neighbours};
        spawn_detached(*sim, sleep_and_note(sim, deadline, slack, seen));
        if (count < neighbours) sim->timers().at(deadline, [&] { seen.moments.insert(sim.now()); });
    }
    sim.run();
    for (const worker_stats& each : sim->stats().workers) seen.busy_workers += each.timers.fired != 0 ? 1 : 0;
    EXPECT_EQ(sim->stats().timers.fired, 11U * neighbours);
    check_ledger_after_shutdown(*sim);
    return seen;
}

TEST(the_slack_of_a_runtime, lets_the_timers_of_each_worker_share_one_wake_up) {
    const watchdog guard("slack", 30s);
    std::size_t most_busy = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const wakes seen = sleep_as_neighbours(seed, 10ms);
        // Whoever sleeps until his first one may be late finds all of his own due, whatever wakes him.
        EXPECT_LE(seen.moments.size(), worker_count) << "seed " << seed;
        EXPECT_EQ(*seen.moments.begin(), time_point{} + 1ms + 10ms) << "seed " << seed;
        most_busy = std::max(most_busy, seen.busy_workers);
    }
    EXPECT_GT(most_busy, 1U) << "one worker alone has had all of them, whatever the seed";
}

TEST(the_slack_of_a_runtime, is_none_unless_it_is_asked_for) {
    const watchdog guard("no slack", 30s);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const wakes seen = sleep_as_neighbours(seed, 0ms);
        EXPECT_EQ(seen.moments.size(), std::size_t{neighbours}) << "seed " << seed;
        EXPECT_EQ(*seen.moments.begin(), time_point{} + 1ms) << "seed " << seed;
    }
}

}  // namespace
}  // namespace chime::test
