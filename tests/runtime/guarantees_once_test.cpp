// SPDX-License-Identifier: MIT
//
// G3 exactly once, G4 cancel means cancelled, G5 no dangling, G6 nothing lost.
#include "support/ledger.hpp"
#include "support/random.hpp"
#include "support/refusal.hpp"
#include "support/witness.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>
#include <chime/timer_cell.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// --- G3

TEST(guarantee, g3_a_timer_fires_once_or_is_cancelled_and_never_both_nor_neither) {
    random_source random(process_seed());
    testing::virtual_context context;
    timers& timers = context->timers();
    constexpr std::size_t count = 20'000;
    std::vector<int> runs(count, 0);
    std::vector<int> cancels(count, 0);
    std::vector<timer_handle> handles;
    for (std::size_t position = 0; position < count; ++position) {
        handles.push_back(timers.after(nanoseconds{random.between(0, 1'000'000'000)}, [&, position] {
            ++runs[position];
            // Anybody, himself included; due, far away, cancelled or long gone.
            const std::size_t victim = random.below(count);
            if (timers.cancel(handles[victim]) == cancel_result::cancelled) ++cancels[victim];
        }));
    }
    while (context.now() < time_point{} + 1s) {
        const std::size_t victim = random.below(count);
        if (timers.cancel(handles[victim]) == cancel_result::cancelled) ++cancels[victim];
        context.advance(nanoseconds{random.between(0, 1'000'000)});
    }
    for (std::size_t position = 0; position < count; ++position) {
        ASSERT_EQ(runs[position] + cancels[position], 1) << position << ' ' << replay_hint();
    }
    check_ledger_at_rest(*context);
}

struct outcome {
    int resumptions = 0;
    std::optional<wake_reason> reason;
};

task<> note_outcome(nanoseconds delay, cancel_token token, outcome& result) {
    const wake_reason reason = co_await sleep_for(delay, token);
    ++result.resumptions;
    result.reason = reason;
}

TEST(guarantee, g3_a_sleeper_resumes_exactly_once_with_the_reason) {
    testing::virtual_context context;
    cancel_source source;
    outcome elapsed;
    outcome cancelled;
    outcome late;
    spawn_detached(*context, note_outcome(1ms, source.token(), elapsed));
    spawn_detached(*context, note_outcome(1h, source.token(), cancelled));
    context.advance(1ms);
    EXPECT_EQ(elapsed.reason, wake_reason::elapsed);
    EXPECT_EQ(cancelled.reason, std::nullopt);
    EXPECT_TRUE(source.request_cancel());
    EXPECT_FALSE(source.request_cancel());
    EXPECT_EQ(cancelled.reason, std::nullopt) << "resumed on the stack of whoever cancels";
    context.settle();
    EXPECT_EQ(cancelled.reason, wake_reason::cancelled);
    spawn_detached(*context, note_outcome(1ms, source.token(), late));
    context.advance(2h);
    EXPECT_EQ(late.reason, wake_reason::cancelled);
    EXPECT_EQ(elapsed.resumptions, 1);
    EXPECT_EQ(cancelled.resumptions, 1);
    EXPECT_EQ(late.resumptions, 1);
    check_ledger_at_rest(*context);
}

TEST(guarantee, g3_a_sleep_that_is_due_and_cancelled_in_the_same_turn_ends_once) {
    for (const bool is_inline : {true, false}) {
        testing::virtual_context context({.inline_resumption = is_inline});
        cancel_source source;
        outcome before;
        outcome after;
        spawn_detached(*context, note_outcome(1ms, source.token(), before));
        context.settle();
        context->timers().after(1ms, [&] { source.request_cancel(); });
        context.settle();
        spawn_detached(*context, note_outcome(1ms, source.token(), after));
        context.settle();
        context.clock().advance(1ms);  // All three are due.
        context.settle();
        EXPECT_EQ(before.resumptions, 1);
        EXPECT_EQ(before.reason, wake_reason::elapsed) << "it was first in line";
        EXPECT_EQ(after.resumptions, 1);
        EXPECT_EQ(after.reason, wake_reason::cancelled) << "it was due, but had not begun to run";
        check_ledger_at_rest(*context);
    }
}

// --- G4

TEST(guarantee, g4_what_is_due_but_has_not_started_can_still_be_cancelled) {
    testing::virtual_context context;
    timers& timers = context->timers();
    timer_handle second;
    witness_report report;
    timers.after(1ms, [&] {
        EXPECT_EQ(timers.cancel(second), cancel_result::cancelled);
        EXPECT_EQ(report.ends, 1) << "the closure is gone when cancel returns";
        EXPECT_EQ(timers.cancel(second), cancel_result::gone);
    });
    second = timers.after(1ms, [kept = witness(report)] { ADD_FAILURE() << "it was cancelled"; });
    context.clock().advance(1h);
    EXPECT_EQ(context->poll(), 1U);
    EXPECT_EQ(timers.stats().stale_cancelled + timers.stats().stale_dropped + timers.stats().stale_tickets, 1U);
    check_ledger_at_rest(*context);
}

TEST(guarantee, g4_cancel_has_three_answers) {
    testing::virtual_context context;
    timers& timers = context->timers();
    timer_handle own;
    own = timers.after(1ms, [&] { EXPECT_EQ(timers.cancel(own), cancel_result::running); });
    const timer_handle other = timers.after(1ms, [] {});
    EXPECT_EQ(timers.cancel(other), cancel_result::cancelled);
    EXPECT_EQ(timers.cancel(other), cancel_result::gone);
    EXPECT_EQ(context.run(), 1U);
    EXPECT_EQ(timers.cancel(own), cancel_result::gone);
    EXPECT_EQ(timers.cancel({}), cancel_result::gone);
    check_ledger_at_rest(*context);
}

TEST(guarantee, g4_running_is_the_last_run_of_a_periodic_timer) {
    testing::virtual_context context;
    timers& timers = context->timers();
    timer_handle beat;
    int beats = 0;
    beat = timers.every(1s, missed_ticks::skip, [&] {
        if (++beats < 3) return;
        EXPECT_EQ(timers.cancel(beat), cancel_result::running);
    });
    context.run();  // Ends, because there is nothing left to wait for.
    EXPECT_EQ(beats, 3);
    EXPECT_EQ(context.now(), time_point{} + 3s);
    EXPECT_EQ(timers.cancel(beat), cancel_result::gone);
    // And what is armed afterwards is not forgotten.
    int later = 0;
    timers.after(1ms, [&] { ++later; });
    context.run();
    EXPECT_EQ(later, 1);
    check_ledger_at_rest(*context);
}

// --- G5

TEST(guarantee, g5_a_stale_handle_does_not_touch_whoever_lives_in_its_record_now) {
    testing::virtual_context context;
    timers& timers = context->timers();
    std::vector<timer_handle> stale;
    context->post([&] {
        // The same record again and again.
        for (int count = 0; count < 1000; ++count) {
            stale.push_back(timers.after(1h, [] {}));
            ASSERT_EQ(timers.cancel(stale.back()), cancel_result::cancelled);
        }
    });
    context.settle();
    int ran = 0;
    context->post([&] { timers.after(1h, [&] { ++ran; }); });
    context.settle();
    for (const timer_handle old : stale) {
        ASSERT_EQ(timers.cancel(old), cancel_result::gone);
        ASSERT_EQ(timers.cancel_and_wait(old), cancel_result::gone);
        ASSERT_FALSE(timers.postpone(old, 0s));
    }
    context.advance(1h - 1ns);
    EXPECT_EQ(ran, 0);
    context.advance(1ns);
    EXPECT_EQ(ran, 1);
    std::sort(stale.begin(), stale.end());
    EXPECT_EQ(std::adjacent_find(stale.begin(), stale.end()), stale.end()) << "no handle is given twice";
    check_ledger_at_rest(*context);
}

TEST(guarantee, g5_a_token_may_be_cancelled_when_context_and_sleepers_are_long_gone) {
    cancel_source source;
    outcome result;
    witness_report report;
    {
        testing::virtual_context context;
        spawn_detached(*context, note_outcome(1h, source.token(), result));
        context->timers().after(
            1h, [kept = witness(report)] { ADD_FAILURE() << "it has run"; }, source.token());
        context.settle();
        check_ledger(*context);
    }
    EXPECT_EQ(report.ends, 1);
    EXPECT_TRUE(source.request_cancel());
    EXPECT_EQ(report.ends, 1);
    EXPECT_EQ(result.resumptions, 0);
}

task<> wait_with_handle(timers& home, timer_handle& told) {
    timer_delay tick(home, 1s);
    co_await tick;
    told = tick.handle();
    // Now it sleeps again, in the same slot, and not under that name.
    co_await sleep_for(1s);
}

TEST(guarantee, g5_the_handle_of_an_ended_sleep_does_not_end_the_next_one) {
    testing::virtual_context context;
    timer_handle old;
    spawn_detached(*context, wait_with_handle(context->timers(), old));
    context.advance(1s);
    ASSERT_TRUE(old);
    EXPECT_TRUE(old.is_sleep());
    EXPECT_EQ(context->timers().cancel(old), cancel_result::gone);
    EXPECT_FALSE(context->timers().postpone(old, 0s));
    EXPECT_EQ(context.settle(), 0U);
    EXPECT_EQ(context.advance(1s), 1U);
    EXPECT_EQ(context->timers().cancel(old), cancel_result::gone);
    check_ledger_at_rest(*context);
}

// --- G6

TEST(guarantee, g6_no_timer_is_lost_when_the_clock_jumps) {
    for (const nanoseconds jump : {nanoseconds{1h}, nanoseconds{24h * 13}, nanoseconds{8766h}, nanoseconds{87660h}}) {
        testing::virtual_context context;
        constexpr int count = 3000;
        int ran = 0;
        random_source random(process_seed());
        for (int armed = 0; armed < count; ++armed) {
            context->timers().after(nanoseconds{random.between(1, jump.count())}, [&] { ++ran; });
        }
        context.clock().advance(jump);
        context.settle();
        EXPECT_EQ(ran, count) << replay_hint();
        check_ledger_at_rest(*context);
    }
}

TEST(guarantee, g6_no_timer_is_lost_in_a_burst_that_is_larger_than_every_budget) {
    testing::virtual_context context({.timer_budget = 7, .task_budget = 5});
    const int count = static_cast<int>(scaled(200'000));
    int ran = 0;
    std::thread stranger([&] {
        for (int armed = 0; armed < count; ++armed) context->timers().after(1ms, [&] { ++ran; });
    });
    stranger.join();
    context.run();
    EXPECT_EQ(ran, count);
    check_ledger_at_rest(*context);
}

TEST(guarantee, g6_what_cannot_be_accepted_is_refused_at_once_and_changes_nothing) {
    testing::virtual_context context({.max_timers = 3});
    timers& timers = context->timers();
    int ran = 0;
    for (int armed = 0; armed < 3; ++armed) timers.after(1s, [&] { ++ran; });
    witness_report report;
    auto refused = [kept = witness(report)] { ADD_FAILURE() << "it was refused"; };
    const auto is_refused = [&](auto&& request) {
        expect_refused(errc::too_many_timers, request);
        EXPECT_EQ(timers.stats().pending, 3U);
    };
    is_refused([&] { timers.after(1s, [] {}); });
    is_refused([&] { timers.at(time_point{}, [] {}); });
    is_refused([&] { timers.every(1s, missed_ticks::skip, [] {}); });
    is_refused([&] { context->post([] {}); });
    EXPECT_EQ(timers.try_after(1s, std::move(refused)), std::nullopt);
    EXPECT_EQ(timers.try_at(time_point{}, std::move(refused)), std::nullopt);
    EXPECT_EQ(timers.try_every(1s, missed_ticks::burst, std::move(refused)), std::nullopt);
    EXPECT_EQ(report.ends, 0) << "the closure was not moved from";
    EXPECT_EQ(timers.stats().refused, 7U);
    EXPECT_EQ(timers.stats().armed, 3U);
    context.run();
    EXPECT_EQ(ran, 3);
    check_ledger_at_rest(*context);
}

TEST(guarantee, g6_far_timers_do_not_hide_near_ones) {
    testing::virtual_context context;
    std::vector<int> fired;
    context->timers().after(87660h, [&] { fired.push_back(2); });
    context->timers().after(std::chrono::hours::max(), [&] { fired.push_back(3); });
    context.settle();
    for (unsigned exponent = 10; exponent < 58; ++exponent) {
        for (const int offset : {-1, 0, 1}) {
            const time_point start = time_point{} + nanoseconds{(std::int64_t{1} << exponent) + offset};
            if (start < context.now() || start > time_point{} + 80000h) continue;
            context.advance_to(start);
            const std::size_t before = fired.size();
            context->timers().after(1us, [&] { fired.push_back(1); });
            context.advance(1us);
            ASSERT_EQ(fired.size(), before + 1) << "at 2^" << exponent << " + " << offset;
        }
    }
    context.advance_to(time_point{} + 87660h);
    EXPECT_EQ(fired.back(), 2);
    EXPECT_EQ(context->timers().stats().pending, 1U);
    check_ledger(*context);
}

}  // namespace
}  // namespace chime::test
