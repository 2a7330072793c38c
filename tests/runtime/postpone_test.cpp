// SPDX-License-Identifier: MIT
#include "support/ledger.hpp"
#include "support/random.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>
#include <chime/timer_cell.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// Calls it outside of the loop, as a stranger does, or inside, as the owner.
template <class Function>
void call(testing::virtual_context& context, bool is_inside, Function function) {
    if (!is_inside) return function();
    context->post(function);
    context.settle();
}

TEST(postpone, to_a_later_time_makes_it_later) {
    for (const bool is_inside : {false, true}) {
        testing::virtual_context context;
        time_point ran{};
        const timer_handle moved = context->timers().after(10ms, [&] { ran = context.now(); });
        context.advance(5ms);
        call(context, is_inside, [&] { EXPECT_TRUE(context->timers().postpone(moved, 10ms)); });
        context.run();
        EXPECT_EQ(ran, time_point{} + 15ms) << "counted from now, not from the old deadline";
        EXPECT_EQ(context->timers().stats().postponed, 1U);
        EXPECT_EQ(context->timers().stats().armed, 1U);
        check_ledger_at_rest(*context);
    }
}

TEST(postpone, to_an_earlier_time_makes_it_earlier) {
    for (const bool is_inside : {false, true}) {
        testing::virtual_context context;
        time_point ran{};
        const timer_handle moved = context->timers().after(1h, [&] { ran = context.now(); });
        context.advance(5ms);
        call(context, is_inside, [&] { EXPECT_TRUE(context->timers().postpone(moved, 1ms)); });
        context.run();
        EXPECT_EQ(ran, time_point{} + 6ms);
        check_ledger_at_rest(*context);
    }
}

TEST(postpone, before_the_loop_has_seen_the_timer_counts_too) {
    testing::virtual_context context;
    std::vector<int> order;
    const timer_handle first = context->timers().after(10ms, [&] { order.push_back(0); });
    const timer_handle second = context->timers().after(20ms, [&] { order.push_back(1); });
    EXPECT_TRUE(context->timers().postpone(first, 30ms));
    EXPECT_TRUE(context->timers().postpone(second, 5ms));
    context.advance(5ms);
    EXPECT_EQ(order, (std::vector{1}));
    context.run();
    EXPECT_EQ(order, (std::vector{1, 0}));
    EXPECT_EQ(context.now(), time_point{} + 30ms);
    check_ledger_at_rest(*context);
}

TEST(postpone, again_in_the_same_callback_that_armed_it_has_the_last_word) {
    testing::virtual_context context;
    timers& timers = context->timers();
    std::vector<int> order;
    context->post([&] {
        const timer_handle one = timers.after(1ms, [&] { order.push_back(1); });
        const timer_handle two = timers.after(2ms, [&] { order.push_back(2); });
        const timer_handle three = timers.at(context.now() + 3ms, [&] { order.push_back(3); });
        const timer_handle four = timers.after(4ms, [&] { order.push_back(4); });
        EXPECT_TRUE(timers.postpone(one, 10ms));
        EXPECT_TRUE(timers.postpone(one, 20ms));
        EXPECT_TRUE(timers.postpone_until(two, context.now() + 30ms));
        EXPECT_TRUE(timers.postpone(two, 5ms));
        EXPECT_TRUE(timers.postpone(three, 5ms));
        EXPECT_TRUE(timers.postpone_until(three, context.now() + 25ms));
        EXPECT_TRUE(timers.postpone(four, 1ms));
        EXPECT_EQ(timers.cancel(four), cancel_result::cancelled);
        EXPECT_FALSE(timers.postpone(four, 1ms));
    });
    context.run();
    EXPECT_EQ(order, (std::vector{2, 1, 3}));
    EXPECT_EQ(context.now(), time_point{} + 25ms);
    check_ledger_at_rest(*context);
}

TEST(postpone, of_more_timers_than_get_their_deadlines_at_once_forgets_none) {
    testing::virtual_context context;
    timers& timers = context->timers();
    constexpr int count = 1000;
    std::vector<int> order;
    context->post([&] {
        std::vector<timer_handle> handles;
        for (int number = 0; number < count; ++number) {
            handles.push_back(timers.after(1h, [&order, number] { order.push_back(number); }));
        }
        for (int number = 0; number < count; ++number) {
            const auto place = static_cast<std::size_t>(number);
            EXPECT_TRUE(timers.postpone(handles[place], std::chrono::milliseconds{count - number}));
        }
    });
    context.run();
    ASSERT_EQ(order.size(), std::size_t{count});
    for (int number = 0; number < count; ++number) {
        EXPECT_EQ(order[static_cast<std::size_t>(number)], count - 1 - number);
    }
    check_ledger_at_rest(*context);
}

