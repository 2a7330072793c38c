// SPDX-License-Identifier: MIT
#include "support/ledger.hpp"
#include "support/refusal.hpp"
#include "support/witness.hpp"

#include <chime/io_context.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// A periodic timer whose second run takes too long, and when it ran.
std::vector<milliseconds> runs_with_a_slow_second(missed_ticks policy, milliseconds slow, milliseconds until) {
    testing::virtual_context context;
    const time_point start = context.now();
    std::vector<milliseconds> runs;
    const timer_handle beat = context->timers().every(10ms, policy, [&] {
        runs.push_back(std::chrono::duration_cast<milliseconds>(context.now() - start));
        if (runs.size() == 2) context.clock().advance(slow);
    });
    while (context.now() < start + until) context.advance(1ms);
    EXPECT_EQ(context->timers().cancel(beat), cancel_result::cancelled);
    context.settle();
    check_ledger_at_rest(*context);
    return runs;
}

using times = std::vector<milliseconds>;

TEST(every, first_runs_one_period_from_now) {
    testing::virtual_context context;
    int beats = 0;
    context->timers().every(10ms, missed_ticks::skip, [&] { ++beats; });
    context.advance(10ms - 1ns);
    EXPECT_EQ(beats, 0);
    context.advance(1ns);
    EXPECT_EQ(beats, 1);
    check_ledger(*context);
}

TEST(every, that_skips_missed_ticks_goes_on_in_the_old_rhythm) {
    EXPECT_EQ(runs_with_a_slow_second(missed_ticks::skip, 35ms, 85ms), (times{10ms, 20ms, 60ms, 70ms, 80ms}));
}

TEST(every, that_makes_up_for_missed_ticks_runs_them_one_after_the_other) {
    EXPECT_EQ(runs_with_a_slow_second(missed_ticks::burst, 35ms, 85ms),
              (times{10ms, 20ms, 55ms, 55ms, 55ms, 60ms, 70ms, 80ms}));
}

TEST(every, that_delays_starts_a_new_rhythm) {
    EXPECT_EQ(runs_with_a_slow_second(missed_ticks::delay, 35ms, 90ms), (times{10ms, 20ms, 65ms, 75ms, 85ms}));
}

TEST(every, that_is_not_slow_has_the_same_rhythm_whatever_the_policy) {
    for (const auto policy : {missed_ticks::skip, missed_ticks::burst, missed_ticks::delay}) {
        EXPECT_EQ(runs_with_a_slow_second(policy, 0ms, 45ms), (times{10ms, 20ms, 30ms, 40ms}));
    }
}

TEST(every, that_was_a_little_slow_misses_nothing) {
    for (const auto policy : {missed_ticks::skip, missed_ticks::burst}) {
        EXPECT_EQ(runs_with_a_slow_second(policy, 9ms, 45ms), (times{10ms, 20ms, 30ms, 40ms}));
    }
}

TEST(every, does_not_drift_when_it_is_always_late) {
    for (const auto policy : {missed_ticks::skip, missed_ticks::burst}) {
        testing::virtual_context context;
        const time_point start = context.now();
        int beats = 0;
        context->timers().every(10ms, policy, [&] { ++beats; });
        // The loop comes by every seven milliseconds, so nearly every tick is late.
        for (int step = 0; step < 10'000; ++step) {
            context.clock().advance(7ms);
            context.settle();
            ASSERT_EQ(beats, (context.now() - start) / 10ms);
        }
        check_ledger(*context);
    }
}

