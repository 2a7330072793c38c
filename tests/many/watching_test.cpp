// SPDX-License-Identifier: MIT
//
// What can be seen of a runtime: its numbers, what is pending; and a runtime whose time is not the system's.

#include "runtime/watchdog.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

task<> sleep_for_an_hour(std::atomic<int>& asleep) {
    ++asleep;
    co_await sleep_for(1h);
}

TEST(runtime_stats, add_up_over_all_workers_and_other_threads) {
    const watchdog guard("stats", 30s);
    runtime home({.workers = 3, .time_callbacks = true});
    std::atomic<int> fired{0};
    std::vector<timer_handle> pending;
    for (int count = 0; count < 100; ++count) {
        home.timers().after(0s, [&] {
            home.timers().after(0s, [&] { ++fired; });  // On the worker.
            ++fired;
        });
        pending.push_back(home.timers().after(1h, [] {}));
    }
    std::atomic<int> asleep{0};
    for (int count = 0; count < 30; ++count) spawn_detached(home, sleep_for_an_hour(asleep));
    await_that([&] { return fired == 200 && asleep == 30 && home.stats().timers.pending == 130; });
    for (int count = 0; count < 40; ++count) home.timers().cancel(pending[static_cast<std::size_t>(count)]);
    home.timers().postpone(pending.back(), 2h);
    home.timers().after(0s, [] { std::this_thread::sleep_for(2ms); });
    await_that([&] { return home.stats().timers.fired == 201; });
    const runtime_stats all = home.stats();
    EXPECT_EQ(all.timers.armed, 331U);
    EXPECT_EQ(all.timers.fired, 201U);
    EXPECT_EQ(all.timers.cancelled, 40U);
    EXPECT_EQ(all.timers.pending, 90U);
    EXPECT_EQ(all.timers.postponed, 1U);
    EXPECT_EQ(all.timers.tasks, 30U);
    EXPECT_EQ(all.timers.waiting, 30U);
    EXPECT_EQ(all.timers.lateness.count(), 201U);
    ASSERT_EQ(all.workers.size(), 3U);
    std::uint64_t fired_by_workers = 0;
    for (const worker_stats& each : all.workers) fired_by_workers += each.timers.fired;
    EXPECT_EQ(fired_by_workers, all.timers.fired);
    EXPECT_EQ(home.timers().stats().armed, all.timers.armed);
    await_that([&] { return home.stats().timers.longest_callback >= 2ms; });
    check_ledger_after_shutdown(home);
}

TEST(runtime_stats, can_be_read_while_everything_moves) {
    watchdog guard("reading stats under load", 30s);
    runtime home({.workers = 2});
    std::atomic<bool> is_over{false};
    std::thread reading([&] {
        std::uint64_t last = 0;
        while (!is_over) {
            const runtime_stats all = home.stats();
            EXPECT_GE(all.timers.fired, last);
            last = all.timers.fired;
            std::ostringstream text;
            home.dump_pending(text);
        }
    });
    for (int round = 0; round < 300; ++round) {
        guard.pat();
        home.timers().after(std::chrono::microseconds{round}, [] {});
        home.timers().cancel(home.timers().after(1h, [] {}));
        if (round % 20 == 0) home.retire_worker(home.add_worker());
        EXPECT_EQ(home.block_on(sleep_for(10us)), wake_reason::elapsed);
    }
    is_over = true;
    reading.join();
    check_ledger_after_shutdown(home);
}

TEST(dump_pending, shows_timers_and_tasks_of_all_workers_with_places) {
    const watchdog guard("dump_pending", 30s);
    runtime home({.workers = 2, .record_locations = true});
    std::atomic<int> asleep{0};
    for (int count = 0; count < 5; ++count) spawn_detached(home, sleep_for_an_hour(asleep));
    home.timers().after(1h, [] {});
    std::thread([&] { home.timers().after(2h, [] {}); }).join();
    await_that([&] { return asleep == 5 && home.stats().timers.pending == 7; });
    std::ostringstream text;
    home.dump_pending(text);
    const std::string shown = text.str();
    std::size_t places = 0;
    for (std::size_t at = shown.find("watching_test.cpp"); at != std::string::npos;
         at = shown.find("watching_test.cpp", at + 1)) {
        ++places;
    }
    EXPECT_GE(places, 7U) << shown;
    EXPECT_EQ(shown.find("chime runtime "), 0U) << shown;
    EXPECT_NE(shown.find(": 2 timers, 5 tasks ("), std::string::npos) << shown;
    check_ledger_after_shutdown(home);
    std::ostringstream after;
    home.dump_pending(after);
    EXPECT_EQ(after.str().find("watching_test.cpp"), std::string::npos) << after.str();
}

task<int> sleep_for_days(testing::virtual_clock& clock, int days) {
    int wrong = 0;
    for (int day = 0; day < days; ++day) {
        const time_point begun = clock.now();
        co_await sleep_for(24h);
        if (clock.now() < begun + 24h) ++wrong;
    }
    co_return wrong;
}

TEST(a_runtime_on_a_virtual_clock, jumps_from_deadline_to_deadline) {
    const watchdog guard("a virtual clock that jumps", 30s);
    testing::virtual_clock clock;
    runtime home({.workers = 2, .clock = &clock});
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_EQ(home.block_on(sleep_for_days(clock, 365)), 0);
    EXPECT_GE(clock.now() - time_point{}, 365 * 24h);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 20s);
    EXPECT_EQ(home.timers().now(), clock.now());
    check_ledger_after_shutdown(home);
}

TEST(a_runtime_on_a_virtual_clock, fires_each_timer_at_its_own_time) {
    const watchdog guard("timers on a virtual clock", 30s);
    testing::virtual_clock clock(testing::when_idle::stand_still);
    runtime home({.workers = 3, .clock = &clock});
    std::atomic<int> fired{0};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int number = 0; number < 3; ++number) {
        threads.emplace_back([&] {
            for (int hour = 1; hour <= 50; ++hour) {
                const time_point deadline = time_point{} + std::chrono::hours{hour};
                home.timers().at(deadline, [&, deadline] {
                    if (clock.now() < deadline) ++wrong;
                    ++fired;
                });
            }
        });
    }
    for (std::thread& each : threads) each.join();
    std::this_thread::sleep_for(5ms);
    EXPECT_EQ(fired.load(), 0);
    for (int hour = 1; hour <= 50; ++hour) {
        clock.advance(1h);
        await_that([&] { return fired == 3 * hour; });
    }
    EXPECT_EQ(wrong.load(), 0);
    check_ledger_after_shutdown(home);
}

TEST(a_runtime_on_a_virtual_clock, survives_jumps_of_an_hour_and_of_a_year) {
    const watchdog guard("long jumps", 30s);
    testing::virtual_clock clock(testing::when_idle::stand_still);
    runtime home({.workers = 2, .clock = &clock});
    std::atomic<int> fired{0};
    std::atomic<int> ticks{0};
    for (const auto delay : {1s, 3'600s, 86'400s * 13, 86'400s * 364}) home.timers().after(delay, [&] { ++fired; });
    const timer_handle beyond = home.timers().after(24h * 400, [] { FAIL() << "too early"; });
    home.timers().every(24h, missed_ticks::skip, [&] { ++ticks; });
    clock.advance(1h);
    await_that([&] { return fired == 2; });
    clock.advance(24h * 365);
    await_that([&] { return fired == 4 && ticks == 1; });
    EXPECT_EQ(home.timers().cancel(beyond), cancel_result::cancelled);
    check_ledger_after_shutdown(home);
}

}  // namespace
}  // namespace chime::test
