// SPDX-License-Identifier: MIT
//
// Cancelling, and waiting until nothing of the callback runs any more: blocking, in a task, and by an owner that goes.
#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/running_loop.hpp"
#include "support/witness.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<scoped_timer> && std::is_nothrow_move_constructible_v<scoped_timer>);

// --- cancel_and_wait

TEST(cancel_and_wait, returns_when_the_callback_on_the_other_thread_has_ended) {
    running_loop loop;
    std::atomic<bool> has_begun = false;
    std::atomic<bool> may_end = false;
    std::atomic<bool> has_ended = false;
    witness_report report;
    const timer_handle running = loop->timers().after(0s, [&, kept = witness(report)] {
        has_begun = true;
        wait_for(may_end);
        has_ended = true;
    });
    wait_for(has_begun);
    EXPECT_EQ(loop->timers().cancel(running), cancel_result::running);
    std::thread releaser([&] {
        std::this_thread::sleep_for(5ms);
        may_end = true;
    });
    // It may be over before we come to ask; what counts is that it is over when we have asked.
    EXPECT_NE(loop->timers().cancel_and_wait(running), cancel_result::cancelled);
    EXPECT_TRUE(has_ended);
    EXPECT_EQ(report.ends, 1) << "nothing of it is left";
    EXPECT_EQ(report.thread.load(), loop.thread_id());
    EXPECT_EQ(loop->timers().cancel_and_wait(running), cancel_result::gone);
    releaser.join();
    loop.join();
    check_ledger_at_rest(*loop);
}

TEST(cancel_and_wait, ends_a_periodic_timer_for_good) {
    running_loop loop;
    std::atomic<int> beats = 0;
    const timer_handle beat = loop->timers().every(1us, missed_ticks::skip, [&] { ++beats; });
    while (beats < 10) std::this_thread::yield();
    EXPECT_NE(loop->timers().cancel_and_wait(beat), cancel_result::gone);
    const int last = beats;
    // Once round the loop: whatever was still to come would come now.
    std::atomic<bool> is_round = false;
    loop->timers().after(1ms, [&] { is_round = true; });
    wait_for(is_round);
    EXPECT_EQ(beats, last);
    loop.join();
    check_ledger_at_rest(*loop);
}

TEST(cancel_and_wait, does_not_wait_for_what_is_only_pending) {
    testing::virtual_context context;
    witness_report report;
    const timer_handle armed = context->timers().after(1h, [kept = witness(report)] {});
    EXPECT_EQ(context->timers().cancel_and_wait(armed), cancel_result::cancelled);
    EXPECT_EQ(report.ends, 1);
    EXPECT_EQ(context->timers().cancel_and_wait(armed), cancel_result::gone);
    context.settle();
    check_ledger_at_rest(*context);
}

// --- cancel_and_join

task<> join_timer(timers& home, timer_handle which, std::optional<cancel_result>& result) {
    auto end = home.cancel_and_join(which);
    result = co_await end;
}

TEST(cancel_and_join, gives_the_answer_at_once_when_nothing_runs) {
    testing::virtual_context context;
    timers& timers = context->timers();
    std::optional<cancel_result> result;
    const timer_handle armed = timers.after(1h, [] { ADD_FAILURE() << "it was cancelled"; });
    spawn_detached(*context, join_timer(timers, armed, result));
    context.run();
    EXPECT_EQ(result, cancel_result::cancelled);
    spawn_detached(*context, join_timer(timers, armed, result));
    context.run();
    EXPECT_EQ(result, cancel_result::gone);
    spawn_detached(*context, join_timer(timers, {}, result));
    context.run();
    EXPECT_EQ(result, cancel_result::gone);
    check_ledger_at_rest(*context);
}

TEST(cancel_and_join, can_be_spawned_as_it_is) {
    testing::virtual_context context;
    witness_report report;
    const timer_handle armed = context->timers().after(1h, [kept = witness(report)] {});
    auto joined = spawn(*context, context->timers().cancel_and_join(armed));
    EXPECT_EQ(report.ends, 0) << "it begins when it is awaited";
    context.run();
    EXPECT_EQ(joined.take(), cancel_result::cancelled);
    EXPECT_EQ(report.ends, 1);
    EXPECT_EQ(context.now(), time_point{});
    check_ledger_at_rest(*context);
}

TEST(cancel_and_join, waits_in_a_task_of_another_context_until_the_callback_has_ended) {
    running_loop loop;
    std::atomic<bool> has_begun = false;
    std::atomic<bool> may_end = false;
    std::atomic<bool> has_ended = false;
    const timer_handle running = loop->timers().after(0s, [&] {
        has_begun = true;
        wait_for(may_end);
        has_ended = true;
    });
    wait_for(has_begun);
    io_context here;
    std::optional<cancel_result> result;
    spawn_detached(here, join_timer(loop->timers(), running, result));
    here.poll();
    EXPECT_EQ(result, std::nullopt) << "it waits, and the loop does not";
    may_end = true;
    here.run();
    EXPECT_EQ(result, cancel_result::running);
    EXPECT_TRUE(has_ended);
    loop.join();
    check_ledger_at_rest(here);
    check_ledger_at_rest(*loop);
}

