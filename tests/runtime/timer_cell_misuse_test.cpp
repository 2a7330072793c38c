// SPDX-License-Identifier: MIT
//
// Awaitables on a cell that do not do what they should: what is prepared is not committed, or twice.
#include "support/ledger.hpp"

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>
#include <chime/timer_cell.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <stdexcept>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// Prepares a wait in somebody else's cell and fails.
struct fails_when_prepared {
    timer_cell& cell;

    [[nodiscard]] static bool await_ready() noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> frame) {
        cell.prepare(frame, 1h);
        throw std::runtime_error("prepared, and not committed");
    }
    static void await_resume() noexcept {}
};

task<> fail_and_end(timer_cell& cell, int& failed) {
    try {
        fails_when_prepared failing{cell};
        co_await failing;
    } catch (const std::runtime_error&) {
        ++failed;
    }
}

TEST(timer_cell, that_outlives_a_task_which_has_failed_to_commit_it_is_harmless) {
    testing::virtual_context context;
    timer_cell cell(context->timers());
    int failed = 0;
    for (int round = 1; round <= 3; ++round) {
        spawn_detached(*context, fail_and_end(cell, failed));
        context.advance(2h);
        EXPECT_EQ(failed, round);
        EXPECT_EQ(context->timers().stats().tasks, 0U);
    }
    cell.reset();
    check_ledger(*context);
}

task<> fail_and_sleep(timers& home, int& failed) {
    {
        timer_cell cell(home);
        try {
            fails_when_prepared failing{cell};
            co_await failing;
        } catch (const std::runtime_error&) {
            ++failed;
        }
    }
    const wake_reason why = co_await sleep_for(1s);
    EXPECT_EQ(why, wake_reason::elapsed);
    ++failed;
}

TEST(timer_cell, that_is_gone_before_it_was_committed_leaves_the_task_to_wait_for_something_else) {
    testing::virtual_context context;
    int steps = 0;
    spawn_detached(*context, fail_and_sleep(context->timers(), steps));
    context.advance(2s);
    EXPECT_EQ(steps, 2);
    check_ledger(*context);
}

/// Commits as often as it is told to.
struct commits {
    timer_cell cell;
    int times;

    commits(timers& home, int count) noexcept : cell(home), times(count) {}
    [[nodiscard]] static bool await_ready() noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> frame) {
        cell.prepare(frame, 1ms);
        bool suspends = true;
        for (int count = 0; count < times; ++count) suspends = cell.commit();
        return suspends;
    }
    static void await_resume() noexcept {}
};

task<> await_with_commits(timers& home, int count) {
    commits awaited(home, count);
    co_await awaited;
}

void run_with_commits(int count) {
    io_context context;
    spawn_detached(context, await_with_commits(context.timers(), count));
    context.run();
}

TEST(timer_cell_death_test, is_committed_once_for_each_time_that_it_is_prepared) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    run_with_commits(1);
    EXPECT_DEATH(run_with_commits(2), "chime: misuse: a cell commits what it has prepared, once");
    EXPECT_DEATH(run_with_commits(0), "built on timer_cell and commits what it has prepared");
}

}  // namespace
}  // namespace chime::test
