// SPDX-License-Identifier: MIT
#include "support/ledger.hpp"
#include "support/refusal.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>
#include <chime/timer_cell.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <limits>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

task<> note_ticks(timer_delay& tick, int count, std::function<void(int)> work, std::vector<time_point>& ticks) {
    for (int done = 0; done < count; ++done) {
        const wake_reason reason = co_await tick;
        if (reason == wake_reason::cancelled) co_return;
        ticks.push_back(this_task::now());
        work(done);
    }
}

TEST(timer_delay, ticks_without_drift_and_leaves_missed_ticks_out) {
    testing::virtual_context context;
    timer_delay tick(context->timers(), 20ms);
    std::vector<time_point> ticks;
    const auto work = [&](int done) {
        context.clock().advance(done == 1 ? 50ms : 7ms);  // The second time it takes too long.
    };
    context.advance(5ms);
    spawn_detached(*context, note_ticks(tick, 5, work, ticks));
    context.run();
    const time_point start = time_point{} + 5ms;
    EXPECT_EQ(ticks, (std::vector{start + 20ms, start + 40ms, start + 100ms, start + 120ms, start + 140ms}));
    check_ledger_at_rest(*context);
}

TEST(timer_delay, for_one_time_waits_once_and_is_due_afterwards) {
    testing::virtual_context context;
    timer_delay once(context->timers(), time_point{} + 1s);
    std::vector<time_point> ticks;
    spawn_detached(*context, note_ticks(
                                 once, 3, [](int) {}, ticks));
    context.run();
    EXPECT_EQ(ticks, (std::vector(3, time_point{} + 1s)));
    check_ledger_at_rest(*context);
}

TEST(timer_delay, ends_when_its_handle_is_cancelled_and_goes_on_when_it_is_awaited_again) {
    testing::virtual_context context;
    timer_delay tick(context->timers(), 1s);
    std::vector<time_point> ticks;
    spawn_detached(*context, note_ticks(
                                 tick, 100, [](int) {}, ticks));
    context.advance(2500ms);
    EXPECT_EQ(ticks.size(), 2U);
    EXPECT_EQ(context->timers().cancel(tick.handle()), cancel_result::cancelled);
    context.run();
    EXPECT_EQ(context.now(), time_point{} + 2500ms);
    EXPECT_EQ(tick.cell().generation(), 3U);
    spawn_detached(*context, note_ticks(
                                 tick, 1, [](int) {}, ticks));
    context.run();
    EXPECT_EQ(ticks.back(), time_point{} + 3s) << "the tick that was cancelled has not come yet";
    spawn_detached(*context, note_ticks(
                                 tick, 1, [](int) {}, ticks));
    context.run();
    EXPECT_EQ(ticks.back(), time_point{} + 4s) << "and the next one is the next";
    check_ledger_at_rest(*context);
}

TEST(timer_delay, goes_on_behind_a_tick_that_was_moved_to_earlier) {
    testing::virtual_context context;
    timer_delay tick(context->timers(), 1s);
    std::vector<time_point> ticks;
    spawn_detached(*context, note_ticks(
                                 tick, 3, [](int) {}, ticks));
    context.advance(1200ms);
    EXPECT_TRUE(context->timers().postpone(tick.handle(), 100ms));
    context.run();
    EXPECT_EQ(ticks, (std::vector{time_point{} + 1s, time_point{} + 1300ms, time_point{} + 3s}));
    check_ledger_at_rest(*context);
}

TEST(timer_delay, refuses_an_interval_that_is_not_longer_than_zero) {
    testing::virtual_context context;
    timers& timers = context->timers();
    expect_refused(errc::bad_period, [&] { const timer_delay delay(timers, 0s); });
    expect_refused(errc::bad_period, [&] { const timer_delay delay(timers, -1h); });
    expect_refused(std::errc::invalid_argument, [&] {
        const timer_delay delay(timers, std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN()));
    });
    check_ledger_at_rest(*context);
}

TEST(timer_delay, with_an_endless_interval_waits_for_its_handle_alone) {
    testing::virtual_context context;
    timer_delay endless(context->timers(), std::chrono::hours::max());
    std::vector<time_point> ticks;
    spawn_detached(*context, note_ticks(
                                 endless, 1, [](int) {}, ticks));
    context.advance_to(never - 1ns);
    EXPECT_TRUE(ticks.empty());
    EXPECT_EQ(context->timers().cancel(endless.handle()), cancel_result::cancelled);
    context.run();
    EXPECT_TRUE(ticks.empty());
    check_ledger_at_rest(*context);
}

task<> own_delay(timers& home, timer_handle& named) {
    timer_delay tick(home, 1h);
    home.after(0s, [&] { named = tick.handle(); });
    co_await tick;
}

TEST(timer_delay, in_a_frame_that_is_destroyed_is_cancelled_with_it) {
    timer_handle named;
    {
        testing::virtual_context context;
        spawn_detached(*context, own_delay(context->timers(), named));
        context.settle();
        EXPECT_TRUE(named.is_sleep());
        EXPECT_EQ(named.task_slot() | 1U << 31U, named.index);
        EXPECT_NE(named.task_id(), 0U);
        check_ledger(*context);
    }
    testing::virtual_context another;
    EXPECT_EQ(another->timers().cancel(named), cancel_result::gone);
    check_ledger_at_rest(*another);
}

TEST(timer_handle, names_a_task_only_if_it_names_a_sleep) {
    testing::virtual_context context;
    const timer_handle callback = context->timers().after(1s, [] {});
    EXPECT_FALSE(callback.is_sleep());
    EXPECT_EQ(callback.task_slot(), 0U);
    EXPECT_EQ(callback.task_id(), 0U);
    timer_handle sleep;
    struct sleeper {
        static task<> sleep(timers& home, timer_handle& named) {
            timer_delay delay(home, time_point{} + 2s);
            home.after(0s, [&] { named = delay.handle(); });
            co_await delay;
        }
    };
    spawn_detached(*context, sleeper::sleep(context->timers(), sleep));
    context.run();
    EXPECT_TRUE(sleep.is_sleep());
    EXPECT_EQ(sleep.task_id(), sleep.timer_id());
    EXPECT_LT(sleep.task_slot(), 1U << 31U);
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
