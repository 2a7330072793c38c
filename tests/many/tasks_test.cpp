// SPDX-License-Identifier: MIT
//
// Tasks on many workers: their results, their ends, their sleeps, and where they are resumed.

#include "runtime/small_tasks.hpp"
#include "runtime/watchdog.hpp"
#include "support/refusal.hpp"
#include "support/runtime_ledger.hpp"
#include "support/witness.hpp"

#include <chime/cancel.hpp>
#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

task<std::unique_ptr<int>> make(int number) {
    co_await sleep_for(1ms);
    co_return std::make_unique<int>(number);
}

task<> nothing(bool& has_run) {
    co_await yield();
    has_run = true;
}

task<int&> refer_to(int& there) {
    co_await yield();
    co_return there;
}

TEST(block_on, gives_what_the_task_gives) {
    const watchdog guard("block_on", 20s);
    runtime home({.workers = 2});
    EXPECT_EQ(home.block_on(answer_after(1ms, 42)), 42);
    EXPECT_EQ(*home.block_on(make(7)), 7);
    bool has_run = false;
    home.block_on(nothing(has_run));
    EXPECT_TRUE(has_run);
    int there = 1;
    int& referred = home.block_on(refer_to(there));
    EXPECT_EQ(&referred, &there);
    EXPECT_EQ(home.block_on(sleep_for(1ms)), wake_reason::elapsed);
    auto joined = home.spawn(answer_after(1ms, 9));
    EXPECT_EQ(home.block_on(std::move(joined)), 9);
    check_ledger_after_shutdown(home);
}

TEST(block_on, throws_what_the_task_throws) {
    const watchdog guard("block_on of a failure", 20s);
    runtime home({.workers = 2});
    EXPECT_THROW(home.block_on(fail_after(0s)), std::out_of_range);
    EXPECT_THROW(home.block_on(fail_after(1ms)), std::out_of_range);
    EXPECT_EQ(home.block_on(answer_after(0s, 1)), 1);
    check_ledger_after_shutdown(home);
}

TEST(block_on, from_many_threads_at_once_gives_each_its_own) {
    watchdog guard("block_on from many threads", 30s);
    runtime home({.workers = 3});
    std::vector<std::thread> threads;
    for (int number = 0; number < 6; ++number) {
        threads.emplace_back([&, number] {
            for (int round = 0; round < 200; ++round) {
                guard.pat();
                const int wanted = number * 1'000 + round;
                EXPECT_EQ(home.block_on(answer_after(std::chrono::microseconds{round % 50}, wanted)), wanted);
            }
        });
    }
    for (std::thread& each : threads) each.join();
    check_ledger_after_shutdown(home);
}

task<int> sum_of_many(runtime& home, int count) {
    std::vector<join_handle<int>> parts;
    for (int number = 0; number < count; ++number) {
        parts.push_back(home.spawn(answer_after(std::chrono::microseconds{number % 100}, number)));
    }
    int sum = 0;
    for (join_handle<int>& each : parts) sum += co_await each;
    co_return sum;
}

