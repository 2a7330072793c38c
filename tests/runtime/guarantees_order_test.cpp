// SPDX-License-Identifier: MIT
//
// G2 wheel speed, heap order; G7 constant cost; G12 fair.
#include "support/ledger.hpp"
#include "support/random.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

std::vector<int> up_to(int count) {
    std::vector<int> numbers(static_cast<std::size_t>(count));
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
}

// The positions of these delays in the order in which they must fire.
std::vector<int> firing_order(const std::vector<nanoseconds>& delays) {
    std::vector<int> order = up_to(static_cast<int>(delays.size()));
    std::sort(order.begin(), order.end(), [&](int left, int right) {
        const nanoseconds first = delays[static_cast<std::size_t>(left)];
        const nanoseconds second = delays[static_cast<std::size_t>(right)];
        return std::pair(first, left) < std::pair(second, right);
    });
    return order;
}

std::vector<nanoseconds> crowded_delays(std::uint64_t seed, std::size_t count, std::int64_t most_ns) {
    random_source random(seed);
    std::vector<nanoseconds> delays;
    while (delays.size() < count) {
        const nanoseconds delay{random.between(0, most_ns)};
        delays.push_back(delay);
        while (random.one_in(2)) delays.push_back(delay);  // Equal deadlines, so that the order of arming counts.
    }
    return delays;
}

TEST(guarantee, g2_due_timers_fire_in_order_of_deadline_and_arming) {
    for (const nanoseconds resolution : {1ns, 1024ns, 262144ns, 1000000000ns}) {
        for (const std::int64_t spread_ns : {10L, 100'000L, 1'000'000'000L, 100'000'000'000'000L}) {
            const auto delays = crowded_delays(process_seed(), 500, spread_ns);
            testing::virtual_context context({.resolution = resolution});
            std::vector<int> fired;
            for (std::size_t position = 0; position < delays.size(); ++position) {
                context->timers().after(delays[position],
                                        [&fired, position] { fired.push_back(static_cast<int>(position)); });
            }
            context.run();
            ASSERT_EQ(fired, firing_order(delays)) << resolution.count() << ' ' << spread_ns << ' ' << replay_hint();
            check_ledger_at_rest(*context);
        }
    }
}

TEST(guarantee, g2_the_order_holds_when_the_clock_jumps_over_all_of_them) {
    const auto delays = crowded_delays(process_seed() + 1, 2000, 100'000'000'000'000);
    testing::virtual_context context;
    std::vector<int> fired;
    for (std::size_t position = 0; position < delays.size(); ++position) {
        context->timers().after(delays[position], [&fired, position] { fired.push_back(static_cast<int>(position)); });
    }
    context.clock().advance(1000h);
    context.settle();
    EXPECT_EQ(fired, firing_order(delays)) << replay_hint();
    check_ledger_at_rest(*context);
}

TEST(guarantee, g2_the_order_holds_after_cascades_through_every_level) {
    const time_point deadline = time_point{} + 1000h;
    testing::virtual_context context;
    std::vector<int> fired;
    int armed = 0;
    // All for one moment, from ever nearer: each of them is put into a lower level than the one before.
    for (nanoseconds left = 1000h; left > 0ns; left /= 2) {
        context.advance_to(deadline - left);
        const int number = armed++;
        context->timers().at(deadline, [&fired, number] { fired.push_back(number); });
    }
    EXPECT_TRUE(fired.empty());
    context.run();
    EXPECT_EQ(fired, up_to(armed));
    check_ledger_at_rest(*context);
}

