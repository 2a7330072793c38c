// SPDX-License-Identifier: MIT
//
// runtime_config::crowd_slack: after a crowd of timers, a worker makes the next one wait for its neighbours.

#include "runtime/watchdog.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/runtime.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

constexpr auto gap = 50ms;  ///< Between a crowd and the one that comes after it.

/// Many timers due at once, and one after them: how late that was; or nothing if the machine was so slow that they were
/// armed too late, or were due together. From a thread of its own, so with a worker that is always the same.
std::optional<duration> lateness_after_crowd(runtime& home) {
    // More than the eight that are a crowd: if the worker meets some of them before the others, those are one, too.
    constexpr int count = 64;
    std::atomic<int> crowd_ran{0};
    std::atomic<bool> is_over{false};
    time_point last_of_crowd;
    time_point neighbour_ran;
    const time_point start = chime::clock::now() + 50ms;
    for (int each = 0; each < count; ++each) {
        home.timers().at(start, [&] {
            last_of_crowd = chime::clock::now();
            ++crowd_ran;
        });
    }
    home.timers().at(start + gap, [&] {
        neighbour_ran = chime::clock::now();
        is_over = true;
    });
    const bool is_in_time = chime::clock::now() < start;
    await_that([&] { return is_over.load(); });
    EXPECT_EQ(crowd_ran.load(), count) << "due before it";
    EXPECT_GE(neighbour_ran, start + gap) << "never early [G1]";
    if (!is_in_time || last_of_crowd >= start + gap) return std::nullopt;
    return neighbour_ran - (start + gap);
}

/// On two threads that are started together, each of which has a worker of its own, unless one has to try again: then what the
/// other has armed may wake its worker earlier, which is no mistake. So it is enough if each sees it once.
template <class IsWanted>
void expect_on_both_workers(const runtime_config& config, const IsWanted& is_wanted) {
    constexpr int most_tries = 20;
    const watchdog guard("a crowd on each of two workers");
    runtime home(config);
    std::array<std::thread, 2> threads;
    for (std::thread& each : threads) {
        each = std::thread([&] {
            std::optional<duration> late;
            for (int tries = 0; tries < most_tries && !(late && is_wanted(*late)); ++tries) {
                late = lateness_after_crowd(home);
            }
            ASSERT_TRUE(late.has_value()) << "this machine is too busy";
            EXPECT_TRUE(is_wanted(*late)) << "late by " << late->count() << " ns";
        });
    }
    for (std::thread& each : threads) each.join();
    check_ledger_after_shutdown(home);
}

TEST(crowd_on_workers, makes_the_next_wake_up_of_each_wait_for_its_neighbours) {
    expect_on_both_workers({.workers = 2, .crowd_slack = 2 * gap},
                           [](duration late) { return late >= duration{2 * gap}; });
}

TEST(crowd_on_workers, waits_for_nobody_where_that_is_not_wanted) {
    expect_on_both_workers({.workers = 2, .crowd_slack = 0ns}, [](duration late) { return late < duration{1s}; });
}

}  // namespace
}  // namespace chime::test