TEST(postpone, of_what_is_gone_or_running_answers_false) {
    testing::virtual_context context;
    timers& timers = context->timers();
    timer_handle ran;
    ran = timers.after(1ms, [&] {
        EXPECT_FALSE(timers.postpone(ran, 1s));
        EXPECT_FALSE(timers.postpone_until(ran, time_point{} + 1s));
    });
    const timer_handle cancelled = timers.after(1ms, [] {});
    timers.cancel(cancelled);
    EXPECT_FALSE(timers.postpone(cancelled, 1s));
    EXPECT_EQ(context.run(), 1U);
    EXPECT_FALSE(timers.postpone(ran, 1s));
    context->post([&] {
        EXPECT_FALSE(timers.postpone(ran, 1s));
        EXPECT_FALSE(timers.postpone_until(cancelled, time_point{} + 1s));
    });
    context.run();
    EXPECT_EQ(context.run(), 0U);
    EXPECT_EQ(timers.stats().postponed, 0U);
    check_ledger_at_rest(*context);
}

TEST(postpone, to_never_and_back) {
    testing::virtual_context context;
    int ran = 0;
    const timer_handle moved = context->timers().after(1ms, [&] { ++ran; });
    EXPECT_TRUE(context->timers().postpone_until(moved, never));
    context.advance(87660h);
    EXPECT_EQ(ran, 0);
    EXPECT_TRUE(context->timers().postpone_until(moved, time_point::min()));
    EXPECT_EQ(context.settle(), 1U);
    EXPECT_EQ(ran, 1);
    check_ledger_at_rest(*context);
}

TEST(postpone, by_a_callback_takes_what_was_due_out_of_this_turn) {
    testing::virtual_context context;
    timers& timers = context->timers();
    std::vector<int> order;
    timer_handle second;
    timer_handle third;
    timers.after(1ms, [&] {
        order.push_back(0);
        EXPECT_TRUE(timers.postpone(second, 1ms));
        EXPECT_TRUE(timers.postpone_until(third, context.now() + 2ms));
    });
    second = timers.after(1ms, [&] { order.push_back(1); });
    third = timers.after(1ms, [&] { order.push_back(2); });
    timers.after(1ms, [&] { order.push_back(3); });
    context.clock().advance(5ms);
    context.settle();
    EXPECT_EQ(order, (std::vector{0, 3})) << "due, but postponed before they began to run";
    context.advance(1ms);
    EXPECT_EQ(order, (std::vector{0, 3, 1}));
    context.advance(1ms);
    EXPECT_EQ(order, (std::vector{0, 3, 1, 2}));
    check_ledger_at_rest(*context);
}

TEST(postpone, by_a_callback_to_the_past_fires_in_the_same_turn_in_its_place) {
    testing::virtual_context context;
    timers& timers = context->timers();
    std::vector<int> order;
    timer_handle far;
    timer_handle farther;
    timers.at(time_point{} + 1ms, [&] {
        order.push_back(0);
        EXPECT_TRUE(timers.postpone_until(far, time_point{} + 3ms));
        EXPECT_TRUE(timers.postpone_until(farther, time_point{}));
    });
    timers.at(time_point{} + 2ms, [&] { order.push_back(1); });
    timers.at(time_point{} + 4ms, [&] { order.push_back(2); });
    far = timers.at(time_point{} + 1h, [&] { order.push_back(3); });
    farther = timers.at(time_point{} + 1000h, [&] { order.push_back(4); });
    context.settle();
    context.clock().advance(5ms);
    EXPECT_EQ(context->poll(), 5U) << "all in one turn";
    EXPECT_EQ(order, (std::vector{0, 4, 1, 3, 2}));
    check_ledger_at_rest(*context);
}

TEST(postpone, by_a_callback_to_zero_from_now_fires_in_the_same_turn_too) {
    testing::virtual_context context;
    timers& timers = context->timers();
    std::vector<int> order;
    timer_handle far;
    timers.after(1ms, [&] {
        order.push_back(0);
        EXPECT_TRUE(timers.postpone(far, 0s));
    });
    timers.after(1ms, [&] { order.push_back(1); });
    far = timers.after(1h, [&] { order.push_back(2); });
    context.settle();
    context.clock().advance(2ms);
    EXPECT_EQ(context->poll(), 3U);
    EXPECT_EQ(order, (std::vector{0, 1, 2}));
    check_ledger_at_rest(*context);
}

