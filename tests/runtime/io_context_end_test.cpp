// SPDX-License-Identifier: MIT
//
// What a context takes along when it is destroyed, and how it is not to be ended.
#include "support/ledger.hpp"
#include "support/running_loop.hpp"
#include "support/witness.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>
#include <chime/timer_cell.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <memory>
#include <thread>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

TEST(io_context_death, is_aborted_when_it_is_destroyed_inside_its_own_callback) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            auto context = std::make_unique<io_context>();
            context->timers().after(0s, [&] { context.reset(); });
            context->run();
        },
        "chime: misuse: a context is not destroyed while it runs");
    EXPECT_DEATH(
        {
            auto context = std::make_unique<io_context>();
            context->post([&] { context.reset(); });
            context->run();
        },
        "chime: misuse: a context is not destroyed while it runs");
}

/// Waits like a task should, and tells where: what other libraries do with that is not for a task of ours.
struct betrayed_wait {
    bool await_ready() { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> frame) {
        betrayed = frame;
        static_cast<void>(cell.prepare(frame, 1h));
        return cell.commit();
    }
    void await_resume() { cell.reason(); }

    std::coroutine_handle<>& betrayed;
    timer_cell cell{};
};

task<> wait_betrayed(std::coroutine_handle<>& betrayed) {
    betrayed_wait wait{betrayed};
    co_await wait;
}

task<> wait_elsewhere() {
    const std::suspend_always forever;
    co_await forever;
}

TEST(task_death, is_aborted_when_it_is_resumed_by_anybody_but_its_loop) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const char* const says = "chime: misuse: a task is resumed by its loop alone";
    EXPECT_DEATH(
        {
            io_context context;
            std::coroutine_handle<> frame;
            spawn_detached(context, wait_betrayed(frame));
            context.poll();
            frame.resume();
        },
        says);
    EXPECT_DEATH(
        {
            io_context context;
            std::coroutine_handle<> frame;
            spawn_detached(context, wait_betrayed(frame));
            context.poll();
            context.post([&] { frame.resume(); });
            context.poll();
        },
        says);
}

TEST(task_death, is_aborted_when_it_awaits_what_nobody_of_ours_would_resume) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            io_context context;
            spawn_detached(context, wait_elsewhere());
            context.run();
        },
        "chime: misuse: a task suspends through an awaitable of chime");
}

TEST(work_guard_death, is_aborted_when_it_outlives_its_context) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            auto context = std::make_unique<io_context>();
            const auto guard = context->make_work_guard();
            context.reset();
        },
        "chime: misuse: a work_guard does not outlive its context");
}

TEST(scoped_timer, takes_a_handle_that_names_nothing_nothing_any_more_or_what_is_elsewhere) {
    io_context context;
    const scoped_timer nothing(context.timers(), {});
    const timer_handle gone = context.timers().after(1h, [] {});
    EXPECT_EQ(context.timers().cancel(gone), cancel_result::cancelled);
    scoped_timer too_late(context.timers(), gone);
    EXPECT_EQ(too_late.cancel(), cancel_result::gone);
    io_context other;
    scoped_timer elsewhere(context.timers(), other.timers().after(1h, [] {}));
    EXPECT_EQ(elsewhere.cancel(), cancel_result::gone);
}

task<> hold(io_context::work_guard guard) {
    const io_context::work_guard held = std::move(guard);
    auto endless = sleep_until(never);
    co_await endless;
}

TEST(work_guard, may_belong_to_what_ends_with_its_context) {
    io_context context;
    spawn_detached(context, hold(context.make_work_guard()));
    context.timers().after(1h, [guard = std::make_shared<io_context::work_guard>(context)] {});
    context.poll();
}

TEST(virtual_clock_death, is_aborted_when_it_is_destroyed_before_its_contexts) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            auto clock = std::make_unique<testing::virtual_clock>();
            const io_context context({.clock = clock.get()});
            clock.reset();
        },
        "chime: misuse: a virtual clock outlives the contexts that follow it");
}

struct owns_timers {
    explicit owns_timers(timers& home, int& counted)
        : watchdog(home, home.after(2h, [] { ADD_FAILURE() << "its owner is gone"; })), ends(counted) {}
    owns_timers(const owns_timers&) = delete;
    owns_timers& operator=(const owns_timers&) = delete;
    ~owns_timers() { ++ends; }
    scoped_timer watchdog;
    int& ends;
};

task<> sleep_and_own(timers& home, int& ends) {
    const owns_timers kept(home, ends);
    co_await sleep_for(1h);
}

TEST(io_context, that_is_destroyed_destroys_sleepers_that_own_timers_and_closures_that_own_closures) {
    int ends = 0;
    witness_report report;
    {
        testing::virtual_context context;
        timers& timers = context->timers();
        for (int count = 0; count < 100; ++count) spawn_detached(*context, sleep_and_own(timers, ends));
        context.settle();
        const timer_handle inner = timers.after(1h, [kept = witness(report)] {});
        timers.after(1h, [owner = scoped_timer(timers, inner)] {});
        check_ledger(*context);
    }
    EXPECT_EQ(ends, 100);
    EXPECT_EQ(report.ends, 1);
}

TEST(io_context, that_is_destroyed_without_ever_having_run_forgets_nothing) {
    witness_report report;
    {
        testing::virtual_context context;
        context->timers().after(1h, [kept = witness(report)] {});
        context->timers().every(1h, missed_ticks::skip, [kept = witness(report)] {});
        context->post([kept = witness(report)] {});
        const timer_handle cancelled = context->timers().after(1h, [kept = witness(report)] {});
        context->timers().cancel(cancelled);
        spawn_detached(*context, sleep_until(never));
        check_ledger(*context);
    }
    EXPECT_EQ(report.ends, 4);
}

TEST(io_context, that_is_destroyed_waits_for_the_job_that_runs_and_drops_those_that_wait) {
    std::atomic<bool> has_begun = false;
    std::atomic<bool> may_end = false;
    std::atomic<bool> has_ended = false;
    std::atomic<int> ran = 0;
    witness_report report;
    std::thread releaser;
    {
        io_context context({.pool_threads = 1});
        static_cast<void>(context.cpu_pool().submit([&] {
            has_begun = true;
            wait_for(may_end);
            has_ended = true;
        }));
        for (int count = 0; count < 10; ++count) {
            static_cast<void>(context.cpu_pool().submit([&, kept = witness(report)] { ++ran; }));
        }
        wait_for(has_begun);
        releaser = std::thread([&] {
            std::this_thread::sleep_for(5ms);
            may_end = true;
        });
        check_ledger(context);
    }
    EXPECT_TRUE(has_ended);
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(report.ends, 10);
    releaser.join();
}

}  // namespace
}  // namespace chime::test