TEST(a_spawned_task, is_joined_by_a_task_on_any_worker) {
    const watchdog guard("joins", 30s);
    runtime home({.workers = 4});
    EXPECT_EQ(home.block_on(sum_of_many(home, 1'000)), 499'500);
    check_ledger_after_shutdown(home);
}

TEST(a_spawned_task, that_fails_throws_where_it_is_joined) {
    const watchdog guard("a join of a failure", 20s);
    runtime home({.workers = 2});
    auto failing = home.spawn(fail_after(1ms));
    EXPECT_THROW(home.block_on(std::move(failing)), std::out_of_range);
    auto waited = home.spawn(fail_after(0s));
    waited.wait();
    EXPECT_TRUE(waited.is_done());
    EXPECT_THROW(waited.take(), std::out_of_range);
    expect_refused(errc::empty_task, [&] { waited.take(); });
    check_ledger_after_shutdown(home);
}

task<std::vector<wake_reason>> sleep_three_times() {
    std::vector<wake_reason> reasons;
    for (int naps = 0; naps < 3; ++naps) reasons.push_back(co_await sleep_for(1h));
    co_return reasons;
}

TEST(a_spawned_task, that_is_cancelled_wakes_from_every_sleep_at_once) {
    const watchdog guard("cancelling a task", 20s);
    runtime home({.workers = 2});
    std::vector<join_handle<std::vector<wake_reason>>> all;
    for (int count = 0; count < 100; ++count) all.push_back(home.spawn(sleep_three_times()));
    for (auto& each : all) EXPECT_TRUE(each.cancel());
    for (auto& each : all) {
        each.wait();
        EXPECT_EQ(each.take(), std::vector<wake_reason>(3, wake_reason::cancelled));
        EXPECT_FALSE(each.cancel());
    }
    check_ledger_after_shutdown(home);
}

task<> count_when_over(std::atomic<int>& over) {
    co_await sleep_for(2ms);
    ++over;
}

TEST(a_spawned_task, whose_handle_is_dropped_runs_on_its_own) {
    const watchdog guard("detached tasks", 20s);
    runtime home({.workers = 2});
    std::atomic<int> over{0};
    for (int count = 0; count < 100; ++count) {
        auto dropped = home.spawn(count_when_over(over));
        if (count % 2 == 0) dropped.detach();
        spawn_detached(home, count_when_over(over));
    }
    await_that([&] { return over == 200; });
    check_ledger_after_shutdown(home);
}

task<> sleep_often(std::atomic<int>& early, std::atomic<int>& resumed, int naps, int number) {
    for (int nap = 0; nap < naps; ++nap) {
        const duration delay = std::chrono::microseconds{(number * 37 + nap * 101) % 3'000};
        const time_point begun = chime::clock::now();
        const wake_reason why = co_await sleep_for(delay);
        if (chime::clock::now() - begun < delay || why != wake_reason::elapsed) ++early;
        ++resumed;
    }
}

TEST(a_sleep, on_many_workers_is_never_early_and_ends_once) {
    const watchdog guard("sleeps", 60s);
    for (const bool is_inline : {true, false}) {
        runtime home({.workers = 4, .inline_resumption = is_inline});
        std::atomic<int> early{0};
        std::atomic<int> resumed{0};
        constexpr int tasks = 300;
        constexpr int naps = 20;
        for (int number = 0; number < tasks; ++number) spawn_detached(home, sleep_often(early, resumed, naps, number));
        await_that([&] { return home.stats().timers.tasks == 0; });
        EXPECT_EQ(early.load(), 0);
        EXPECT_EQ(resumed.load(), tasks * naps);
        const timer_stats sums = home.stats().timers;
        EXPECT_EQ(sums.fired, static_cast<std::uint64_t>(tasks * naps));
        EXPECT_EQ(sums.resumed_by_timer, sums.fired);
        EXPECT_EQ(sums.resumed_inline == 0, !is_inline);
        check_ledger_after_shutdown(home);
    }
}

task<> sleep_until_and_count(time_point until, std::atomic<int>& resumed) {
    co_await sleep_until(until);
    ++resumed;
}

/// All from one worker, so that they are due in one turn, or a few.
task<> spawn_all(runtime& home, int count, time_point until, std::atomic<int>& resumed) {
    for (int each = 0; each < count; ++each) spawn_detached(home, sleep_until_and_count(until, resumed));
    co_return;
}

TEST(the_inline_budget, says_how_many_sleepers_a_turn_resumes_on_the_spot) {
    const watchdog guard("inline budget", 30s);
    constexpr int count = 400;
    for (const std::size_t budget : {std::size_t{0}, std::size_t{8}, std::size_t{1'000}}) {
        std::atomic<int> resumed{0};
        runtime home({.workers = 1, .inline_budget = budget});
        home.block_on(spawn_all(home, count, chime::clock::now() + 30ms, resumed));
        await_that([&] { return resumed == count && home.stats().timers.tasks == 0; });
        const timer_stats sums = home.stats().timers;
        EXPECT_EQ(sums.resumed_by_timer, static_cast<std::uint64_t>(count));
        if (budget == 0) {
            EXPECT_EQ(sums.resumed_inline, 0U);
        } else if (budget > count) {
            EXPECT_EQ(sums.resumed_inline, static_cast<std::uint64_t>(count));
        } else {
            EXPECT_GE(sums.resumed_inline, 8U);
            EXPECT_LT(sums.resumed_inline, static_cast<std::uint64_t>(count));
        }
        check_ledger_after_shutdown(home);
    }
}

task<> run_until_told(std::atomic<bool>& has_begun, const std::atomic<bool>& is_over) {
    has_begun = true;
    while (!is_over) {}
    co_return;
}

TEST(a_task_that_never_yields, leaves_the_other_worker_to_everybody_else) {
    const watchdog guard("a task that never yields", 30s);
    std::atomic<bool> has_begun{false};
    std::atomic<bool> is_over{false};
    runtime home({.workers = 2});
    auto busy = home.spawn(run_until_told(has_begun, is_over));
    await_that([&] { return has_begun.load(); });
    EXPECT_EQ(home.block_on(sum_of_many(home, 200)), 19'900);
    std::atomic<int> fired{0};
    for (int count = 0; count < 50; ++count) spawn_detached(home, count_when_over(fired));
    await_that([&] { return fired == 50; });
    EXPECT_FALSE(busy.is_done());
    is_over = true;
    busy.wait();
    check_ledger_after_shutdown(home);
}

task<int> yield_often(int times) {
    for (int count = 0; count < times; ++count) co_await yield();
    co_return times;
}

TEST(tasks_that_are_ready, all_come_to_their_end_whoever_takes_them_over) {
    const watchdog guard("stealing", 30s);
    runtime home({.workers = 4});
    std::vector<join_handle<int>> all;
    for (int count = 0; count < 600; ++count) all.push_back(home.spawn(yield_often(100)));
    int sum = 0;
    for (join_handle<int>& each : all) {
        each.wait();
        sum += each.take();
    }
    EXPECT_EQ(sum, 60'000);
    check_ledger_after_shutdown(home);
}

task<> count_where(std::atomic<int>& over, std::atomic<int>& on_busy_thread, std::thread::id busy) {
    if (std::this_thread::get_id() == busy) ++on_busy_thread;
    ++over;
    co_return;
}

/// Spawns so many, which are with its own worker then, and blocks that until all of them are over.
task<> spawn_and_block(runtime& home, int count, std::atomic<int>& over, std::atomic<int>& on_busy_thread) {
    for (int each = 0; each < count; ++each) {
        spawn_detached(home, count_where(over, on_busy_thread, std::this_thread::get_id()));
    }
    while (over != count) std::this_thread::yield();
    co_return;
}

TEST(tasks_that_are_ready, with_a_worker_that_is_blocked_are_stolen_all_of_them) {
    const watchdog guard("stealing from a blocked worker", 30s);
    runtime home({.workers = 3});
    constexpr int count = 200;  // A worker has room for all of them.
    constexpr int rounds = 20;
    std::atomic<int> on_busy_thread{0};
    for (int round = 0; round < rounds; ++round) {
        std::atomic<int> over{0};
        home.block_on(spawn_and_block(home, count, over, on_busy_thread));
    }
    EXPECT_EQ(on_busy_thread.load(), 0);
    EXPECT_GE(home.stats().timers.stolen, static_cast<std::uint64_t>(count * rounds));
    check_ledger_after_shutdown(home);
}

task<wake_reason> sleep_with(cancel_token token, std::atomic<int>& asleep) {
    ++asleep;
    co_return co_await sleep_for(1h, std::move(token));
}

TEST(a_token, ends_the_sleeps_of_tasks_on_every_worker_at_once) {
    const watchdog guard("a token for many sleeps", 30s);
    runtime home({.workers = 3});
    cancel_source source;
    std::atomic<int> asleep{0};
    std::vector<join_handle<wake_reason>> all;
    for (int count = 0; count < 300; ++count) all.push_back(home.spawn(sleep_with(source.token(), asleep)));
    await_that([&] { return asleep == 300; });
    EXPECT_TRUE(source.request_cancel());
    for (auto& each : all) {
        each.wait();
        EXPECT_EQ(each.take(), wake_reason::cancelled);
    }
    EXPECT_EQ(home.block_on(sleep_with(source.token(), asleep)), wake_reason::cancelled);
    check_ledger_after_shutdown(home);
}

}  // namespace
}  // namespace chime::test