TEST(postpone, alternating_between_earlier_and_later_leaves_few_tickets) {
    for (const bool is_inside : {false, true}) {
        testing::virtual_context context({.stale_slack = 64});
        timers& timers = context->timers();
        int ran = 0;
        const timer_handle moved = timers.after(1h, [&] { ++ran; });
        context.settle();
        for (int round = 0; round < 1000; ++round) {
            call(context, is_inside, [&] {
                for (int step = 0; step < 10; ++step) {
                    EXPECT_TRUE(timers.postpone(moved, 10h));
                    EXPECT_TRUE(timers.postpone(moved, 1h + std::chrono::seconds{step}));
                    EXPECT_TRUE(timers.postpone_until(moved, time_point{} + 1000h));
                    EXPECT_TRUE(timers.postpone_until(moved, time_point{} + 2h));
                }
            });
            context.settle();
            ASSERT_LE(timers.stats().tickets, 512U);
        }
        EXPECT_EQ(timers.stats().postponed, 40'000U);
        context.run();
        EXPECT_EQ(ran, 1);
        EXPECT_EQ(context.now(), time_point{} + 2h);
        check_ledger_at_rest(*context);
    }
}

TEST(postpone, ever_later_as_a_keep_alive_does_needs_one_ticket) {
    testing::virtual_context context({.stale_slack = 64});
    timers& timers = context->timers();
    int ran = 0;
    std::vector<timer_handle> sessions;
    for (int count = 0; count < 100; ++count) sessions.push_back(timers.after(30s, [&] { ++ran; }));
    for (int second = 0; second < 3600; ++second) {
        for (const timer_handle session : sessions) ASSERT_TRUE(timers.postpone(session, 30s));
        context.advance(1s);
        ASSERT_LE(timers.stats().tickets, 300U);
    }
    EXPECT_EQ(ran, 0);
    context.advance(29s);
    EXPECT_EQ(ran, 100);
    check_ledger_at_rest(*context);
}

task<> wait_on(timer_delay& delay, time_point& woken, std::optional<wake_reason>& reason) {
    reason = co_await delay;
    woken = this_task::now();
}

task<> sleep_with_handle(timers& home, time_point deadline, timer_handle& named, time_point& woken,
                         std::optional<wake_reason>& reason) {
    timer_delay delay(home, deadline);
    task<> wait = wait_on(delay, woken, reason);
    home.after(0s, [&] { named = delay.handle(); });
    co_await std::move(wait);
}

TEST(postpone, moves_a_sleep_earlier_and_later) {
    for (const bool is_inside : {false, true}) {
        for (const auto delay : {1ms, 500ms, 3'600'000ms}) {
            testing::virtual_context context;
            timer_handle named;
            time_point woken{};
            std::optional<wake_reason> reason;
            spawn_detached(*context, sleep_with_handle(context->timers(), time_point{} + 1s, named, woken, reason));
            context.settle();
            ASSERT_TRUE(named.is_sleep());
            context.advance(100ms);
            call(context, is_inside, [&] { EXPECT_TRUE(context->timers().postpone(named, delay)); });
            context.run();
            EXPECT_EQ(woken, time_point{} + 100ms + delay);
            EXPECT_EQ(reason, wake_reason::elapsed);
            EXPECT_FALSE(context->timers().postpone(named, 1s)) << "it is over";
            check_ledger_at_rest(*context);
        }
    }
}

TEST(postpone, of_a_sleep_that_was_cancelled_answers_false) {
    testing::virtual_context context;
    timer_handle named;
    time_point woken{};
    std::optional<wake_reason> reason;
    spawn_detached(*context, sleep_with_handle(context->timers(), time_point{} + 1s, named, woken, reason));
    context.settle();
    EXPECT_EQ(context->timers().cancel(named), cancel_result::cancelled);
    EXPECT_EQ(context->timers().cancel(named), cancel_result::gone);
    EXPECT_FALSE(context->timers().postpone(named, 1h));
    context.run();
    EXPECT_EQ(reason, wake_reason::cancelled);
    EXPECT_EQ(woken, time_point{});
    check_ledger_at_rest(*context);
}

TEST(postpone, from_another_thread_reaches_a_loop_that_stands_still) {
    testing::virtual_context context;
    int ran = 0;
    const timer_handle moved = context->timers().after(1h, [&] { ++ran; });
    context.settle();
    std::thread stranger([&] {
        EXPECT_TRUE(context->timers().postpone(moved, 2h));
        EXPECT_TRUE(context->timers().postpone(moved, 1s));
    });
    stranger.join();
    context.advance(1s);
    EXPECT_EQ(ran, 1);
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
