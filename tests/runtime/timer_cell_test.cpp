// SPDX-License-Identifier: MIT
//
// The pieces that awaitables are made of, as a user would put them together.
#include "support/ledger.hpp"
#include "support/refusal.hpp"
#include "support/running_loop.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>
#include <chime/timer_cell.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

// --- An event with a timeout, built on a cell.

/// Set once; one task waits for it, for a limited time. Any thread may set it.
class event {
 public:
    explicit event(timers& home) noexcept : home_(home) {}

    void set() {
        const std::lock_guard lock(mutex_);
        is_set_ = true;
        home_.cancel(waiter_);
    }
    bool is_set() const {
        const std::lock_guard lock(mutex_);
        return is_set_;
    }

    class wait {
     public:
        wait(event& awaited, std::chrono::nanoseconds limit) : event_(awaited), limit_(limit), cell_(awaited.home_) {}

        [[nodiscard]] bool await_ready() const noexcept { return false; }
        template <class Promise>
        bool await_suspend(std::coroutine_handle<Promise> frame) {
            const timer_handle named = cell_.prepare(frame, limit_);
            {
                const std::lock_guard lock(event_.mutex_);
                event_.waiter_ = named;
                if (event_.is_set_) event_.home_.cancel(named);
            }
            return cell_.commit();
        }
        /// True: it was set in time.
        bool await_resume() { return cell_.reason() == wake_reason::cancelled; }

     private:
        event& event_;
        std::chrono::nanoseconds limit_;
        timer_cell cell_;
    };

 private:
    timers& home_;
    mutable std::mutex mutex_;
    bool is_set_ = false;
    timer_handle waiter_;
};

task<> wait_for_event(event& awaited, std::chrono::nanoseconds limit, std::optional<bool>& in_time, time_point& when) {
    event::wait wait(awaited, limit);
    in_time = co_await wait;
    when = this_task::now();
}

TEST(timer_cell, makes_an_event_with_a_timeout) {
    testing::virtual_context context;
    for (const bool is_set_in_time : {true, false}) {
        const time_point start = context.now();
        event awaited(context->timers());
        std::optional<bool> in_time;
        time_point when{};
        spawn_detached(*context, wait_for_event(awaited, 5s, in_time, when));
        context->timers().after(is_set_in_time ? 2s : 7s, [&] { awaited.set(); });
        context.run();
        EXPECT_EQ(in_time, is_set_in_time);
        EXPECT_EQ(when, start + (is_set_in_time ? 2s : 5s));
    }
    check_ledger_at_rest(*context);
}

TEST(timer_cell, notices_what_happens_between_prepare_and_commit) {
    testing::virtual_context context;
    event awaited(context->timers());
    awaited.set();
    std::optional<bool> in_time;
    time_point when{};
    spawn_detached(*context, wait_for_event(awaited, 5s, in_time, when));
    context.run();
    EXPECT_EQ(in_time, true);
    EXPECT_EQ(when, time_point{});
    check_ledger_at_rest(*context);
}

TEST(timer_cell, is_woken_by_another_thread_at_any_moment) {
    running_loop loop;
    for (int round = 0; round < 2000; ++round) {
        event awaited(loop->timers());
        std::optional<bool> in_time;
        std::atomic<bool> is_done = false;
        struct waiter {
            static task<> wait(event& set_soon, std::optional<bool>& result, std::atomic<bool>& done) {
                event::wait wait(set_soon, 1h);
                result = co_await wait;
                done = true;
            }
        };
        spawn_detached(*loop, waiter::wait(awaited, in_time, is_done));
        if (round % 3 == 0) std::this_thread::yield();
        awaited.set();
        wait_for(is_done);
        ASSERT_EQ(in_time, true);
    }
    loop.join();
    check_ledger_at_rest(*loop);
}

// --- Cells step by step.

/// Does with a cell whatever it is told to, between suspending and resuming.
template <class Steps>
struct scripted_wait {
    timer_cell& cell;
    Steps& steps;
    std::optional<wake_reason>& reason;
    bool has_prepared = true;

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> frame) {
        has_prepared = steps(cell, std::coroutine_handle<>(frame));
        return has_prepared && cell.commit();
    }
    void await_resume() {
        if (has_prepared) reason = cell.reason();
    }
};

template <class Steps>
task<> follow(timer_cell& cell, Steps& steps, std::optional<wake_reason>& reason) {
    scripted_wait<Steps> wait{cell, steps, reason};
    co_await wait;
}

template <class Steps>
std::optional<wake_reason> run_script(testing::virtual_context& context, timer_cell& cell, Steps steps) {
    std::optional<wake_reason> reason;
    spawn_detached(*context, follow(cell, steps, reason));
    context.run();
    return reason;
}

