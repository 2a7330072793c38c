// SPDX-License-Identifier: MIT
//
// G1 never early, G13 durations cannot trap, G16 steady time.
#include "support/ledger.hpp"
#include "support/refusal.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <system_error>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

using float_seconds = std::chrono::duration<float>;
using double_seconds = std::chrono::duration<double>;
using long_double_seconds = std::chrono::duration<long double>;
using picoseconds = std::chrono::duration<std::int64_t, std::pico>;
using thirds_of_a_nanosecond = std::chrono::duration<std::int64_t, std::ratio<1, 3'000'000'000>>;
using millennia = std::chrono::duration<std::int64_t, std::ratio<31'556'952'000>>;

// Around the edges of ticks and levels, whatever the resolution of the wheel is.
std::vector<nanoseconds> awkward_delays() {
    std::vector<nanoseconds> delays;
    for (unsigned exponent = 1; exponent < 58; ++exponent) {
        for (const int offset : {-1, 0, 1}) delays.emplace_back((std::int64_t{1} << exponent) + offset);
    }
    return delays;
}

TEST(guarantee, g1_nothing_runs_a_nanosecond_before_its_deadline) {
    for (const nanoseconds resolution : {nanoseconds{1}, nanoseconds{1 << 10}, nanoseconds{1 << 18}, 1000000000ns}) {
        for (const nanoseconds delay : awkward_delays()) {
            testing::virtual_context context({.resolution = resolution});
            bool has_run = false;
            context->timers().after(delay, [&] { has_run = true; });
            context.advance(delay - 1ns);
            ASSERT_FALSE(has_run) << delay.count() << " ns at " << resolution.count() << " ns";
            context.advance(1ns);
            ASSERT_TRUE(has_run) << delay.count() << " ns at " << resolution.count() << " ns";
            check_ledger_at_rest(*context);
        }
    }
}

task<> sleep_once(nanoseconds delay, time_point& woken) {
    co_await sleep_for(delay);
    woken = this_task::now();
}

TEST(guarantee, g1_no_sleep_is_shorter_than_asked_for) {
    for (const nanoseconds delay : awkward_delays()) {
        testing::virtual_context context;
        const time_point before = context.now();
        time_point woken{};
        spawn_detached(*context, sleep_once(delay, woken));
        context.advance(delay - 1ns);
        ASSERT_EQ(woken, time_point{}) << delay.count();
        context.advance(1ns);
        ASSERT_EQ(woken, before + delay) << delay.count();
        check_ledger_at_rest(*context);
    }
}

template <class Delay>
nanoseconds real_length_of(Delay delay) {
    testing::virtual_context context;
    const time_point before = context.now();
    time_point ran{};
    context->timers().after(delay, [&] { ran = context.now(); });
    context.run();
    check_ledger_at_rest(*context);
    return ran - before;
}

TEST(guarantee, g1_durations_are_rounded_up_never_down) {
    EXPECT_EQ(real_length_of(picoseconds{1}), 1ns);
    EXPECT_EQ(real_length_of(picoseconds{999}), 1ns);
    EXPECT_EQ(real_length_of(picoseconds{1000}), 1ns);
    EXPECT_EQ(real_length_of(picoseconds{1001}), 2ns);
    EXPECT_EQ(real_length_of(thirds_of_a_nanosecond{1}), 1ns);
    EXPECT_EQ(real_length_of(thirds_of_a_nanosecond{3}), 1ns);
    EXPECT_EQ(real_length_of(thirds_of_a_nanosecond{4}), 2ns);
    EXPECT_EQ(real_length_of(double_seconds{0.5}), 500'000'000ns);
    EXPECT_EQ(real_length_of(double_seconds{0.1}), 100'000'001ns) << "a tenth is a little more as a double";
    EXPECT_EQ(real_length_of(double_seconds{1e-30}), 1ns);
    EXPECT_EQ(real_length_of(float_seconds{0.25F}), 250'000'000ns);
    EXPECT_EQ(real_length_of(long_double_seconds{2.0L}), 2s);
}

