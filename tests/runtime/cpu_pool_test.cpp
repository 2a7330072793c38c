// SPDX-License-Identifier: MIT
#include "support/ledger.hpp"
#include "support/refusal.hpp"
#include "support/running_loop.hpp"
#include "support/witness.hpp"

#include <chime/cpu_pool.hpp>
#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

template <class T>
task<> await_job(pool_job<T> job, std::optional<T>& result, std::thread::id& went_on) {
    T value = co_await job;
    result.emplace(std::move(value));
    went_on = std::this_thread::get_id();
}

TEST(cpu_pool, computes_elsewhere_and_goes_on_in_the_loop) {
    io_context context;
    std::optional<std::thread::id> computed;
    std::thread::id went_on;
    spawn_detached(context,
                   await_job(context.cpu_pool().submit([] { return std::this_thread::get_id(); }), computed, went_on));
    context.run();
    ASSERT_TRUE(computed);
    EXPECT_NE(*computed, std::this_thread::get_id());
    EXPECT_EQ(went_on, std::this_thread::get_id());
    check_ledger_at_rest(context);
}

TEST(cpu_pool, starts_its_threads_with_the_first_job) {
    io_context context({.pool_threads = 3});
    EXPECT_EQ(context.cpu_pool().thread_count(), 0U);
    static_cast<void>(context.cpu_pool().submit([] {}));
    EXPECT_EQ(context.cpu_pool().thread_count(), 3U);
    context.run();
    check_ledger_at_rest(context);
}

TEST(cpu_pool, gives_values_that_can_only_be_moved) {
    io_context context;
    std::optional<std::unique_ptr<int>> result;
    std::thread::id went_on;
    auto compute = [kept = std::make_unique<int>(41)] { return std::make_unique<int>(*kept + 1); };
    spawn_detached(context, await_job(context.cpu_pool().submit(std::move(compute)), result, went_on));
    context.run();
    ASSERT_TRUE(result && *result);
    EXPECT_EQ(**result, 42);
    check_ledger_at_rest(context);
}

task<> await_failure(pool_job<void> job, std::string& failure) {
    try {
        co_await job;
        failure = "none";
    } catch (const std::system_error& error) {
        failure = error.code() == errc::cancelled ? "cancelled" : "another system_error";
    } catch (const std::exception& error) {
        failure = error.what();
    }
}

TEST(cpu_pool, carries_exceptions_to_whoever_awaits_the_job) {
    io_context context;
    std::string thrown;
    std::string fine;
    spawn_detached(context,
                   await_failure(context.cpu_pool().submit([] { throw std::out_of_range("from a job"); }), thrown));
    spawn_detached(context, await_failure(context.cpu_pool().submit([] {}), fine));
    static_cast<void>(context.cpu_pool().submit([] { throw std::runtime_error("that nobody awaits"); }));
    EXPECT_NO_THROW(context.run());
    EXPECT_EQ(thrown, "from a job");
    EXPECT_EQ(fine, "none");
    check_ledger_at_rest(context);
}

TEST(cpu_pool, lets_a_job_that_is_done_be_awaited_later) {
    io_context context;
    auto job = context.cpu_pool().submit([] { return 42; });
    context.run();
    EXPECT_TRUE(job.is_done());
    std::optional<int> result;
    std::thread::id went_on;
    spawn_detached(context, await_job(std::move(job), result, went_on));
    context.run();
    EXPECT_EQ(result, 42);
    check_ledger_at_rest(context);
}

task<int> await_number(const pool_job<int>& job) {
    co_return co_await job;
}

constexpr std::string_view awaited_before = "await a job once";

TEST(cpu_pool, gives_a_value_once) {
    io_context context;
    const auto job = context.cpu_pool().submit([] { return 42; });
    EXPECT_EQ(block_on(context, await_number(job)), 42);
    expect_refused(errc::empty_task, awaited_before, [&] { static_cast<void>(block_on(context, await_number(job))); });
    check_ledger_at_rest(context);
}

task<> await_nothing(const pool_job<void>& job) {
    co_await job;
}