TEST(timer_cell, waits_for_a_delay_and_for_a_time) {
    testing::virtual_context context;
    timer_cell cell(context->timers());
    EXPECT_FALSE(cell.handle());
    EXPECT_EQ(cell.generation(), 0U);
    const auto by_delay = [](timer_cell& its, auto frame) {
        EXPECT_TRUE(its.prepare(frame, 2s).is_sleep());
        return true;
    };
    EXPECT_EQ(run_script(context, cell, by_delay), wake_reason::elapsed);
    EXPECT_EQ(context.now(), time_point{} + 2s);
    const auto by_time = [](timer_cell& its, auto frame) {
        its.prepare(frame, time_point{} + 5s);
        return true;
    };
    EXPECT_EQ(run_script(context, cell, by_time), wake_reason::elapsed);
    EXPECT_EQ(context.now(), time_point{} + 5s);
    EXPECT_EQ(cell.deadline(), time_point{} + 5s);
    EXPECT_EQ(cell.generation(), 2U);
    EXPECT_EQ(context->timers().cancel(cell.handle()), cancel_result::gone);
    check_ledger_at_rest(*context);
}

TEST(timer_cell, prepared_again_cancels_what_was_prepared_before) {
    testing::virtual_context context;
    timer_cell cell(context->timers());
    timer_handle first;
    const auto twice = [&](timer_cell& its, auto frame) {
        first = its.prepare(frame, 1s);
        const timer_handle second = its.prepare(frame, 1h);
        EXPECT_NE(first, second);
        EXPECT_EQ(context->timers().cancel(first), cancel_result::gone);
        EXPECT_FALSE(context->timers().postpone(first, 0s));
        EXPECT_EQ(its.handle(), second);
        return true;
    };
    EXPECT_EQ(run_script(context, cell, twice), wake_reason::elapsed);
    EXPECT_EQ(context.now(), time_point{} + 1h);
    EXPECT_EQ(cell.generation(), 2U);
    EXPECT_EQ(context->timers().stats().armed, 2U);
    EXPECT_EQ(context->timers().stats().cancelled, 1U);
    check_ledger_at_rest(*context);
}

TEST(timer_cell, cancelled_between_prepare_and_commit_answers_cancelled_and_yields) {
    testing::virtual_context context;
    timer_cell cell(context->timers());
    std::string story;
    const auto cancel_it = [&](timer_cell& its, auto frame) {
        EXPECT_EQ(context->timers().cancel(its.prepare(frame, 1h)), cancel_result::cancelled);
        EXPECT_EQ(context->timers().cancel(its.handle()), cancel_result::gone);
        return true;
    };
    EXPECT_EQ(run_script(context, cell, cancel_it), wake_reason::cancelled);
    EXPECT_EQ(context.now(), time_point{});
    check_ledger_at_rest(*context);
}

TEST(timer_cell, cancelled_and_prepared_again_waits_for_the_new_deadline) {
    testing::virtual_context context;
    timer_cell cell(context->timers());
    const auto steps = [&](timer_cell& its, auto frame) {
        EXPECT_EQ(context->timers().cancel(its.prepare(frame, 1h)), cancel_result::cancelled);
        its.prepare(frame, 1s);
        return true;
    };
    EXPECT_EQ(run_script(context, cell, steps), wake_reason::elapsed);
    EXPECT_EQ(context.now(), time_point{} + 1s);
    check_ledger_at_rest(*context);
}

TEST(timer_cell, reset_after_prepare_has_not_begun_to_wait) {
    testing::virtual_context context;
    timer_cell cell(context->timers());
    const auto change_of_mind = [](timer_cell& its, auto frame) {
        its.prepare(frame, 1h);
        its.reset();
        its.reset();
        return false;
    };
    EXPECT_EQ(run_script(context, cell, change_of_mind), std::nullopt);
    EXPECT_EQ(context.now(), time_point{});
    check_ledger_at_rest(*context);
}

task<> sleep_after_a_change_of_mind(timers& home, time_point& woken) {
    {
        timer_cell cell(home);
        std::optional<wake_reason> reason;
        auto leave_prepared = [](timer_cell& its, auto frame) {
            its.prepare(frame, 1h);
            return false;  // The cell is destroyed as it is.
        };
        task<> inner = follow(cell, leave_prepared, reason);
        co_await std::move(inner);
    }
    co_await sleep_for(1s);
    woken = this_task::now();
}