TEST(guarantee, g1_a_delay_that_is_asked_for_in_a_callback_never_counts_from_before_the_call) {
    testing::virtual_context context;
    time_point called{};
    time_point ran{};
    context->timers().after(1ms, [&] {
        context.clock().advance(5ms);  // The callback is slow, and the turn began long ago.
        called = context.now();
        context->timers().after(3ms, [&] { ran = context.now(); });
    });
    context.run();
    EXPECT_GE(ran, called + 3ms);
    EXPECT_EQ(ran, called + 3ms) << "nothing happened between the call and the end of the callback";
    check_ledger_at_rest(*context);
}

TEST(guarantee, g1_a_delay_counts_from_the_call_or_a_little_later) {
    testing::virtual_context context;
    time_point called{};
    time_point returned{};
    time_point ran{};
    context->timers().after(1ms, [&] {
        called = context.now();
        context->timers().after(3ms, [&] { ran = context.now(); });
        context.clock().advance(5ms);  // What the callback does after arming may make it later, never earlier.
        returned = context.now();
    });
    context.run();
    EXPECT_GE(ran, called + 3ms);
    EXPECT_LE(ran, returned + 3ms);
    check_ledger_at_rest(*context);
}

TEST(guarantee, g1_a_postponed_timer_is_not_early_either) {
    testing::virtual_context context;
    time_point called{};
    time_point ran{};
    const timer_handle moved = context->timers().after(1h, [&] { ran = context.now(); });
    context->timers().after(1ms, [&] {
        context.clock().advance(5ms);
        called = context.now();
        EXPECT_TRUE(context->timers().postpone(moved, 2ms));
    });
    context.run();
    EXPECT_EQ(ran, called + 2ms);
    check_ledger_at_rest(*context);
}

TEST(guarantee, g1_slack_makes_timers_late_but_never_early_nor_later_than_that) {
    testing::virtual_context context({.slack = 10ms});
    std::vector<time_point> ran;
    const time_point start = context.now();
    for (const auto delay : {1ms, 4ms, 9ms, 30ms}) {
        context->timers().after(delay, [&, delay] {
            EXPECT_GE(context.now(), start + delay);
            EXPECT_LE(context.now(), start + delay + 10ms);
            ran.push_back(context.now());
        });
    }
    context.run();
    ASSERT_EQ(ran.size(), 4U);
    EXPECT_EQ(ran[0], ran[2]) << "neighbours share a wake-up";
    check_ledger_at_rest(*context);
}

// --- G13

template <class Delay>
bool is_due_now(Delay delay) {
    testing::virtual_context context;
    bool has_run = false;
    context->timers().after(delay, [&] { has_run = true; });
    context.settle();
    return has_run;
}

TEST(guarantee, g13_zero_and_negative_durations_are_due_now) {
    EXPECT_TRUE(is_due_now(0ns));
    EXPECT_TRUE(is_due_now(-1ns));
    EXPECT_TRUE(is_due_now(0h));
    EXPECT_TRUE(is_due_now(-1h));
    EXPECT_TRUE(is_due_now(nanoseconds::min()));
    EXPECT_TRUE(is_due_now(std::chrono::hours::min()));
    EXPECT_TRUE(is_due_now(millennia::min()));
    EXPECT_TRUE(is_due_now(picoseconds{-1}));
    EXPECT_TRUE(is_due_now(double_seconds{-0.0}));
    EXPECT_TRUE(is_due_now(double_seconds{-1e300}));
    EXPECT_TRUE(is_due_now(double_seconds{-std::numeric_limits<double>::infinity()}));
    EXPECT_TRUE(is_due_now(float_seconds{-std::numeric_limits<float>::infinity()}));
}

// Pending, and still so when nearly all of time has passed.
template <class Delay>
bool is_never(Delay delay) {
    testing::virtual_context context;
    bool has_run = false;
    const timer_handle armed = context->timers().after(delay, [&] { has_run = true; });
    context.advance_to(never - 1ns);
    const bool is_pending = context->timers().cancel(armed) == cancel_result::cancelled;
    return is_pending && !has_run;
}

