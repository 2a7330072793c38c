// SPDX-License-Identifier: MIT
//
// Running a context until one task has come to its end.
#include "runtime/small_tasks.hpp"
#include "support/ledger.hpp"
#include "support/refusal.hpp"
#include "support/witness.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

TEST(block_on, a_context_that_runs_already_is_refused) {
    testing::virtual_context context;
    bool is_refused = false;
    context->post([&] {
        expect_refused(errc::already_running, [&] { static_cast<void>(block_on(*context, answer_after(1s, 1))); });
        is_refused = true;
    });
    context.run();
    EXPECT_TRUE(is_refused);
    EXPECT_EQ(context->timers().stats().tasks, 0U) << "nothing was spawned";
    check_ledger_at_rest(*context);
}

TEST(block_on, a_context_that_is_stopped_is_refused_and_the_task_is_not_touched) {
    io_context context;
    context.stop();
    task<int> kept = answer_after(1ms, 42);
    expect_refused(errc::stopped, [&] { static_cast<void>(block_on(context, std::move(kept))); });
    EXPECT_EQ(context.timers().stats().tasks, 0U) << "nothing was spawned";
    context.restart();
    EXPECT_EQ(block_on(context, std::move(kept)), 42) << "nor was it moved away";
    check_ledger_at_rest(context);
}

TEST(block_on, a_context_that_is_stopped_meanwhile_is_refused_and_the_task_lives_on) {
    io_context context;
    bool has_ended = false;
    struct sleeper {
        static task<> sleep(bool& noted) {
            co_await sleep_for(20ms);
            noted = true;
        }
    };
    context.timers().after(0s, [&] { context.stop(); });
    expect_refused(errc::stopped, [&] { block_on(context, sleeper::sleep(has_ended)); });
    EXPECT_FALSE(has_ended);
    EXPECT_GT(context.timers().stats().tasks, 0U);
    context.restart();
    context.run();
    EXPECT_TRUE(has_ended);
    check_ledger_at_rest(context);
}

task<> note_that_it_runs(bool& has_run, witness) {
    has_run = true;
    co_return;
}

TEST(block_on, a_context_without_two_places_is_refused_and_leaves_nothing_behind) {
    testing::virtual_context context({.max_tasks = 1});
    bool has_run = false;
    witness_report report;
    for (int round = 0; round < 3; ++round) {
        expect_refused(errc::too_many_tasks, "block_on() on a context takes two",
                       [&] { context.block_on(note_that_it_runs(has_run, witness(report))); });
        EXPECT_EQ(report.ends, round + 1) << "the task is destroyed";
    }
    context.run();
    EXPECT_FALSE(has_run);
    check_ledger_at_rest(*context);
}

task<int> add_to(int& sum) {
    co_await yield();
    co_return ++sum;
}

TEST(block_on, left_with_the_exception_of_somebody_else_keeps_the_place_of_its_task) {
    testing::virtual_context context({.max_tasks = 2});
    int sum = 0;
    context->post([] { throw std::runtime_error("somebody else's"); });
    EXPECT_THROW(context.block_on(add_to(sum)), std::runtime_error);
    {
        int local = 0;
        expect_refused(errc::too_many_tasks, [&] { context.block_on(add_to(local)); });
    }
    context.run();
    EXPECT_EQ(sum, 1) << "the first lives on, the second was destroyed";
    check_ledger_at_rest(*context);
}

TEST(block_on, a_context_with_two_places_gives_what_the_task_gives_again_and_again) {
    testing::virtual_context context({.max_tasks = 2});
    for (int round = 0; round < 10; ++round) EXPECT_EQ(context.block_on(answer_after(1s, round)), round);
    check_ledger_at_rest(*context);
}

TEST(block_on, an_empty_task_is_refused) {
    testing::virtual_context context;
    expect_refused(errc::empty_task, [&] { context.block_on(task<>()); });
    check_ledger_at_rest(*context);
}

task<int&> refer_to(int& number) {
    co_await yield();
    co_return number;
}

TEST(block_on, gives_references_and_what_can_only_be_moved) {
    testing::virtual_context context;
    int number = 42;
    EXPECT_EQ(&context.block_on(refer_to(number)), &number);
    struct maker {
        static task<std::unique_ptr<int>> make() { co_return std::make_unique<int>(7); }
    };
    EXPECT_EQ(*context.block_on(maker::make()), 7);
    EXPECT_EQ(context.block_on(sleep_for(1h)), wake_reason::elapsed);
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