TEST(cpu_pool, lets_a_job_without_a_value_be_awaited_once_too) {
    io_context context;
    const auto job = context.cpu_pool().submit([] {});
    block_on(context, await_nothing(job));
    expect_refused(errc::empty_task, awaited_before, [&] { block_on(context, await_nothing(job)); });
    const auto failed = context.cpu_pool().submit([] { throw std::out_of_range("once"); });
    EXPECT_THROW(block_on(context, await_nothing(failed)), std::out_of_range);
    expect_refused(errc::empty_task, awaited_before, [&] { block_on(context, await_nothing(failed)); });
    check_ledger_at_rest(context);
}

TEST(cpu_pool, carries_an_exception_instead_of_a_value) {
    io_context context;
    const auto job = context.cpu_pool().submit([]() -> int { throw std::out_of_range("no number"); });
    EXPECT_THROW(static_cast<void>(block_on(context, await_number(job))), std::out_of_range);
    check_ledger_at_rest(context);
}

TEST(cpu_pool, refuses_to_wait_for_a_job_that_was_moved_away) {
    io_context context;
    auto job = context.cpu_pool().submit([] { return 42; });
    auto taken = std::move(job);
    EXPECT_FALSE(job.is_done());  // NOLINT(bugprone-use-after-move): that is what is tested.
    expect_refused(errc::empty_task, [&] { static_cast<void>(block_on(context, await_number(job))); });
    job = std::move(taken);
    EXPECT_EQ(block_on(context, await_number(job)), 42);
    EXPECT_TRUE(job.is_done());
    check_ledger_at_rest(context);
}

TEST(cpu_pool, refuses_a_second_task_that_waits_for_the_same_job) {
    io_context context;
    std::atomic<bool> may_end = false;
    const auto job = context.cpu_pool().submit([&] {
        wait_for(may_end);
        return 42;
    });
    auto first = spawn(context, await_number(job));
    auto second = spawn(context, await_number(job));
    while (!second.is_done()) context.poll();
    EXPECT_FALSE(job.is_done());
    expect_refused(errc::empty_task, [&] { static_cast<void>(second.take()); });
    may_end = true;
    context.run();
    EXPECT_EQ(first.take(), 42);
    check_ledger_at_rest(context);
}

TEST(cpu_pool, begins_jobs_in_the_order_of_submission) {
    io_context context({.pool_threads = 1});
    std::vector<int> order;
    for (int number = 0; number < 1000; ++number) {
        static_cast<void>(context.cpu_pool().submit([&order, number] { order.push_back(number); }));
    }
    context.run();
    ASSERT_EQ(order.size(), 1000U);
    for (int number = 0; number < 1000; ++number) ASSERT_EQ(order[static_cast<std::size_t>(number)], number);
    check_ledger_at_rest(context);
}

TEST(cpu_pool, destroys_the_function_on_its_own_thread_before_the_task_goes_on) {
    io_context context;
    witness_report report;
    int ends_when_resumed = 0;
    struct watcher {
        static task<> watch(pool_job<void> job, witness_report& told, int& ends) {
            co_await job;
            ends = told.ends;
        }
    };
    spawn_detached(context,
                   watcher::watch(context.cpu_pool().submit([kept = witness(report)] {}), report, ends_when_resumed));
    context.run();
    EXPECT_EQ(ends_when_resumed, 1);
    EXPECT_EQ(report.ends, 1);
    EXPECT_NE(report.thread.load(), std::this_thread::get_id());
    check_ledger_at_rest(context);
}

TEST(cpu_pool, takes_jobs_from_any_thread) {
    io_context context;
    std::atomic<int> ran = 0;
    std::vector<std::thread> strangers;
    for (int thread = 0; thread < 4; ++thread) {
        strangers.emplace_back([&] {
            for (int count = 0; count < 500; ++count) static_cast<void>(context.cpu_pool().submit([&] { ++ran; }));
        });
    }
    for (std::thread& each : strangers) each.join();
    context.run();
    EXPECT_EQ(ran, 2000);
    check_ledger_at_rest(context);
}

task<> use_pool_many_times(io_context& home, int rounds, int& sum) {
    for (int round = 0; round < rounds; ++round) {
        auto job = home.cpu_pool().submit([round] { return round; });
        sum += co_await job;
    }
}

