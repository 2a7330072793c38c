// SPDX-License-Identifier: MIT
//
// The first programs that were ever written down for this library, word for word but for what they note. Real time.

#include "support/ledger.hpp"

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/timer.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

using namespace chime;

namespace {

using real_clock = std::chrono::steady_clock;

/// Where and when each step of a program was taken.
struct step {
    std::thread::id thread = std::this_thread::get_id();
    real_clock::time_point time = real_clock::now();
};
std::vector<step> steps;

/// Runs a context on a thread of its own and answers which one that was.
std::thread::id run_elsewhere(io_context& ctx) {
    std::thread::id id;
    std::thread([&] {
        id = std::this_thread::get_id();
        ctx.run();
    }).join();
    return id;
}

class seed_programs : public ::testing::Test {
 protected:
    void SetUp() override { steps.clear(); }
};

TEST_F(seed_programs, a_callback_runs_after_its_delay_on_the_thread_that_runs_the_context) {
    const auto began = real_clock::now();
    io_context ctx;
    auto& t = ctx.timers();

    t.after(std::chrono::seconds(1), [&]() { steps.emplace_back(); });

    const std::thread::id loop = run_elsewhere(ctx);
    ASSERT_EQ(steps.size(), 1U);
    EXPECT_EQ(steps[0].thread, loop);
    EXPECT_GE(steps[0].time - began, std::chrono::seconds(1));
    test::check_ledger_at_rest(ctx);
}

task<void> job(io_context& ctx) {
    auto& t = ctx.timers();

    // Hop onto scheduler thread (optional but common in this design)
    co_await ctx.get_scheduler().schedule();
    steps.emplace_back();

    co_await t.sleep_for(std::chrono::milliseconds(250));
    steps.emplace_back();
    co_await t.sleep_for(std::chrono::milliseconds(250));
    steps.emplace_back();

    co_return;
}

TEST_F(seed_programs, a_coroutine_sleeps_twice_and_resumes_on_the_thread_that_runs_the_context) {
    io_context ctx;

    // Run coroutine in detached mode
    spawn_detached(ctx, job(ctx));

    const std::thread::id loop = run_elsewhere(ctx);
    ASSERT_EQ(steps.size(), 3U);
    for (const step& each : steps) EXPECT_EQ(each.thread, loop);
    EXPECT_GE(steps[1].time - steps[0].time, std::chrono::milliseconds(250));
    EXPECT_GE(steps[2].time - steps[1].time, std::chrono::milliseconds(250));
    EXPECT_LT(steps[2].time - steps[0].time, std::chrono::milliseconds(1'500));
    test::check_ledger_at_rest(ctx);
}

task<void> cancellable_sleep(io_context& ctx) {
    cancel_source src;
    cancel_token ct = src.token();
    steps.emplace_back();

    // Cancel after 100ms
    ctx.timers().after(std::chrono::milliseconds(100), [&]() { src.request_cancel(); });

    // This sleep will be skipped if cancellation is observed before firing
    co_await ctx.timers().sleep_for(std::chrono::seconds(1), ct);
    steps.emplace_back();

    co_return;
}

TEST_F(seed_programs, a_cancelled_sleep_ends_when_it_is_cancelled_and_not_at_its_deadline) {
    io_context ctx;
    spawn_detached(ctx, cancellable_sleep(ctx));
    const std::thread::id loop = run_elsewhere(ctx);
    ASSERT_EQ(steps.size(), 2U);
    EXPECT_EQ(steps[1].thread, loop);
    EXPECT_GE(steps[1].time - steps[0].time, std::chrono::milliseconds(100));
    EXPECT_LT(steps[1].time - steps[0].time, std::chrono::seconds(1));
    EXPECT_EQ(ctx.timers().stats().resumed_by_cancel, 1U);
    test::check_ledger_at_rest(ctx);
}

}  // namespace