TEST(guarantee, g13_what_is_too_long_is_never_and_not_soon_by_overflow) {
    EXPECT_TRUE(is_never(std::chrono::hours::max()));
    EXPECT_TRUE(is_never(nanoseconds::max()));
    EXPECT_TRUE(is_never(std::chrono::seconds::max()));
    EXPECT_TRUE(is_never(std::chrono::minutes{std::numeric_limits<std::int32_t>::max()}));
    EXPECT_TRUE(is_never(millennia{1}));
    EXPECT_TRUE(is_never(millennia::max()));
    EXPECT_TRUE(is_never(double_seconds{1e10}));
    EXPECT_TRUE(is_never(double_seconds{std::numeric_limits<double>::max()}));
    EXPECT_TRUE(is_never(double_seconds{std::numeric_limits<double>::infinity()}));
    EXPECT_TRUE(is_never(float_seconds{std::numeric_limits<float>::infinity()}));
    EXPECT_TRUE(is_never(long_double_seconds{std::numeric_limits<long double>::infinity()}));
}

TEST(guarantee, g13_deadlines_next_to_the_end_of_time_and_before_its_beginning_are_what_they_say) {
    testing::virtual_context context;
    std::vector<int> order;
    context->timers().at(never, [&] { order.push_back(4); });
    context->timers().at(never - 1ns, [&] { order.push_back(3); });
    context->timers().at(never - 2ns, [&] { order.push_back(2); });
    context->timers().at(time_point::min(), [&] { order.push_back(0); });
    context->timers().at(time_point{} - 1ns, [&] { order.push_back(1); });
    context.settle();
    EXPECT_EQ(order, (std::vector{0, 1}));
    context.advance_to(never - 3ns);
    EXPECT_EQ(order, (std::vector{0, 1}));
    context.advance_to(never - 1ns);
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3}));
    EXPECT_EQ(context->timers().stats().pending, 1U);
    check_ledger(*context);
}

task<> sleep_so_long(double_seconds delay, int& steps) {
    ++steps;
    co_await sleep_for(delay);
    ++steps;
}

TEST(guarantee, g13_a_deadline_may_count_in_whatever_it_likes) {
    testing::virtual_context context;
    timers& timers = context->timers();
    const time_point start = context.now();
    std::vector<int> order;
    timers.at(start + double_seconds{0.5}, [&] { order.push_back(1); });
    timers.at(std::chrono::time_point<chime::clock, std::chrono::hours>::max(), [&] { order.push_back(9); });
    static_cast<void>(
        timers.try_at(std::chrono::time_point<chime::clock, picoseconds>::min(), [&] { order.push_back(0); }));
    const timer_handle moved = timers.after(1h, [&] { order.push_back(2); });
    EXPECT_TRUE(timers.postpone_until(moved, start + double_seconds{0.75}));
    context.settle();
    EXPECT_EQ(order, (std::vector{0}));
    context.advance_to(start + 500ms - 1ns);
    EXPECT_EQ(order, (std::vector{0})) << "half a second is not less than that";
    context.advance_to(start + 500ms);
    EXPECT_EQ(order, (std::vector{0, 1}));
    context.advance_to(start + 750ms);
    EXPECT_EQ(order, (std::vector{0, 1, 2}));
    EXPECT_EQ(context->run_until(start + double_seconds{0.75}), 0U) << "that time has come";
    context.advance_to(never - 1ns);
    EXPECT_EQ(order, (std::vector{0, 1, 2})) << "too far away is never";

    constexpr double_seconds nan{std::numeric_limits<double>::quiet_NaN()};
    expect_refused(std::errc::invalid_argument, [&] { timers.at(time_point{} + nan, [] {}); });
    expect_refused(std::errc::invalid_argument, [&] { static_cast<void>(sleep_until(time_point{} + nan)); });
    EXPECT_EQ(timers.stats().pending, 1U);

    const std::atomic<time_point> kept{never - 2ns};
    timers.at(kept, [&] { order.push_back(7); });  // Says itself that it is a time.
    timers.at({}, [&] { order.push_back(3); });    // The beginning of time is long past.
    context.settle();
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 7})) << "at the end of time both are due";
    check_ledger(*context);
}

