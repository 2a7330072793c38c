// SPDX-License-Identifier: MIT
//
// Virtual time: the clock and the context that tests are written with.
#include "support/ledger.hpp"
#include "support/refusal.hpp"
#include "support/running_loop.hpp"

#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;
using testing::virtual_clock;
using testing::when_idle;

TEST(virtual_clock, starts_where_it_is_told_and_moves_when_it_is_told) {
    virtual_clock clock(when_idle::stand_still, time_point{} + 100h);
    EXPECT_EQ(clock.now(), time_point{} + 100h);
    clock.advance(90min);
    EXPECT_EQ(clock.now(), time_point{} + 101h + 30min);
    clock.advance(-1h);
    clock.advance_to(time_point{});
    EXPECT_EQ(clock.now(), time_point{} + 101h + 30min) << "time does not run back";
    clock.advance(std::chrono::duration<double>(0.5));
    EXPECT_EQ(clock.now(), time_point{} + 101h + 30min + 500ms);
    clock.advance_to(time_point{} + 200h);
    EXPECT_EQ(clock.now(), time_point{} + 200h);
    clock.advance(std::chrono::hours::max());
    EXPECT_EQ(clock.now(), never - 1ns) << "never does not come";
    EXPECT_EQ(virtual_clock().now(), time_point{});
}

TEST(virtual_clock, jumps_to_the_next_deadline_when_all_is_idle) {
    virtual_clock clock;
    io_context context({.clock = &clock});
    std::vector<time_point> times;
    for (const auto delay : {24h, 1h, 8766h}) context.timers().after(delay, [&] { times.push_back(clock.now()); });
    EXPECT_EQ(context.run(), 3U);
    EXPECT_EQ(times, (std::vector{time_point{} + 1h, time_point{} + 24h, time_point{} + 8766h}));
    check_ledger_at_rest(context);
}

TEST(virtual_clock, does_not_jump_over_what_is_ready) {
    virtual_clock clock;
    io_context context({.clock = &clock});
    std::vector<time_point> times;
    context.timers().after(1h, [] {});
    context.post([&] {
        times.push_back(clock.now());
        context.post([&] { times.push_back(clock.now()); });
    });
    context.run();
    EXPECT_EQ(times, std::vector(2, time_point{}));
    check_ledger_at_rest(context);
}

TEST(virtual_clock, that_stands_still_moves_a_sleeping_loop_when_it_is_moved) {
    virtual_clock clock(when_idle::stand_still);
    io_context context({.clock = &clock});
    std::atomic<int> ran = 0;
    context.timers().after(1h, [&] { ++ran; });
    context.timers().after(2h, [&] { ++ran; });
    std::thread runner([&] { EXPECT_EQ(context.run(), 2U); });
    while (context.timers().stats().parks == 0) std::this_thread::yield();
    clock.advance(30min);
    EXPECT_EQ(ran, 0);
    clock.advance(30min);
    while (ran != 1) std::this_thread::yield();
    EXPECT_EQ(clock.now(), time_point{} + 1h) << "it does not go on by itself";
    clock.set_when_idle(when_idle::jump);
    runner.join();
    EXPECT_EQ(ran, 2);
    EXPECT_EQ(clock.now(), time_point{} + 2h);
    check_ledger_at_rest(context);
}

TEST(virtual_clock, does_not_jump_while_it_is_held) {
    virtual_clock clock;
    io_context context({.clock = &clock});
    std::atomic<bool> has_run = false;
    context.timers().after(1h, [&] { has_run = true; });
    auto first = clock.hold_still();
    auto second = clock.hold_still();
    auto moved = std::move(first);
    moved = std::move(second);  // Each holds it in the place of the other one now.
    std::thread runner([&] { context.run(); });
    while (context.timers().stats().parks == 0) std::this_thread::yield();
    EXPECT_FALSE(has_run);
    EXPECT_EQ(clock.now(), time_point{});
    { const auto ended = std::move(moved); }
    EXPECT_EQ(clock.now(), time_point{}) << "the other one still holds it";
    { const auto ended = std::move(second); }
    runner.join();
    EXPECT_TRUE(has_run);
    EXPECT_EQ(clock.now(), time_point{} + 1h);
    check_ledger_at_rest(context);
}

