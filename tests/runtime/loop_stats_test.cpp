// SPDX-License-Identifier: MIT
//
// What a context counts beside its timers: turns that took long, sleepers that were queued, tickets that were moved or
// thrown away, and waking up for nothing.

#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

TEST(longest_turn, is_as_long_as_all_that_has_run_in_it) {
    testing::virtual_context context({.time_callbacks = true});
    for (const auto taken : {3s, 4s}) {
        context->timers().after(1min, [&context, taken] { context.clock().advance(taken); });
    }
    context->timers().after(2min, [&] { context.clock().advance(5s); });
    context.advance(90s);
    EXPECT_EQ(context->timers().stats().longest_callback, 4s);
    EXPECT_EQ(context->timers().stats().longest_turn, 7s);
    context.advance(1min);
    EXPECT_EQ(context->timers().stats().longest_callback, 5s);
    EXPECT_EQ(context->timers().stats().longest_turn, 7s) << "the longest, and not the last";
    check_ledger_at_rest(*context);
}

TEST(longest_turn, is_not_measured_unless_somebody_asks_for_it) {
    testing::virtual_context context;
    context->timers().after(1min, [&] { context.clock().advance(3s); });
    context.advance(2min);
    EXPECT_EQ(context->timers().stats().longest_callback, 0s);
    EXPECT_EQ(context->timers().stats().longest_turn, 0s);
    check_ledger_at_rest(*context);
}

task<> sleep_a_second(int& woken) {
    co_await sleep_for(1s);
    ++woken;
}

/// Ten sleepers that are due at once.
timer_stats after_ten_sleepers(io_context_config config) {
    testing::virtual_context context(config);
    int woken = 0;
    for (int each = 0; each < 10; ++each) spawn_detached(*context, sleep_a_second(woken));
    context.settle();
    const timer_stats before = context->timers().stats();
    context.run();
    EXPECT_EQ(woken, 10);
    check_ledger_at_rest(*context);
    timer_stats after = context->timers().stats();
    EXPECT_EQ(after.resumed_by_timer, 10U);
    EXPECT_EQ(after.resumed_inline + after.resumed_queued, after.resumed()) << "the beginning counts as well";
    return after -= before;
}

TEST(resumed_queued, counts_sleepers_that_have_waited_for_their_turn) {
    const timer_stats at_once = after_ten_sleepers({});
    EXPECT_EQ(at_once.resumed_inline, 10U);
    EXPECT_EQ(at_once.resumed_queued, 0U);
    const timer_stats queued = after_ten_sleepers({.inline_resumption = false});
    EXPECT_EQ(queued.resumed_inline, 0U);
    EXPECT_EQ(queued.resumed_queued, 10U);
}

task<> yield_three_times() {
    for (int each = 0; each < 3; ++each) co_await yield();
}

TEST(resumed_queued, counts_every_task_that_begins_and_every_yield) {
    testing::virtual_context context;
    spawn_detached(*context, yield_three_times());
    context.run();
    EXPECT_EQ(context->timers().stats().resumed_queued, 4U);
    EXPECT_EQ(context->timers().stats().resumed_inline, 0U);
    check_ledger_at_rest(*context);
}

TEST(cascaded, counts_tickets_that_have_come_down_from_far_away) {
    testing::virtual_context context;
    for (int each = 0; each < 10; ++each) context->timers().after(1ms, [] {});
    context.run();
    EXPECT_EQ(context->timers().stats().cascaded, 0U) << "near ones lie where they fire";
    for (int each = 0; each < 10; ++each) context->timers().after(1h, [] {});
    context.run();
    const std::uint64_t from_far_away = context->timers().stats().cascaded;
    EXPECT_GE(from_far_away, 10U);
    EXPECT_LE(from_far_away, 100U) << "once for each level at most";
    EXPECT_EQ(context->timers().stats().scrubbed, 0U);
    check_ledger_at_rest(*context);
}

TEST(cascaded, counts_tickets_that_have_found_their_timer_postponed) {
    testing::virtual_context context;
    const timer_handle which = context->timers().after(1ms, [] {});
    context.settle();
    EXPECT_TRUE(context->timers().postpone(which, 3ms));
    context.advance(2ms);
    EXPECT_EQ(context->timers().stats().cascaded, 1U);
    context.run();
    EXPECT_EQ(context->timers().stats().fired, 1U);
    check_ledger_at_rest(*context);
}

/// Arms so many timers of an hour, cancels all of them inside the loop, and lets the hour pass.
timer_stats after_cancelling(std::size_t count, std::size_t stale_slack) {
    testing::virtual_context context({.stale_slack = stale_slack});
    context->post([&] {
        std::vector<timer_handle> all(count);
        for (timer_handle& each : all) each = context->timers().after(1h, [] {});
        context->post([&, all] {
            for (const timer_handle each : all) EXPECT_EQ(context->timers().cancel(each), cancel_result::cancelled);
        });
    });
    context.settle();
    timer_stats sums = context->timers().stats();
    EXPECT_EQ(sums.stale_dropped + sums.scrubbed + sums.stale_tickets, count) << "a ticket was lost, or counted twice";
    EXPECT_EQ(sums.tickets, sums.stale_tickets);
    EXPECT_LE(sums.stale_tickets, stale_slack);
    context->timers().after(2h, [] {});
    context.run();
    sums = context->timers().stats();
    EXPECT_EQ(sums.stale_dropped + sums.scrubbed + sums.stale_tickets, count) << "a ticket was lost, or counted twice";
    check_ledger_at_rest(*context);
    return sums;
}

TEST(scrubbed, counts_the_tickets_of_cancelled_timers_that_are_more_than_the_slack) {
    EXPECT_GE(after_cancelling(2'000, 64).scrubbed, 2'000U - 64);
}

TEST(scrubbed, stays_zero_while_the_tickets_of_cancelled_timers_are_few) {
    const timer_stats few = after_cancelling(25, 64);
    EXPECT_EQ(few.scrubbed, 0U);
    EXPECT_EQ(few.stale_dropped + few.stale_tickets, 25U);
}

TEST(idle_wakeups, count_a_loop_that_wakes_up_for_a_timer_that_was_postponed_meanwhile) {
    const watchdog guard("waking up for nothing", 30s);
    testing::virtual_clock clock(testing::when_idle::stand_still);
    io_context context({.clock = &clock});
    timers& all = context.timers();
    std::atomic<bool> has_fired{false};
    const timer_handle which = all.after(1h, [&] { has_fired = true; });
    loop_thread loop(context);
    loop.wait_until_parked();
    std::this_thread::sleep_for(20ms);
    const timer_stats before = all.stats();
    ASSERT_TRUE(all.postpone(which, 2h));  // Later: that is no reason to wake anybody.
    clock.advance(1h);
    await_that([&] { return all.stats().turns != before.turns; });
    loop.wait_until_parked();
    EXPECT_EQ(all.stats().idle_wakeups, before.idle_wakeups + 1);
    clock.advance(1h);
    await_that([&] { return has_fired.load(); });
    loop.wait_until_parked();
    EXPECT_EQ(all.stats().idle_wakeups, before.idle_wakeups + 1) << "what fires is not nothing";
    loop.finish();
    check_ledger_at_rest(context);
}

}  // namespace
}  // namespace chime::test