TEST(guarantee, g13_nan_is_refused_by_every_call_and_nothing_is_armed) {
    constexpr double_seconds nan{std::numeric_limits<double>::quiet_NaN()};
    constexpr auto refusal = std::errc::invalid_argument;
    testing::virtual_context context;
    timers& timers = context->timers();
    const auto nothing = [] { ADD_FAILURE() << "it has run"; };
    expect_refused(refusal, [&] { timers.after(nan, nothing); });
    expect_refused(refusal, [&] { timers.every(nan, missed_ticks::skip, nothing); });
    expect_refused(refusal, [&] { static_cast<void>(timers.try_after(nan, nothing)); });
    expect_refused(refusal, [&] { static_cast<void>(timers.try_every(nan, missed_ticks::skip, nothing)); });
    expect_refused(refusal, [&] { static_cast<void>(timers.sleep_for(nan)); });
    expect_refused(refusal, [&] { static_cast<void>(timers.sleep_for(nan, cancel_token{})); });
    expect_refused(refusal, [&] { static_cast<void>(sleep_for(nan)); });
    expect_refused(refusal, [&] { context->run_for(nan); });
    expect_refused(refusal, [&] { context.advance(nan); });
    expect_refused(refusal, [&] { context.clock().advance(nan); });
    EXPECT_EQ(timers.stats().armed, 0U);

    const timer_handle pending = timers.after(1s, [] {});
    expect_refused(refusal, [&] { timers.postpone(pending, nan); });
    EXPECT_EQ(timers.stats().postponed, 0U);
    EXPECT_EQ(context.advance(1s), 1U) << "it was not moved";

    // In a task it is an exception like any other.
    int steps = 0;
    spawn_detached(*context, sleep_so_long(nan, steps));
    expect_refused(refusal, [&] { context.settle(); });
    EXPECT_EQ(steps, 1);
    check_ledger_at_rest(*context);
}

TEST(guarantee, g13_a_sleep_of_any_length_is_as_long_or_never_ends) {
    testing::virtual_context context;
    int zero = 0;
    int half = 0;
    int endless = 0;
    spawn_detached(*context, sleep_so_long(double_seconds{-3.0}, zero));
    spawn_detached(*context, sleep_so_long(double_seconds{0.5}, half));
    spawn_detached(*context, sleep_so_long(double_seconds{std::numeric_limits<double>::infinity()}, endless));
    context.settle();
    EXPECT_EQ(zero, 2);
    EXPECT_EQ(half, 1);
    context.advance(500ms);
    EXPECT_EQ(half, 2);
    context.advance_to(never - 1ns);
    EXPECT_EQ(endless, 1);
    EXPECT_EQ(context->timers().stats().waiting, 1U);
    check_ledger(*context);
}

TEST(guarantee, g13_postponing_takes_any_duration_too) {
    testing::virtual_context context;
    timers& timers = context->timers();
    int ran = 0;
    const timer_handle moved = timers.after(1s, [&] { ++ran; });
    EXPECT_TRUE(timers.postpone(moved, std::chrono::hours::max()));
    context.advance_to(time_point{} + 100 * 8766h);
    EXPECT_EQ(ran, 0);
    EXPECT_TRUE(timers.postpone(moved, double_seconds{1.5}));
    context.advance(1499999999ns);
    EXPECT_EQ(ran, 0);
    EXPECT_TRUE(timers.postpone(moved, nanoseconds::min()));
    context.settle();
    EXPECT_EQ(ran, 1);
    check_ledger_at_rest(*context);
}

TEST(guarantee, g13_a_limit_of_zero_is_not_no_limit) {
    testing::virtual_context context;
    int ran = 0;
    context->timers().after(1ns, [&] { ++ran; });
    EXPECT_EQ(context->run_for(0s), 0U);
    EXPECT_EQ(context->run_for(-1h), 0U);
    EXPECT_EQ(context->run_for(double_seconds{-std::numeric_limits<double>::infinity()}), 0U);
    EXPECT_EQ(context->run_until(time_point::min()), 0U);
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(context.advance(1ns), 1U);
    check_ledger_at_rest(*context);
}

// --- G16

TEST(guarantee, g16_delays_count_on_the_monotonic_clock) {
    static_assert(std::is_same_v<timers::clock, std::chrono::steady_clock>);
    static_assert(timers::clock::is_steady);
    static_assert(std::is_same_v<timers::time_point, chime::time_point>);
    static_assert(std::is_same_v<timers::duration, chime::duration>);
    io_context context;
    const time_point before = std::chrono::steady_clock::now();
    const time_point told = context.timers().now();
    EXPECT_GE(told, before);
    EXPECT_LE(told, std::chrono::steady_clock::now());
    check_ledger_at_rest(context);
}

}  // namespace
}  // namespace chime::test