TEST(virtual_clock, with_two_contexts_on_two_threads_jumps_from_deadline_to_deadline_of_both) {
    virtual_clock clock;
    io_context one({.clock = &clock});
    io_context other({.clock = &clock});
    std::vector<time_point> of_one;
    std::vector<time_point> of_other;
    constexpr int ticks = 500;
    const auto tick = [&](io_context& home, std::vector<time_point>& times, std::chrono::seconds period) {
        struct ticker {
            static task<> run(io_context& where, virtual_clock& time, std::vector<time_point>& seen,
                              std::chrono::seconds step) {
                for (int count = 0; count < ticks; ++count) {
                    co_await where.timers().sleep_for(step);
                    seen.push_back(time.now());
                }
            }
        };
        spawn_detached(home, ticker::run(home, clock, times, period));
    };
    tick(one, of_one, 2s);
    tick(other, of_other, 3s);
    {
        auto hold = clock.hold_still();  // Until both are there.
        std::thread first([&] { one.run(); });
        std::thread second([&] { other.run(); });
        while (one.timers().stats().parks == 0 || other.timers().stats().parks == 0) std::this_thread::yield();
        { const auto go = std::move(hold); }
        first.join();
        second.join();
    }
    ASSERT_EQ(of_one.size(), std::size_t{ticks});
    ASSERT_EQ(of_other.size(), std::size_t{ticks});
    for (int count = 0; count < ticks; ++count) {
        const auto place = static_cast<std::size_t>(count);
        ASSERT_EQ(of_one[place], time_point{} + (count + 1) * 2s) << "nobody is jumped over";
        ASSERT_EQ(of_other[place], time_point{} + (count + 1) * 3s);
    }
    EXPECT_EQ(clock.now(), time_point{} + ticks * 3s);
    check_ledger_at_rest(one);
    check_ledger_at_rest(other);
}

TEST(virtual_clock, does_not_wait_for_a_context_that_nobody_runs) {
    virtual_clock clock;
    io_context run_here({.clock = &clock});
    io_context run_by_nobody({.clock = &clock});
    run_by_nobody.timers().after(1min, [] {});
    run_here.timers().after(1h, [] {});
    EXPECT_EQ(run_here.run(), 1U);
    EXPECT_EQ(clock.now(), time_point{} + 1h);
    EXPECT_EQ(run_by_nobody.run(), 1U) << "it is late, but not lost";
    check_ledger_at_rest(run_here);
    check_ledger_at_rest(run_by_nobody);
}

TEST(virtual_clock, lets_a_message_between_two_contexts_arrive_before_it_jumps) {
    virtual_clock clock;
    io_context one({.clock = &clock});
    io_context other({.clock = &clock});
    std::atomic<int> late = 0;
    constexpr int rounds = 300;
    struct sender {
        static task<> send(io_context& mine, io_context& theirs, virtual_clock& time, std::atomic<int>& too_late) {
            for (int round = 0; round < rounds; ++round) {
                co_await mine.timers().sleep_for(1s);
                const time_point sent = time.now();
                theirs.post([&time, &too_late, sent] {
                    if (time.now() != sent) ++too_late;
                });
            }
        }
    };
    spawn_detached(one, sender::send(one, other, clock, late));
    std::thread second;
    {
        auto guard = other.make_work_guard();
        second = std::thread([&] { other.run(); });
        while (other.timers().stats().parks == 0) std::this_thread::yield();
        one.run();
    }
    second.join();
    EXPECT_EQ(late, 0);
    check_ledger_at_rest(one);
    check_ledger_at_rest(other);
}

// --- virtual_context

TEST(virtual_context, advances_through_everything_that_comes_due_each_at_its_own_time) {
    testing::virtual_context context;
    std::vector<time_point> times;
    const auto note = [&] { times.push_back(context.now()); };
    context->timers().after(1s, [&] {
        note();
        context->timers().after(1s, note);  // Comes of it, and still lies on the way.
        context->timers().after(10s, note);
    });
    context->timers().after(3s, note);
    EXPECT_EQ(context.advance(3s), 3U);
    EXPECT_EQ(times, (std::vector{time_point{} + 1s, time_point{} + 2s, time_point{} + 3s}));
    EXPECT_EQ(context.now(), time_point{} + 3s);
    EXPECT_EQ(context.advance(1s), 0U);
    EXPECT_EQ(context.now(), time_point{} + 4s) << "time goes on, even if nothing happens";
    EXPECT_EQ(context.advance(-1h), 0U);
    EXPECT_EQ(context.advance_to(time_point{}), 0U);
    EXPECT_EQ(context.now(), time_point{} + 4s);
    EXPECT_EQ(context.run(), 1U);
    check_ledger_at_rest(*context);
}

TEST(virtual_context, settles_what_is_ready_without_moving_time) {
    testing::virtual_context context;
    int left = 10;
    struct relay {
        void operator()() const {
            if (--left > 0) home.post(*this);
        }
        io_context& home;
        int& left;
    };
    context->post(relay{*context, left});
    context->timers().after(0s, [] {});
    context->timers().after(1ns, [] { ADD_FAILURE() << "time has moved"; });
    EXPECT_EQ(context.settle(), 11U);
    EXPECT_EQ(left, 0);
    EXPECT_EQ(context.now(), time_point{});
    check_ledger(*context);
}

TEST(virtual_context, settles_at_the_end_of_an_advance) {
    testing::virtual_context context;
    std::vector<int> order;
    context->timers().after(1s, [&] {
        order.push_back(1);
        context->post([&] {
            order.push_back(2);
            context->timers().after(0s, [&] {
                order.push_back(3);
                context->timers().after(0s, [&] { order.push_back(4); });
            });
        });
        context->timers().after(1ns, [&] { order.push_back(5); });
    });
    EXPECT_EQ(context.advance(1s), 4U);
    EXPECT_EQ(order, (std::vector{1, 2, 3, 4})) << "all that comes of it, and nothing that is later";
    EXPECT_EQ(context.now(), time_point{} + 1s);
    EXPECT_EQ(context.advance(0s), 0U);
    EXPECT_EQ(context.advance(1ns), 1U);
    EXPECT_EQ(context.advance(0s), 0U);
    check_ledger_at_rest(*context);
}