TEST(guarantee, g2_postponing_keeps_the_place_in_the_order_of_arming) {
    testing::virtual_context context;
    timers& timers = context->timers();
    const time_point deadline = context.now() + 10ms;
    std::vector<int> fired;
    const auto note = [&fired](int number) { return [&fired, number] { fired.push_back(number); }; };
    const timer_handle first = timers.at(deadline + 1h, note(0));
    timers.at(deadline, note(1));
    const timer_handle third = timers.at(deadline - 5ms, note(2));
    timers.at(deadline, note(3));
    const timer_handle fifth = timers.at(deadline, note(4));
    context.settle();
    EXPECT_TRUE(timers.postpone_until(fifth, deadline + 3h));  // There and back again.
    context.settle();
    EXPECT_TRUE(timers.postpone_until(first, deadline));  // Earlier.
    EXPECT_TRUE(timers.postpone_until(third, deadline));  // Later.
    EXPECT_TRUE(timers.postpone_until(fifth, deadline));
    context.run();
    EXPECT_EQ(fired, up_to(5));
    check_ledger_at_rest(*context);
}

TEST(guarantee, g2_the_arms_of_one_foreign_thread_keep_their_order) {
    testing::virtual_context context;
    std::vector<int> fired;
    constexpr int count = 5000;
    std::thread stranger([&] {
        for (int number = 0; number < count; ++number) {
            context->timers().at(time_point{} + 1ms, [&fired, number] { fired.push_back(number); });
        }
    });
    stranger.join();
    context.run();
    EXPECT_EQ(fired, up_to(count));
    check_ledger_at_rest(*context);
}

TEST(guarantee, g2_what_is_armed_outside_fires_before_what_a_callback_arms_later_for_the_same_time) {
    testing::virtual_context context;
    timers& timers = context->timers();
    const time_point deadline = context.now() + 2ms;
    std::vector<int> fired;
    timers.after(1ms, [&] { timers.at(deadline, [&] { fired.push_back(1); }); });
    timers.at(deadline, [&] { fired.push_back(0); });
    context.run();
    EXPECT_EQ(fired, up_to(2));
    check_ledger_at_rest(*context);
}

TEST(guarantee, g2_a_turn_fires_only_what_was_armed_before_it) {
    testing::virtual_context context;
    timers& timers = context->timers();
    std::vector<int> fired;
    timers.after(1ms, [&] {
        fired.push_back(0);
        timers.at(time_point::min(), [&] { fired.push_back(2); });  // Earlier than all others, but too late.
        timers.after(0s, [&] { fired.push_back(3); });
    });
    timers.after(1ms, [&] { fired.push_back(1); });
    context.clock().advance(1ms);
    EXPECT_EQ(context->poll(), 2U);
    EXPECT_EQ(fired, up_to(2));
    EXPECT_EQ(context->poll(), 2U);
    EXPECT_EQ(fired, up_to(4));
    check_ledger_at_rest(*context);
}

TEST(guarantee, g2_so_does_a_turn_that_begins_with_what_the_last_one_has_left) {
    testing::virtual_context context;
    bool has_fired = false;
    context->post([] { throw 1; });
    context->post([&] { context->timers().after(0s, [&] { has_fired = true; }); });
    EXPECT_THROW(context->poll(), int);
    EXPECT_EQ(context->poll(), 1U) << "what was left runs before timers";
    EXPECT_FALSE(has_fired);
    EXPECT_EQ(context->poll(), 1U);
    EXPECT_TRUE(has_fired);
    check_ledger_at_rest(*context);
}

task<> note_at(time_point deadline, int number, std::vector<int>& fired) {
    co_await sleep_until(deadline);
    fired.push_back(number);
}

TEST(guarantee, g2_sleepers_and_callbacks_stand_in_one_line) {
    for (const bool is_inline : {true, false}) {
        testing::virtual_context context({.inline_resumption = is_inline});
        const time_point deadline = context.now() + 5ms;
        std::vector<int> fired;
        for (int number = 0; number < 20; ++number) {
            if (number % 2 == 0) {
                spawn_detached(*context, note_at(deadline, number, fired));
            } else {
                context->timers().at(deadline, [&fired, number] { fired.push_back(number); });
            }
            context.settle();  // So that the sleeper has begun to sleep before the next one is armed.
        }
        context.run();
        if (is_inline) {
            EXPECT_EQ(fired, up_to(20));
        } else {
            EXPECT_EQ(fired.size(), 20U);  // Queued: behind all callbacks of the turn, but in order among themselves.
            const auto is_sleeper = [](int number) { return number % 2 == 0; };
            std::vector<int> sleepers;
            std::copy_if(fired.begin(), fired.end(), std::back_inserter(sleepers), is_sleeper);
            EXPECT_TRUE(std::is_sorted(sleepers.begin(), sleepers.end()));
        }
        check_ledger_at_rest(*context);
    }
}

