// SPDX-License-Identifier: MIT
#include "support/ledger.hpp"

#include <chime/stats.hpp>
#include <chime/testing.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

TEST(lateness, of_nothing_is_zero) {
    EXPECT_EQ(lateness_histogram{}.quantile(0.99), 0ns);
}

TEST(lateness, of_a_share_is_the_end_of_the_bucket_that_it_reaches) {
    lateness_histogram seen;
    seen.buckets[4] = 90;
    seen.buckets[10] = 9;
    seen.buckets[20] = 1;
    seen.max = 1'000'000ns;
    EXPECT_EQ(seen.count(), 100U);
    EXPECT_EQ(seen.quantile(0.0), 16ns);
    EXPECT_EQ(seen.quantile(0.9), 16ns);
    EXPECT_EQ(seen.quantile(0.91), 1024ns);
    EXPECT_EQ(seen.quantile(0.99), 1024ns);
}

TEST(lateness, is_never_told_to_be_more_than_the_latest_was_whatever_is_asked_for) {
    lateness_histogram seen;
    seen.buckets[20] = 1;
    seen.buckets[63] = 1;
    seen.max = 1'000'000ns;
    for (const double fraction : {-1.0, 0.5, 1.0, 7.0}) EXPECT_EQ(seen.quantile(fraction), seen.max) << fraction;
}

/// Of timers that are an hour away every other one is cancelled, far fewer than are scrubbed. The numbers after that hour.
timer_stats hours_of_cancelled(testing::virtual_context& context) {
    constexpr int many = 2000;
    std::vector<timer_handle> all;
    for (int i = 0; i < many; ++i) all.push_back(context->timers().after(1h + i * 1s, [] {}));
    context.advance(1s);  // The loop has accepted them.
    for (int i = 0; i < many; i += 2) context->timers().cancel(all[static_cast<std::size_t>(i)]);
    context.advance(2h);
    return context->timers().stats();
}

TEST(stats, tell_useful_wake_ups_from_idle_ones) {
    timer_stats seen;
    seen.parks = 5;
    seen.idle_wakeups = 2;
    EXPECT_EQ(seen.useful_wakeups(), 3U);
    seen.idle_wakeups = 6;  // Read in between.
    EXPECT_EQ(seen.useful_wakeups(), 0U);
}

TEST(stats, taken_from_later_ones_leave_what_happened_between_and_what_is_so_now) {
    testing::virtual_context context;
    timer_handle first;
    for (int count = 0; count < 5; ++count) first = context->timers().after(1h, [] {});
    context.settle();
    const timer_stats earlier = context->timers().stats();
    context->timers().cancel(first);
    context->timers().after(1s, [] {});
    context.advance(1min);
    timer_stats between = context->timers().stats();
    between -= earlier;
    EXPECT_EQ(between.armed, 1U);
    EXPECT_EQ(between.fired, 1U);
    EXPECT_EQ(between.cancelled, 1U);
    EXPECT_EQ(between.pending, 4U) << "fewer than before, and no huge number";
    EXPECT_EQ(between.tickets, context->timers().stats().tickets);
    EXPECT_EQ(between.tasks, 0U);
}

TEST(stats, tell_why_a_ticket_was_stale) {
    testing::virtual_context context;
    const timer_stats cancelled = hours_of_cancelled(context);
    EXPECT_EQ(cancelled.stale_dropped, 1000U);
    EXPECT_EQ(cancelled.stale_vacant, 1000U) << "nobody has come after those who were cancelled";
    EXPECT_GT(cancelled.compactions, 0U) << "half of the tickets were stale";

    const timer_handle moved = context->timers().after(1h, [] {});
    context->timers().after(90min, [] {});  // A wheel without timers is not looked at.
    context.advance(1s);
    EXPECT_TRUE(context->timers().postpone(moved, 1min));
    context.advance(2h);
    const timer_stats after = context->timers().stats();
    EXPECT_EQ(after.stale_dropped - cancelled.stale_dropped, 1U);
    EXPECT_EQ(after.stale_vacant - cancelled.stale_vacant, 0U) << "a later ticket had taken its place";
    check_ledger_at_rest(*context);
}

TEST(lateness, of_what_was_due_at_the_beginning_of_time_hides_no_other) {
    testing::virtual_context context;
    context->timers().at(time_point::min(), [] {});
    context->timers().at(time_point::min() + 1ns, [] {});
    context.advance(1s);
    const lateness_histogram ages = context->timers().stats().lateness;
    EXPECT_EQ(ages.max, std::chrono::nanoseconds{(std::int64_t{1} << 62) - 1}) << "as much as it counts";
    EXPECT_EQ(ages.buckets[62], 2U);
    EXPECT_EQ(ages.quantile(0.5), ages.max);
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