task<int> answer_after_a_day() {
    co_await sleep_for(24h);
    co_return 42;
}

task<> fail_after_a_day() {
    co_await sleep_for(24h);
    throw std::runtime_error("a day later");
}

TEST(virtual_context, blocks_on_a_task_with_jumping_time_and_stands_still_again) {
    testing::virtual_context context;
    int beats = 0;
    // None of them is due in the moment in which the day is over.
    const timer_handle beat = context->timers().every(50min, missed_ticks::skip, [&] { ++beats; });
    EXPECT_EQ(context.block_on(answer_after_a_day()), 42);
    EXPECT_EQ(context.now(), time_point{} + 24h);
    EXPECT_EQ(beats, 28) << "what else comes due on the way runs, too";
    EXPECT_THROW(context.block_on(fail_after_a_day()), std::runtime_error);
    EXPECT_EQ(context.now(), time_point{} + 48h);
    EXPECT_EQ(context->poll(), 0U);
    EXPECT_EQ(context.now(), time_point{} + 48h);
    context->timers().cancel(beat);
    context.settle();
    check_ledger_at_rest(*context);
}

TEST(virtual_context, has_no_descriptor_because_that_could_not_tell_when_its_time_has_come) {
    testing::virtual_context context;
    expect_refused(errc::bad_configuration, [&] { static_cast<void>(context->poll_fd()); });
    virtual_clock clock;
    io_context other({.clock = &clock});
    expect_refused(errc::bad_configuration, [&] { static_cast<void>(other.poll_fd()); });
    check_ledger_at_rest(*context);
    check_ledger_at_rest(other);
}

TEST(virtual_context, stands_still_again_after_an_exception) {
    testing::virtual_context context;
    context->timers().after(1s, [] { throw std::runtime_error("on the way"); });
    context->timers().after(2s, [] {});
    EXPECT_THROW(context.advance(1h), std::runtime_error);
    EXPECT_EQ(context.now(), time_point{} + 1s);
    EXPECT_EQ(context->poll(), 0U);
    EXPECT_EQ(context.now(), time_point{} + 1s);
    EXPECT_EQ(context.advance(1s), 1U);
    check_ledger_at_rest(*context);
}

TEST(virtual_context, goes_through_a_year_in_no_time) {
    testing::virtual_context context;
    int beats = 0;
    context->timers().every(1h, missed_ticks::skip, [&] { ++beats; });
    context.advance(8760h);
    EXPECT_EQ(beats, 8760);
    check_ledger(*context);
}

TEST(virtual_context, takes_a_configuration_but_for_the_clock) {
    virtual_clock ignored(when_idle::jump, time_point{} + 5h);
    testing::virtual_context context({.max_timers = 2, .clock = &ignored});
    EXPECT_EQ(context.now(), time_point{});
    EXPECT_EQ(&context.context(), &*context);
    context->timers().after(1s, [] {});
    context->timers().after(1s, [] {});
    EXPECT_FALSE(context->timers().try_after(1s, [] {}));
    context.run();
    EXPECT_EQ(ignored.now(), time_point{} + 5h);
    check_ledger_at_rest(*context);
}

task<> sleep_for_ever(wake_reason& why) {
    why = co_await sleep_until(never);
}

TEST(virtual_time, ends_before_never_which_does_not_come) {
    testing::virtual_context context;
    bool has_fired = false;
    wake_reason why = wake_reason::elapsed;
    context->timers().at(never, [&] { has_fired = true; });
    spawn_detached(*context, sleep_for_ever(why));
    EXPECT_EQ(context.advance(std::chrono::hours::max()), 1U) << "the task has begun to sleep";
    EXPECT_EQ(context.now(), never - 1ns);
    EXPECT_EQ(context.advance(1s), 0U);
    context->post([] {});
    EXPECT_EQ(context.advance_to(never), 1U);
    EXPECT_EQ(context.now(), never - 1ns);
    EXPECT_FALSE(has_fired);
    context->timers().stop();
    context.settle();
    EXPECT_EQ(why, wake_reason::cancelled);
    check_ledger_at_rest(*context);
}

TEST(virtual_time, that_has_ended_keeps_no_loop_from_ending) {
    testing::virtual_clock clock(testing::when_idle::jump, never);
    EXPECT_EQ(clock.now(), never - 1ns);
    io_context context({.clock = &clock});
    auto guard = std::make_unique<io_context::work_guard>(context);
    std::thread runs([&] { context.run(); });
    guard.reset();
    runs.join();
    runtime home({.workers = 2, .clock = &clock});
    clock.advance_to(never);
    home.timers().after(1s, [] {});
}

}  // namespace
}  // namespace chime::test