TEST(cancel_and_join, may_be_destroyed_while_it_waits) {
    running_loop loop;
    std::atomic<bool> has_begun = false;
    std::atomic<bool> may_end = false;
    const timer_handle running = loop->timers().after(0s, [&] {
        has_begun = true;
        wait_for(may_end);
    });
    wait_for(has_begun);
    std::optional<cancel_result> result;
    {
        io_context here;
        spawn_detached(here, join_timer(loop->timers(), running, result));
        here.poll();
        check_ledger(here);
    }
    may_end = true;
    EXPECT_NE(loop->timers().cancel_and_wait(running), cancel_result::cancelled);
    EXPECT_EQ(result, std::nullopt);
    loop.join();
    check_ledger_at_rest(*loop);
}

// --- Asking for the end of a callback that is below on the stack.

TEST(cancel_and_join, of_a_callback_below_it_on_the_stack_does_not_wait) {
    const watchdog guard("a nested loop joins the callback that runs it", 30s);
    testing::virtual_context outer;
    testing::virtual_context inner;
    timers& all = outer->timers();
    timer_handle below;
    std::optional<cancel_result> answer;
    below = all.after(1s, [&] {
        spawn_detached(*inner, join_timer(all, below, answer));
        inner.run();
    });
    outer.run();
    EXPECT_EQ(answer, cancel_result::running);
    check_ledger_at_rest(*outer);
    check_ledger_at_rest(*inner);
}

TEST(cancel_and_wait, for_a_callback_below_it_on_the_stack_does_not_wait) {
    const watchdog guard("a nested loop waits for the callback that runs it", 30s);
    testing::virtual_context outer;
    testing::virtual_context inner;
    timers& all = outer->timers();
    timer_handle below;
    std::optional<cancel_result> answer;
    below = all.every(1s, missed_ticks::skip, [&] {
        inner->post([&] { answer = all.cancel_and_wait(below); });
        inner.run();
    });
    outer.run();
    EXPECT_EQ(answer, cancel_result::running) << "and this was its last run";
    EXPECT_EQ(outer.now(), time_point{} + 1s);
    check_ledger_at_rest(*outer);
    check_ledger_at_rest(*inner);
}

// --- scoped_timer

TEST(scoped_timer, cancels_when_it_goes) {
    testing::virtual_context context;
    timers& timers = context->timers();
    witness_report report;
    int ran = 0;
    {
        const scoped_timer owner(timers, timers.after(1s, [&, kept = witness(report)] { ++ran; }));
        EXPECT_TRUE(owner.get());
        EXPECT_EQ(report.ends, 0);
    }
    EXPECT_EQ(report.ends, 1);
    context.run();
    EXPECT_EQ(ran, 0);
    check_ledger_at_rest(*context);
}

TEST(scoped_timer, moves_cancels_and_lets_go) {
    testing::virtual_context context;
    timers& timers = context->timers();
    int first = 0;
    int second = 0;
    scoped_timer owner(timers, timers.after(1s, [&] { ++first; }));
    scoped_timer other = std::move(owner);
    EXPECT_FALSE(owner.get());
    EXPECT_EQ(owner.cancel(), cancel_result::gone);
    owner = scoped_timer(timers, timers.after(1s, [&] { ++second; }));
    other = std::move(owner);  // The first one is cancelled by that.
    scoped_timer& same = other;
    other = std::move(same);
    const timer_handle released = other.release();
    EXPECT_TRUE(released);
    EXPECT_FALSE(other.get());
    EXPECT_EQ(other.cancel(), cancel_result::gone);
    context.run();
    EXPECT_EQ(first, 0);
    EXPECT_EQ(second, 1);
    scoped_timer third(timers, timers.after(1s, [] { ADD_FAILURE() << "it was cancelled"; }));
    EXPECT_EQ(third.cancel(), cancel_result::cancelled);
    EXPECT_EQ(third.cancel(), cancel_result::gone);
    context.run();
    check_ledger_at_rest(*context);
}

TEST(scoped_timer, destroyed_in_its_own_callback_does_not_wait_for_itself) {
    testing::virtual_context context;
    timers& timers = context->timers();
    std::optional<scoped_timer> owner;
    int beats = 0;
    owner.emplace(timers, timers.every(1s, missed_ticks::skip, [&] {
        ++beats;
        owner.reset();
    }));
    context.run();
    EXPECT_EQ(beats, 1);
    check_ledger_at_rest(*context);
}

TEST(scoped_timer, waits_for_the_callback_that_uses_what_goes_with_it) {
    running_loop loop;
    for (int round = 0; round < 200; ++round) {
        struct session {
            explicit session(timers& home) : watchdog(home, home.every(1us, missed_ticks::skip, [this] { ++beats; })) {}
            std::atomic<int> beats = 0;
            scoped_timer watchdog;  // Goes first, and with it every use of the rest.
        };
        session mine(loop->timers());
        if (round % 2 == 0) {
            while (mine.beats == 0) std::this_thread::yield();
        }
    }
    loop.join();
    check_ledger_at_rest(*loop);
}

}  // namespace
}  // namespace chime::test
