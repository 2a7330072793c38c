// SPDX-License-Identifier: MIT
//
// testing::simulation as its user sees it: a whole runtime on one thread, under virtual time.

#include "runtime/watchdog.hpp"
#include "support/refusal.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <set>
#include <stdexcept>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

task<> ping(runtime& home, int& rounds) {
    for (int round = 0; round < 10; ++round) {
        co_await sleep_for(1s);
        home.timers().after(500ms, [&] { ++rounds; });
    }
}

TEST(simulation_face, runs_a_whole_test_for_many_seeds) {
    const watchdog guard("the example of simulation", 30s);
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        int rounds = 0;
        testing::simulation sim(seed, {.workers = 4});
        auto tested = sim->spawn(ping(*sim, rounds));
        sim.run();
        ASSERT_TRUE(tested.is_done()) << "seed " << seed;
        ASSERT_EQ(rounds, 10) << "seed " << seed;
        ASSERT_EQ(sim.now(), time_point{} + 10s + 500ms) << "seed " << seed;
        ASSERT_EQ(sim.seed(), seed);
        check_ledger_after_shutdown(*sim);
    }
}

TEST(simulation_face, has_four_workers_unless_told_otherwise) {
    testing::simulation usual(1);
    EXPECT_EQ(usual->stats().workers.size(), 4U);
    testing::simulation small(1, {.workers = 1});
    EXPECT_EQ(small->stats().workers.size(), 1U);
    check_ledger_after_shutdown(*usual);
    check_ledger_after_shutdown(*small);
}

TEST(simulation_face, steps_and_settles_without_moving_time) {
    const watchdog guard("step and settle", 30s);
    testing::simulation sim(3, {.workers = 2});
    int now_ones = 0;
    int later_ones = 0;
    sim.settle();
    EXPECT_FALSE(sim.step());
    for (int count = 0; count < 10; ++count) {
        sim->timers().after(0s, [&] { ++now_ones; });
        sim->timers().after(1s, [&] { ++later_ones; });
    }
    EXPECT_TRUE(sim.step());
    sim.settle();
    EXPECT_EQ(now_ones, 10);
    EXPECT_EQ(later_ones, 0);
    EXPECT_EQ(sim.now(), time_point{});
    EXPECT_FALSE(sim.step());
    EXPECT_EQ(sim.settle(), 0U);
    sim.advance(999ms);
    EXPECT_EQ(later_ones, 0);
    EXPECT_EQ(sim.now(), time_point{} + 999ms);
    sim.advance(1ms);
    EXPECT_EQ(later_ones, 10);
    sim.advance(-5s);
    EXPECT_EQ(sim.now(), time_point{} + 1s);
    check_ledger_after_shutdown(*sim);
}

TEST(simulation_face, advances_through_every_deadline_on_the_way) {
    const watchdog guard("advance", 30s);
    testing::simulation sim(5);
    std::vector<std::chrono::nanoseconds> seen;
    sim->timers().every(7s, missed_ticks::skip, [&] { seen.push_back(sim.now().time_since_epoch()); });
    sim.advance(1min);
    ASSERT_EQ(seen.size(), 8U);
    for (std::size_t tick = 0; tick < seen.size(); ++tick) EXPECT_EQ(seen[tick], 7s * (tick + 1));
    sim.advance_to(time_point{} + 30s);  // Time does not run back.
    EXPECT_EQ(sim.now(), time_point{} + 1min);
    check_ledger_after_shutdown(*sim);
}

task<int> sum_of_sleepers(runtime& home) {
    const auto add_later = [](int number) -> task<int> {
        co_await sleep_for(std::chrono::minutes{number});
        co_return number;
    };
    std::vector<join_handle<int>> parts;
    for (int number = 0; number < 20; ++number) parts.push_back(home.spawn(add_later(number)));
    int sum = 0;
    for (auto& each : parts) sum += co_await each;
    co_return sum;
}