// --- G7

TEST(guarantee, g7_a_turn_does_a_bounded_amount_of_work_however_many_timers_are_due) {
    constexpr std::uint64_t budget = 16;
    constexpr std::uint64_t count = 10'000;
    testing::virtual_context context({.timer_budget = budget});
    std::vector<std::uint64_t> turns;
    for (std::uint64_t left = count; left != 0; --left) {
        context->timers().at(time_point{} + 1ms, [&] { turns.push_back(context->timers().stats().turns); });
    }
    context.run();
    ASSERT_EQ(turns.size(), count);
    EXPECT_TRUE(std::is_sorted(turns.begin(), turns.end()));
    for (std::size_t position = budget; position < turns.size(); ++position) {
        ASSERT_GT(turns[position], turns[position - budget]) << "more than the budget ran in one turn";
    }
    check_ledger_at_rest(*context);
}

TEST(guarantee, g7_a_million_timers_on_one_tick_that_are_all_cancelled_leave_nothing_to_do) {
    const std::uint64_t count = scaled(1'000'000);
    testing::virtual_context context;
    timers& timers = context->timers();
    std::vector<timer_handle> handles;
    handles.reserve(count);
    context->post([&] {
        for (std::uint64_t left = count; left != 0; --left) {
            handles.push_back(timers.at(time_point{} + 1h, [] { ADD_FAILURE() << "it was cancelled"; }));
        }
    });
    context.settle();
    context.advance(1h - 1ns);
    context->post([&] {
        for (const timer_handle which : handles) ASSERT_EQ(timers.cancel(which), cancel_result::cancelled);
    });
    context.settle();
    EXPECT_LE(timers.stats().tickets, 8192U);
    EXPECT_EQ(context.advance(1ns), 0U);
    EXPECT_EQ(timers.stats().cancelled, count);
    check_ledger_at_rest(*context);
}

// --- G12

struct restless {
    void operator()() const {
        ++runs;
        if (!is_over) home.after(0s, *this);
    }
    timers& home;
    int& runs;
    const bool& is_over;
};

TEST(guarantee, g12_timers_that_are_always_due_do_not_starve_what_is_ready) {
    testing::virtual_context context({.timer_budget = 4});
    int runs = 0;
    bool is_over = false;
    for (int count = 0; count < 100; ++count) {
        context->timers().after(0s, restless{context->timers(), runs, is_over});
    }
    context->timers().after(0s, [&] {
        context->post([&] { is_over = true; });  // Runs in the end, and ends it all.
    });
    context.run();
    EXPECT_TRUE(is_over);
    EXPECT_LT(runs, 1000);
    check_ledger_at_rest(*context);
}

task<> yield_until(const bool& is_over, int& yields) {
    while (!is_over) {
        ++yields;
        co_await yield();
    }
}

TEST(guarantee, g12_tasks_that_are_always_ready_do_not_starve_timers) {
    testing::virtual_context context({.task_budget = 4});
    bool is_over = false;
    int yields = 0;
    for (int count = 0; count < 100; ++count) spawn_detached(*context, yield_until(is_over, yields));
    context->timers().after(0s, [&] { is_over = true; });
    context.run();
    EXPECT_LT(yields, 1000);
    check_ledger_at_rest(*context);
}

task<> count_yields_until_due(io_context& on, int& yields) {
    bool is_due = false;
    on.timers().after(0s, [&] { is_due = true; });
    while (!is_due) {
        co_await yield();
        ++yields;
    }
}