TEST(timer_cell, destroyed_while_prepared_leaves_nothing_behind) {
    testing::virtual_context context;
    time_point woken{};
    spawn_detached(*context, sleep_after_a_change_of_mind(context->timers(), woken));
    context.run();
    EXPECT_EQ(woken, time_point{} + 1s);
    check_ledger_at_rest(*context);
}

TEST(timer_cell, whose_wait_is_cancelled_from_outside_tells_so) {
    testing::virtual_context context;
    timer_cell cell(context->timers());
    context->timers().after(1s, [&] { cell.reset(); });
    const auto wait = [](timer_cell& its, auto frame) {
        its.prepare(frame, never);
        return true;
    };
    EXPECT_EQ(run_script(context, cell, wait), wake_reason::cancelled);
    EXPECT_EQ(context.now(), time_point{} + 1s);
    check_ledger_at_rest(*context);
}

TEST(timer_cell, moved_between_two_waits_keeps_its_interval_and_its_place) {
    testing::virtual_context context;
    const auto next = [](timer_cell& its, auto frame) {
        its.prepare_next(frame);
        return true;
    };
    timer_cell cell(context->timers());
    cell.set_interval(2s);
    EXPECT_EQ(run_script(context, cell, next), wake_reason::elapsed);
    context.advance(1s);
    timer_cell moved(std::move(cell));
    EXPECT_EQ(moved.generation(), 1U);
    EXPECT_EQ(moved.interval(), 2s);
    EXPECT_EQ(run_script(context, moved, next), wake_reason::elapsed);
    EXPECT_EQ(context.now(), time_point{} + 4s) << "a multiple of the interval, counted from the first deadline";
    check_ledger_at_rest(*context);
}

TEST(timer_cell, takes_an_interval_in_any_unit_rounded_up_and_saturated) {
    timer_cell cell;
    cell.set_interval(std::chrono::hours::max());
    EXPECT_EQ(cell.interval(), duration::max()) << "never soon by overflow";
    cell.set_interval(std::chrono::duration<double, std::micro>{0.0004});
    EXPECT_EQ(cell.interval(), 1ns);
    EXPECT_THROW(cell.set_interval(std::chrono::duration<double>{std::numeric_limits<double>::quiet_NaN()}),
                 std::system_error);
    EXPECT_EQ(cell.interval(), 1ns);
}

TEST(timer_cell, moved_in_a_wait_cancels_it) {
    testing::virtual_context context;
    timer_cell cell(context->timers());
    context->timers().after(1s, [&] { const timer_cell taken(std::move(cell)); });
    const auto wait = [](timer_cell& its, auto frame) {
        its.prepare(frame, 1h);
        return true;
    };
    EXPECT_EQ(run_script(context, cell, wait), wake_reason::cancelled);
    EXPECT_EQ(context.now(), time_point{} + 1s);
    check_ledger_at_rest(*context);
}

TEST(timer_cell, outside_of_a_task_or_in_one_of_another_context_is_refused) {
    testing::virtual_context here;
    testing::virtual_context there;
    timer_cell cell(there->timers());
    const auto wait = [](timer_cell& its, auto frame) {
        its.prepare(frame, 1s);
        return true;
    };
    expect_refused(errc::not_in_a_task, [&] { cell.prepare(std::coroutine_handle<>(), 1s); });
    expect_refused(errc::not_in_a_task, [&] { run_script(here, cell, wait); });
    EXPECT_EQ(cell.generation(), 0U);
    check_ledger_at_rest(*here);
    check_ledger_at_rest(*there);
}

task<> wait_next_twice(timer_cell& cell) {
    std::optional<wake_reason> reason;
    auto next = [](timer_cell& its, auto frame) {
        its.prepare_next(frame);
        return true;
    };
    for (int count = 0; count < 3; ++count) {
        task<> inner = follow(cell, next, reason);
        co_await std::move(inner);
    }
}

TEST(timer_cell, without_an_interval_or_a_context_waits_for_now_each_time) {
    testing::virtual_context context;
    timer_cell cell;
    spawn_detached(*context, wait_next_twice(cell));
    context.run();
    EXPECT_EQ(cell.generation(), 3U);
    EXPECT_EQ(cell.deadline(), time_point{});
    EXPECT_EQ(context.now(), time_point{});
    check_ledger_at_rest(*context);
}

TEST(timer_cell, without_an_interval_does_not_die_of_being_asked_for_the_next_one) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            testing::virtual_context context;
            timer_cell cell(context->timers());
            spawn_detached(*context, wait_next_twice(cell));
            try {
                context.advance(1s);
            } catch (const std::system_error&) {
                // Refused is as good as due at once.
            }
            std::_Exit(0);
        },
        ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace chime::test
