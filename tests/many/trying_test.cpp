// SPDX-License-Identifier: MIT
//
// Calls of a runtime that answer instead of throwing.

#include "runtime/watchdog.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

task<int> answer() {
    co_return 42;
}

TEST(try_retire_worker, answers_whether_it_has_gone) {
    const watchdog guard("trying to retire workers", 20s);
    runtime home({.workers = 2});
    EXPECT_FALSE(home.try_retire_worker(2)) << "there is none";
    EXPECT_FALSE(home.try_retire_worker(std::numeric_limits<worker_id>::max()));
    EXPECT_TRUE(home.try_retire_worker(0));
    EXPECT_FALSE(home.try_retire_worker(0)) << "it has gone";
    EXPECT_FALSE(home.try_retire_worker(1)) << "it is the last one";
    EXPECT_EQ(home.try_add_worker(), 2U);
    EXPECT_TRUE(home.try_retire_worker(1));
    EXPECT_EQ(home.stats().workers_retired, 2U);
    home.shutdown();
    EXPECT_FALSE(home.try_retire_worker(2));
    EXPECT_EQ(home.try_add_worker(), std::nullopt);
    check_ledger_after_shutdown(home);
}

task<int> retire_whoever_can(runtime& home, worker_id count) {
    int gone = 0;
    for (worker_id each = 0; each < count; ++each) gone += home.try_retire_worker(each) ? 1 : 0;
    co_return gone;
}

TEST(try_retire_worker, from_a_task_leaves_the_worker_that_it_runs_on) {
    const watchdog guard("trying to retire oneself", 20s);
    runtime home({.workers = 3});
    EXPECT_EQ(home.block_on(retire_whoever_can(home, 3)), 2);
    EXPECT_EQ(home.stats().workers.size(), 1U);
    check_ledger_after_shutdown(home);
}

TEST(try_retire_worker, from_four_threads_leaves_exactly_one) {
    const watchdog guard("trying to retire everybody", 60s);
    runtime home({.workers = 8});
    std::atomic<int> gone{0};
    std::vector<std::thread> threads;
    for (int number = 0; number < 4; ++number) {
        threads.emplace_back([&] {
            for (worker_id each = 0; each < 8; ++each) gone += home.try_retire_worker(each) ? 1 : 0;
        });
    }
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(gone, 7);
    EXPECT_EQ(home.stats().workers.size(), 1U);
    EXPECT_EQ(home.block_on(answer()), 42);
    check_ledger_after_shutdown(home);
}

TEST(try_add_worker, gives_nothing_when_there_are_as_many_as_may_be) {
    const watchdog guard("trying to add workers", 60s);
    runtime home({.workers = 2});
    std::size_t there = 2;
    while (there < 600 && home.try_add_worker()) ++there;
    EXPECT_LE(there, 512U) << "fewer if the system has no more threads";
    EXPECT_EQ(home.stats().workers.size(), there);
    EXPECT_TRUE(home.try_retire_worker(1));
    EXPECT_EQ(home.try_add_worker(), there) << "there is a seat again";
    EXPECT_EQ(home.block_on(answer()), 42);
    check_ledger_after_shutdown(home);
}

TEST(try_spawn, on_a_runtime_that_is_full_or_has_ended_leaves_the_task_as_it_was) {
    const watchdog guard("trying to spawn", 20s);
    runtime home({.workers = 2, .max_tasks = 1});
    auto sleeper = home.spawn(sleep_for(1h));
    task<int> waiting = answer();
    EXPECT_EQ(home.try_spawn(std::move(waiting)), std::nullopt);
    EXPECT_FALSE(try_spawn_detached(home, std::move(waiting)));
    EXPECT_TRUE(waiting);  // NOLINT(bugprone-use-after-move): that is the point.
    sleeper.cancel();
    sleeper.wait();
    std::optional<join_handle<int>> joined;
    await_that([&] {  // The slot may be in the reserve of a worker, which is asked for it.
        joined = home.try_spawn(std::move(waiting));
        return joined.has_value();
    });
    joined->wait();
    EXPECT_EQ(joined->take(), 42);
    home.shutdown();
    task<int> late = answer();
    EXPECT_EQ(home.try_spawn(std::move(late)), std::nullopt);
    EXPECT_TRUE(late);  // NOLINT(bugprone-use-after-move)
    check_ledger_after_shutdown(home);
}

task<int> spawn_as_many_as_possible(runtime& home, int count, std::atomic<int>& ran) {
    int accepted = 0;
    for (int number = 0; number < count; ++number) {
        task<> work = [](std::atomic<int>& counted) -> task<> {
            ++counted;
            co_return;
        }(ran);
        while (!try_spawn_detached(home, std::move(work))) co_await yield();
        ++accepted;
    }
    co_return accepted;
}

TEST(try_spawn, at_a_cap_loses_no_task_and_no_place) {
    const watchdog guard("spawning at the cap", 60s);
    runtime home({.workers = 2, .max_tasks = 8});
    std::atomic<int> ran{0};
    std::vector<join_handle<int>> spawners;
    for (int number = 0; number < 3; ++number) {
        task<int> spawner = spawn_as_many_as_possible(home, 2'000, ran);
        await_that([&] {
            auto joined = home.try_spawn(std::move(spawner));
            if (joined) spawners.push_back(std::move(*joined));
            return joined.has_value();
        });
    }
    int accepted = 0;
    for (auto& each : spawners) {
        each.wait();
        accepted += each.take();
    }
    await_that([&] { return home.stats().timers.tasks == 0; });
    EXPECT_EQ(accepted, 6'000);
    EXPECT_EQ(ran, 6'000);
    check_ledger_after_shutdown(home);
}

}  // namespace
}  // namespace chime::test