TEST(cpu_pool, serves_many_tasks_that_come_back_again_and_again) {
    io_context context;
    int sum = 0;
    for (int count = 0; count < 10; ++count) spawn_detached(context, use_pool_many_times(context, 200, sum));
    context.run();
    EXPECT_EQ(sum, 10 * 199 * 200 / 2);
    check_ledger_at_rest(context);
}

TEST(cpu_pool, keeps_virtual_time_from_jumping_while_a_job_runs) {
    testing::virtual_clock clock;
    io_context context({.clock = &clock});
    std::atomic<bool> may_end = false;
    time_point during{};
    time_point fired{};
    std::thread::id went_on;
    std::optional<int> result;
    context.timers().after(1h, [&] { fired = clock.now(); });
    spawn_detached(context, await_job(context.cpu_pool().submit([&] {
                       wait_for(may_end);
                       during = clock.now();
                       return 1;
                   }),
                                      result, went_on));
    std::thread releaser([&] {
        // The loop is asleep by now, or soon will be; either way it may not jump.
        while (context.timers().stats().parks == 0) std::this_thread::yield();
        may_end = true;
    });
    context.run();
    releaser.join();
    EXPECT_EQ(during, time_point{});
    EXPECT_EQ(fired, time_point{} + 1h);
    check_ledger_at_rest(context);
}

TEST(cpu_pool, tells_a_task_of_another_context_that_its_job_was_dropped) {
    io_context here;
    std::string running;
    std::string waiting;
    std::atomic<bool> may_end = false;
    std::atomic<bool> has_begun = false;
    std::thread releaser;
    {
        io_context there({.pool_threads = 1});
        spawn_detached(here, await_failure(there.cpu_pool().submit([&] {
                           has_begun = true;
                           wait_for(may_end);
                       }),
                                           running));
        spawn_detached(here,
                       await_failure(there.cpu_pool().submit([] { ADD_FAILURE() << "it was dropped"; }), waiting));
        here.poll();
        wait_for(has_begun);
        releaser = std::thread([&] {
            std::this_thread::sleep_for(5ms);
            may_end = true;
        });
        check_ledger(there);
    }
    here.run();
    releaser.join();
    EXPECT_EQ(running, "none");
    EXPECT_EQ(waiting, "cancelled");
    check_ledger_at_rest(here);
}

TEST(cpu_pool, lets_a_task_be_destroyed_that_awaits_a_job) {
    std::atomic<bool> has_begun = false;
    std::atomic<bool> may_end = false;
    std::string failure;
    io_context there;
    {
        io_context here;
        spawn_detached(here, await_failure(there.cpu_pool().submit([&] {
                           has_begun = true;
                           wait_for(may_end);
                       }),
                                           failure));
        here.poll();
        wait_for(has_begun);
        check_ledger(here);
    }
    may_end = true;
    there.run();
    EXPECT_EQ(failure, "");
    check_ledger_at_rest(there);
}

/// Hands in a job when it is destroyed, and notes whether it was refused.
struct last_wish {
    last_wish(cpu_pool& asked, bool& refused) : pool(&asked), is_refused(&refused) {}
    last_wish(last_wish&& other) noexcept : pool(std::exchange(other.pool, nullptr)), is_refused(other.is_refused) {}
    ~last_wish() {
        if (pool == nullptr) return;
        try {
            static_cast<void>(pool->submit([] {}));
        } catch (const std::system_error& error) {
            *is_refused = error.code() == errc::stopped;
        }
    }
    cpu_pool* pool;
    bool* is_refused;
};

TEST(cpu_pool, refuses_a_job_that_comes_while_its_context_is_destroyed) {
    bool is_refused = false;
    {
        io_context context;
        context.timers().after(1h, [kept = last_wish(context.cpu_pool(), is_refused)] {});
    }
    EXPECT_TRUE(is_refused);
}

TEST(cpu_pool, goes_on_when_the_timers_were_stopped) {
    io_context context;
    std::optional<int> result;
    std::thread::id went_on;
    spawn_detached(context, await_job(context.cpu_pool().submit([] { return 5; }), result, went_on));
    context.poll();
    context.timers().stop();
    context.run();
    EXPECT_EQ(result, 5);
    check_ledger_at_rest(context);
}

}  // namespace
}  // namespace chime::test