TEST(every, does_not_drift_with_odd_periods_nor_when_the_clock_jumps_a_century) {
    testing::virtual_context context;
    const time_point start = context.now();
    std::int64_t beats = 0;
    time_point latest{};
    constexpr nanoseconds period{1'234'567};
    context->timers().every(period, missed_ticks::skip, [&] {
        ++beats;
        latest = context.now();
    });
    context.advance(100s);
    EXPECT_EQ(beats, 100s / period);
    EXPECT_EQ(latest, start + beats * period);
    // A jump: one run for all that was missed, then the old rhythm.
    context.clock().advance(876'600h);
    context.settle();
    EXPECT_EQ(beats, 100s / period + 1);
    context.advance(period);
    EXPECT_EQ(beats, 100s / period + 2);
    EXPECT_EQ((latest - start) % period, 0ns);
    check_ledger(*context);
}

TEST(every, that_bursts_after_a_jump_lets_others_run_in_between) {
    testing::virtual_context context({.timer_budget = 8});
    int beats = 0;
    int posted_at = 0;
    const timer_handle beat = context->timers().every(1ms, missed_ticks::burst, [&] {
        if (++beats == 1) context->post([&] { posted_at = beats; });
    });
    context.settle();
    context.clock().advance(10s);
    context.settle();
    EXPECT_EQ(beats, 10'000);
    EXPECT_LT(posted_at, 100);
    EXPECT_GT(posted_at, 0);
    context->timers().cancel(beat);
    context.settle();
    check_ledger_at_rest(*context);
}

TEST(every, counts_each_tick_as_armed_and_fired) {
    testing::virtual_context context;
    const timer_handle beat = context->timers().every(1s, missed_ticks::skip, [] {});
    context.advance(5s);
    const timer_stats sums = context->timers().stats();
    EXPECT_EQ(sums.armed, 6U);
    EXPECT_EQ(sums.fired, 5U);
    EXPECT_EQ(sums.pending, 1U);
    EXPECT_EQ(context->timers().cancel(beat), cancel_result::cancelled);
    context.settle();
    check_ledger_at_rest(*context);
}

TEST(every, keeps_its_handle_and_its_closure_from_run_to_run) {
    testing::virtual_context context;
    witness_report report;
    int largest = 0;
    const timer_handle beat =
        context->timers().every(1s, missed_ticks::skip, [&, runs = 0, kept = witness(report)]() mutable {
            EXPECT_TRUE(kept.is_here());
            largest = ++runs;
        });
    context.advance(100s);
    EXPECT_EQ(largest, 100);
    EXPECT_EQ(report.ends, 0);
    EXPECT_EQ(context->timers().cancel(beat), cancel_result::cancelled);
    EXPECT_EQ(report.ends, 1);
    context.settle();
    check_ledger_at_rest(*context);
}

TEST(every, cancelled_inside_ends_after_this_run_and_frees_its_closure) {
    for (const auto policy : {missed_ticks::skip, missed_ticks::burst, missed_ticks::delay}) {
        testing::virtual_context context;
        witness_report report;
        timer_handle beat;
        int beats = 0;
        beat = context->timers().every(1s, policy, [&, kept = witness(report)] {
            if (++beats < 3) return;
            EXPECT_EQ(context->timers().cancel(beat), cancel_result::running);
            EXPECT_EQ(report.ends, 0);
        });
        context.run();
        EXPECT_EQ(beats, 3);
        EXPECT_EQ(report.ends, 1);
        EXPECT_EQ(context->timers().stats().fired, 3U);
        check_ledger_at_rest(*context);
    }
}

TEST(every, cancelled_inside_and_throwing_ends_too) {
    testing::virtual_context context;
    timer_handle beat;
    int beats = 0;
    beat = context->timers().every(1s, missed_ticks::skip, [&] {
        ++beats;
        context->timers().cancel(beat);
        throw std::runtime_error("last words");
    });
    EXPECT_THROW(context.run(), std::runtime_error);
    EXPECT_EQ(context.run(), 0U);
    EXPECT_EQ(beats, 1);
    check_ledger_at_rest(*context);
}

TEST(every, goes_on_in_its_rhythm_after_an_exception) {
    testing::virtual_context context;
    const time_point start = context.now();
    std::vector<time_point> runs;
    context->timers().every(10ms, missed_ticks::skip, [&] {
        runs.push_back(context.now());
        if (runs.size() <= 2) throw std::runtime_error("at first");
    });
    EXPECT_THROW(context.advance(1s), std::runtime_error);
    EXPECT_THROW(context.advance(1s), std::runtime_error);
    context.advance_to(start + 35ms);
    EXPECT_EQ(runs, (std::vector{start + 10ms, start + 20ms, start + 30ms}));
    check_ledger(*context);
}

TEST(every, refuses_a_period_that_is_not_longer_than_zero) {
    testing::virtual_context context;
    timers& timers = context->timers();
    const auto nothing = [] { ADD_FAILURE() << "it has run"; };
    const auto is_refused = [&](auto period) {
        expect_refused(errc::bad_period, "chime::timers::every: a period must be longer than zero",
                       [&] { timers.every(period, missed_ticks::skip, nothing); });
        expect_refused(errc::bad_period, "chime::timers::try_every: a period must be longer than zero",
                       [&] { static_cast<void>(timers.try_every(period, missed_ticks::skip, nothing)); });
    };
    is_refused(0s);
    is_refused(-1ns);
    is_refused(std::chrono::hours::min());
    is_refused(std::chrono::duration<double>(-0.5));
    is_refused(std::chrono::duration<double>(0.0));
    is_refused(std::chrono::duration<double>(-std::numeric_limits<double>::infinity()));
    EXPECT_EQ(timers.stats().armed, 0U);
    EXPECT_EQ(context.run(), 0U);
    check_ledger_at_rest(*context);
}

TEST(every, refuses_nan) {
    testing::virtual_context context;
    expect_refused(std::errc::invalid_argument, [&] {
        context->timers().every(std::chrono::duration<float>(std::numeric_limits<float>::quiet_NaN()),
                                missed_ticks::skip, [] {});
    });
    check_ledger_at_rest(*context);
}

TEST(every, refuses_a_policy_that_is_none) {
    testing::virtual_context context;
    timers& timers = context->timers();
    const auto nothing = [] { ADD_FAILURE() << "it has run"; };
    for (const int made_up : {-1, 3, 7}) {
        const auto policy = static_cast<missed_ticks>(made_up);
        expect_refused(std::errc::invalid_argument, "chime::timers::every: no such policy",
                       [&] { timers.every(1s, policy, nothing); });
        expect_refused(std::errc::invalid_argument, "chime::timers::try_every: no such policy",
                       [&] { static_cast<void>(timers.try_every(1s, policy, nothing)); });
    }
    EXPECT_EQ(timers.stats().armed, 0U);
    check_ledger_at_rest(*context);
}

TEST(every, rounds_a_fraction_of_a_nanosecond_up_to_one) {
    testing::virtual_context context;
    int beats = 0;
    const timer_handle beat =
        context->timers().every(std::chrono::duration<double, std::nano>(0.001), missed_ticks::skip, [&] { ++beats; });
    context.advance(10ns);
    EXPECT_EQ(beats, 10);
    context->timers().cancel(beat);
    context.settle();
    check_ledger_at_rest(*context);
}

TEST(every, with_an_endless_period_never_runs) {
    testing::virtual_context context;
    int beats = 0;
    for (const auto policy : {missed_ticks::skip, missed_ticks::burst, missed_ticks::delay}) {
        context->timers().every(std::chrono::hours::max(), policy, [&] { ++beats; });
        context->timers().every(std::chrono::duration<float>(std::numeric_limits<float>::infinity()), policy,
                                [&] { ++beats; });
    }
    context.advance_to(never - 1ns);
    EXPECT_EQ(beats, 0);
    EXPECT_EQ(context->timers().stats().pending, 6U);
    check_ledger(*context);
}

TEST(every, whose_next_tick_lies_beyond_the_end_of_time_does_not_come_round) {
    for (const auto policy : {missed_ticks::skip, missed_ticks::burst, missed_ticks::delay}) {
        testing::virtual_context context;
        int beats = 0;
        context->timers().every(nanoseconds::max() / 3 * 2, policy, [&] { ++beats; });
        context.advance_to(never - 1ns);
        EXPECT_EQ(beats, 1) << "not again, and not soon by overflow";
        EXPECT_EQ(context->timers().stats().pending, 1U);
        check_ledger(*context);
    }
}

TEST(every, that_is_postponed_takes_its_rhythm_along) {
    for (const bool is_inside : {false, true}) {
        testing::virtual_context context;
        const time_point start = context.now();
        std::vector<time_point> runs;
        const timer_handle beat =
            context->timers().every(10ms, missed_ticks::skip, [&] { runs.push_back(context.now()); });
        context.advance(12ms);
        const auto postpone_it = [&] { EXPECT_TRUE(context->timers().postpone(beat, 3ms)); };
        if (is_inside) {
            context->post(postpone_it);
            context.settle();
        } else {
            postpone_it();
        }
        context.advance(25ms);
        EXPECT_EQ(runs, (std::vector{start + 10ms, start + 15ms, start + 25ms, start + 35ms}));
        EXPECT_EQ(context->timers().cancel(beat), cancel_result::cancelled);
        context.settle();
        check_ledger_at_rest(*context);
    }
}

TEST(every, cannot_be_postponed_inside_its_own_run) {
    testing::virtual_context context;
    timer_handle beat;
    int beats = 0;
    beat = context->timers().every(10ms, missed_ticks::skip, [&] {
        ++beats;
        EXPECT_FALSE(context->timers().postpone(beat, 1h));
        EXPECT_FALSE(context->timers().postpone_until(beat, never));
    });
    context.advance(35ms);
    EXPECT_EQ(beats, 3);
    EXPECT_EQ(context->timers().stats().postponed, 0U);
    check_ledger(*context);
}

TEST(every, takes_turns_with_others_of_the_same_period_in_the_order_of_arming) {
    testing::virtual_context context;
    std::vector<int> order;
    for (int number = 0; number < 3; ++number) {
        context->timers().every(1s, missed_ticks::skip, [&, number] { order.push_back(number); });
    }
    context.advance(3s);
    EXPECT_EQ(order, (std::vector{0, 1, 2, 0, 1, 2, 0, 1, 2}));
    check_ledger(*context);
}

}  // namespace
}  // namespace chime::test