TEST(simulation_face, blocks_on_tasks_without_blocking) {
    const watchdog guard("block_on in a simulation", 30s);
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        testing::simulation sim(seed, {.workers = 3});
        EXPECT_EQ(sim->block_on(sum_of_sleepers(*sim)), 190);
        EXPECT_EQ(sim.now(), time_point{} + 19min);
        check_ledger_after_shutdown(*sim);
    }
}

TEST(simulation_face, refuses_to_wait_for_what_never_ends) {
    const watchdog guard("what never ends in a simulation", 30s);
    testing::simulation sim(5, {.workers = 2});
    struct sleeper {
        static task<> sleep() { co_await sleep_until(never); }
    };
    expect_refused(errc::cancelled, [&] { sim->block_on(sleeper::sleep()); });
    auto joined = sim->spawn(sleeper::sleep());
    sim.settle();
    expect_refused(errc::on_a_worker, [&] { joined.wait(); });
    sim.advance_to(never);
    EXPECT_FALSE(joined.is_done());
    EXPECT_EQ(sim.now(), time_point{}) << "there is no time to go to";
    check_ledger_after_shutdown(*sim);
}

task<> fail() {
    co_await sleep_for(1s);
    throw std::runtime_error("from a detached task");
}

TEST(simulation_face, lets_exceptions_out_of_the_call_that_ran_into_them) {
    const watchdog guard("exceptions in a simulation", 30s);
    testing::simulation sim(11, {.workers = 2});
    int fired = 0;
    sim->timers().after(1s, [] { throw std::runtime_error("from a callback"); });
    sim->timers().after(2s, [&] { ++fired; });
    EXPECT_THROW(sim.run(), std::runtime_error);
    EXPECT_EQ(fired, 0);
    sim.run();
    EXPECT_EQ(fired, 1);
    spawn_detached(*sim, fail());
    EXPECT_THROW(sim.advance(1min), std::runtime_error);
    sim.run();
    check_ledger_after_shutdown(*sim);
}

TEST(simulation_face, gives_exceptions_to_the_hook_if_there_is_one) {
    const watchdog guard("a hook in a simulation", 30s);
    int caught = 0;
    runtime_config config{.workers = 2};
    config.on_exception = [&](std::exception_ptr) { ++caught; };
    testing::simulation sim(11, config);
    sim->timers().after(1s, [] { throw std::runtime_error("from a callback"); });
    spawn_detached(*sim, fail());
    sim.run();
    EXPECT_EQ(caught, 2);
    check_ledger_after_shutdown(*sim);
}

TEST(simulation_face, retires_and_adds_workers_and_shuts_down_with_sleepers) {
    const watchdog guard("retirement in a simulation", 30s);
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        testing::simulation sim(seed, {.workers = 3});
        int rounds = 0;
        auto first = sim->spawn(ping(*sim, rounds));
        auto second = sim->spawn(ping(*sim, rounds));
        sim.advance(2500ms);
        sim->retire_worker(1);
        EXPECT_EQ(sim->add_worker(), 3U);
        sim->retire_worker(0);
        sim->retire_worker(2);
        expect_refused(errc::last_worker, [&] { sim->retire_worker(3); });
        sim.advance(3s);
        ASSERT_EQ(rounds, 10) << "seed " << seed;
        check_ledger_after_shutdown(*sim);
    }
}

TEST(simulation_face, differs_from_seed_to_seed_and_not_from_run_to_run) {
    const watchdog guard("traces", 30s);
    std::set<std::uint64_t> traces;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        std::uint64_t trace = 0;
        for (int again = 0; again < 2; ++again) {
            int rounds = 0;
            testing::simulation sim(seed);
            for (int count = 0; count < 4; ++count) spawn_detached(*sim, ping(*sim, rounds));
            sim.run();
            EXPECT_TRUE(again == 0 || trace == sim.trace()) << "seed " << seed;
            trace = sim.trace();
            check_ledger_after_shutdown(*sim);
        }
        traces.insert(trace);
    }
    EXPECT_GT(traces.size(), 15U);
}

}  // namespace
}  // namespace chime::test