TEST(guarantee, g12_a_task_that_is_ready_again_and_again_runs_some_more_times_in_a_turn_and_then_timers_have_theirs) {
    testing::virtual_context context;
    int yields = 0;
    spawn_detached(*context, count_yields_until_due(*context, yields));
    context.run();
    EXPECT_GT(yields, 4);
    EXPECT_LT(yields, 20);
    check_ledger_at_rest(*context);
}

TEST(guarantee, g12_poll_runs_a_task_once_that_is_ready_again_and_again) {
    testing::virtual_context context;
    bool is_over = false;
    int yields = 0;
    spawn_detached(*context, yield_until(is_over, yields));
    context->poll();
    EXPECT_EQ(yields, 1);
    is_over = true;
    context.run();
    check_ledger_at_rest(*context);
}

/// In every turn it arms more timers that are due than the turn may look at.
struct flood {
    void operator()() const {
        const time_point now = home.timers().now();
        for (int count = 0; count < 40; ++count) home.timers().at(now, [] {});
        if (rounds == 10) home.timers().at(now - 1ms, [over = &is_over] { *over = true; });
        if (++rounds < 400 && !is_over) home.post(*this);
    }
    io_context& home;
    int& rounds;
    bool& is_over;
};

TEST(guarantee, g12_whoever_keeps_arming_what_is_due_does_not_starve_an_older_timer) {
    testing::virtual_context context({.timer_budget = 1});
    context.advance(1s);
    bool has_fired = false;
    int rounds = 0;
    context->post(flood{*context, rounds, has_fired});
    context.run();
    EXPECT_TRUE(has_fired);
    EXPECT_LT(rounds, 200);
    check_ledger_at_rest(*context);
}

TEST(guarantee, g12_one_piece_at_a_time_timers_and_tasks_take_turns) {
    testing::virtual_context context;
    bool is_over = false;
    int yields = 0;
    int runs = 0;
    spawn_detached(*context, yield_until(is_over, yields));
    context->timers().after(0s, restless{context->timers(), runs, is_over});
    for (int count = 0; count < 1000; ++count) ASSERT_EQ(context->run_one(), 1U);
    EXPECT_GT(yields, 300);
    EXPECT_GT(runs, 300);
    is_over = true;
    context.run();
    check_ledger_at_rest(*context);
}

task<> say_twice(char name, nanoseconds pause, cancel_token token, std::string& said) {
    said += name;
    co_await sleep_for(pause, token);
    said += name;
}

TEST(guarantee, g12_a_sleep_of_zero_length_yields_once) {
    testing::virtual_context context;
    std::string said;
    spawn_detached(*context, say_twice('a', 0ns, {}, said));
    spawn_detached(*context, say_twice('b', -1h, {}, said));
    context.settle();
    EXPECT_EQ(said, "abab");
    check_ledger_at_rest(*context);
}

TEST(guarantee, g12_a_sleep_on_a_cancelled_token_yields_once) {
    testing::virtual_context context;
    std::string said;
    cancel_source source;
    source.request_cancel();
    spawn_detached(*context, say_twice('a', 1h, source.token(), said));
    spawn_detached(*context, say_twice('b', 1h, source.token(), said));
    context.settle();
    EXPECT_EQ(said, "abab");
    EXPECT_EQ(context.now(), time_point{}) << "and time has not moved";
    check_ledger_at_rest(*context);
}

task<> sleep_for_nothing_until(const bool& is_over, int& sleeps) {
    while (!is_over) {
        ++sleeps;
        co_await sleep_for(0s);
    }
}

TEST(guarantee, g12_a_task_that_sleeps_for_nothing_all_the_time_leaves_room_for_others) {
    testing::virtual_context context;
    bool is_over = false;
    int sleeps = 0;
    spawn_detached(*context, sleep_for_nothing_until(is_over, sleeps));
    context->post([&] { context->post([&] { context->post([&] { is_over = true; }); }); });
    context.run();
    EXPECT_LT(sleeps, 10);
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
