// SPDX-License-Identifier: MIT
//
// What only the real clock can show: nothing is early there either, and a loop that sleeps wakes in time.
#include "support/descriptors.hpp"
#include "support/ledger.hpp"
#include "support/running_loop.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

TEST(guarantee, g1_nothing_runs_before_its_deadline_by_the_real_clock) {
    io_context context;
    int ran = 0;
    for (std::int64_t delay_ns = 1; delay_ns < 50'000'000; delay_ns = delay_ns * 3 / 2 + 1) {
        const time_point before = std::chrono::steady_clock::now();
        context.timers().after(nanoseconds{delay_ns}, [&ran, before, delay_ns] {
            EXPECT_GE(std::chrono::steady_clock::now() - before, nanoseconds{delay_ns});
            ++ran;
        });
    }
    const std::size_t count = context.run();
    EXPECT_EQ(static_cast<std::size_t>(ran), count);
    EXPECT_GT(ran, 30);
    EXPECT_EQ(context.timers().stats().lateness.count(), count);
    check_ledger_at_rest(context);
}

task<> sleep_step_by_step(nanoseconds step, int count, int& early) {
    for (int done = 0; done < count; ++done) {
        const time_point before = std::chrono::steady_clock::now();
        co_await sleep_for(step);
        if (std::chrono::steady_clock::now() - before < step) ++early;
    }
}

TEST(guarantee, g1_no_sleep_is_early_by_the_real_clock) {
    io_context context;
    int early = 0;
    for (const nanoseconds step : {1ns, 100ns, 10'000ns, 100'000ns, 1'000'000ns}) {
        spawn_detached(context, sleep_step_by_step(step, 20, early));
    }
    context.run();
    EXPECT_EQ(early, 0);
    check_ledger_at_rest(context);
}

TEST(guarantee, g1_a_timer_that_another_thread_arms_is_not_early_and_not_forgotten) {
    running_loop loop;
    for (int round = 0; round < 20; ++round) {
        std::atomic<bool> has_run = false;
        const time_point before = std::chrono::steady_clock::now();
        // Earlier and earlier than what the loop sleeps for.
        const timer_handle far = loop->timers().after(1h, [] {});
        loop->timers().after(1ms, [&] { has_run = true; });
        wait_for(has_run);
        EXPECT_GE(std::chrono::steady_clock::now() - before, 1ms);
        EXPECT_EQ(loop->timers().cancel(far), cancel_result::cancelled);
    }
    loop.join();
    check_ledger_at_rest(*loop);
}

TEST(io_context, run_for_lasts_as_long_as_it_says) {
    io_context context;
    const auto guard = context.make_work_guard();
    const time_point before = std::chrono::steady_clock::now();
    EXPECT_EQ(context.run_for(20ms), 0U);
    EXPECT_GE(std::chrono::steady_clock::now() - before, 20ms);
    EXPECT_EQ(context.run_until(std::chrono::steady_clock::now() + 5ms), 0U);
    EXPECT_GE(std::chrono::steady_clock::now() - before, 25ms);
    check_ledger_at_rest(context);
}

TEST(poll_fd, becomes_readable_when_a_deadline_has_come) {
    io_context context;
    const int fd = context.poll_fd();
    int ran = 0;
    const time_point before = std::chrono::steady_clock::now();
    context.timers().after(20ms, [&] { ++ran; });
    EXPECT_EQ(context.poll(), 0U);
    EXPECT_FALSE(is_readable(fd));
    EXPECT_TRUE(is_readable(fd, 10'000));
    EXPECT_GE(std::chrono::steady_clock::now() - before, 20ms);
    EXPECT_EQ(context.poll(), 1U);
    EXPECT_EQ(ran, 1);
    EXPECT_FALSE(is_readable(fd));
    check_ledger_at_rest(context);
}

TEST(poll_fd, drives_a_context_from_another_loop) {
    io_context context;
    const int fd = context.poll_fd();
    int beats = 0;
    timer_handle beat;
    beat = context.timers().every(2ms, missed_ticks::burst, [&] {
        if (++beats == 10) context.timers().cancel(beat);
    });
    context.poll();
    while (beats < 10) {
        ASSERT_TRUE(is_readable(fd, 10'000)) << "after " << beats;
        context.poll();
    }
    EXPECT_FALSE(is_readable(fd));
    check_ledger_at_rest(context);
}

}  // namespace
}  // namespace chime::test
