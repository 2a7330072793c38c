// SPDX-License-Identifier: MIT
//
// Bugs that other runtimes of this kind have had with deadlines and cancelling. Each keeps its number and its sentence.
#include "runtime/small_tasks.hpp"
#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/testing.hpp>
#include <chime/timer_cell.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

// --- The cached next deadline.

TEST(regression, b07_a_periodic_timer_that_cancels_itself_does_not_hide_a_later_one) {
    for (const auto later : {1ms, 10ms, 11ms, 100ms, 3'600'000ms}) {
        testing::virtual_context context;
        int beats = 0;
        bool has_fired = false;
        timer_handle beat;
        beat = context->timers().every(10ms, missed_ticks::skip, [&] {
            ++beats;
            EXPECT_EQ(context->timers().cancel(beat), cancel_result::running);
            context->timers().after(later, [&] { has_fired = true; });
        });
        context.run();
        EXPECT_EQ(beats, 1);
        EXPECT_TRUE(has_fired);
        check_ledger_at_rest(*context);
    }
}

TEST(regression, b07_a_timer_that_was_there_before_survives_the_end_of_a_periodic_one) {
    testing::virtual_context context;
    bool has_fired = false;
    timer_handle beat;
    context->timers().after(35ms, [&] { has_fired = true; });
    beat = context->timers().every(10ms, missed_ticks::skip, [&] { context->timers().cancel(beat); });
    context.advance(34ms);
    EXPECT_FALSE(has_fired);
    context.advance(1ms);
    EXPECT_TRUE(has_fired);
    check_ledger_at_rest(*context);
}

TEST(regression, b08_a_loop_with_everything_cancelled_does_not_spin) {
    const watchdog guard("idle after cancelling");
    io_context context;
    loop_thread loop(context);
    std::vector<timer_handle> all;
    for (int i = 0; i < 1'000; ++i) all.push_back(context.timers().after(20ms + i * 1us, [] {}));
    for (const timer_handle each : all) context.timers().cancel(each);
    loop.wait_until_parked();
    const timer_stats before = context.timers().stats();
    std::this_thread::sleep_for(150ms);
    const timer_stats after = context.timers().stats();
    EXPECT_LE(after.turns - before.turns, 5U);
    EXPECT_LE(after.parks - before.parks, 5U);
    EXPECT_EQ(after.pending, 0U);
    loop.finish();
    check_ledger_at_rest(context);
}

TEST(regression, b08_a_virtual_day_with_everything_cancelled_takes_few_turns) {
    testing::virtual_context context;
    std::vector<timer_handle> all;
    for (int i = 0; i < 1'000; ++i) all.push_back(context->timers().after(i * 1min, [] {}));
    context.settle();
    for (const timer_handle each : all) context->timers().cancel(each);
    const std::uint64_t before = context->timers().stats().turns;
    context.advance(24h);
    EXPECT_LE(context->timers().stats().turns - before, 20U);
    check_ledger_at_rest(*context);
}

// --- Answers.

TEST(regression, b11_answers_in_the_middle_of_a_run_agree_with_each_other) {
    testing::virtual_context context;
    timers& all = context->timers();
    timer_handle once;
    int runs = 0;
    once = all.after(1ms, [&] {
        ++runs;
        EXPECT_FALSE(all.postpone(once, 1ms));
        EXPECT_EQ(all.cancel(once), cancel_result::running);
        EXPECT_EQ(all.cancel_and_wait(once), cancel_result::running);
        EXPECT_FALSE(all.postpone_until(once, never));
    });
    context.run();
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(all.cancel(once), cancel_result::gone);
    EXPECT_EQ(all.cancel_and_wait(once), cancel_result::gone);
    EXPECT_FALSE(all.postpone(once, 1ms));
    check_ledger_at_rest(*context);
}

TEST(regression, b11_another_thread_gets_the_same_answers_in_the_middle_of_a_run) {
    const watchdog guard("cancel during a run");
    io_context context;
    timers& all = context.timers();
    for (const bool repeats : {false, true}) {
        std::atomic<int> runs{0};
        std::atomic<bool> may_end{false};
        const auto body = [&] {
            ++runs;
            await_that([&] { return may_end.load(); });
        };
        const timer_handle which = repeats ? all.every(1ms, missed_ticks::skip, body) : all.after(1ms, body);
        loop_thread loop(context);
        await_that([&] { return runs.load() == 1; });
        EXPECT_FALSE(all.postpone(which, 1ms));
        EXPECT_EQ(all.cancel(which), cancel_result::running);
        EXPECT_EQ(all.cancel(which), cancel_result::running);
        EXPECT_FALSE(all.postpone(which, 1ms));
        may_end = true;
        EXPECT_NE(all.cancel_and_wait(which), cancel_result::cancelled);
        EXPECT_EQ(all.cancel(which), cancel_result::gone);
        loop.finish();
        EXPECT_EQ(runs.load(), 1);
    }
    check_ledger_at_rest(context);
}

TEST(regression, b12_cancelled_before_the_loop_has_accepted_it_it_never_enters_the_wheel) {
    testing::virtual_context context;
    timers& all = context->timers();
    auto kept = std::make_shared<int>(0);
    for (int round = 0; round < 100; ++round) {
        std::vector<timer_handle> armed;
        // Outside of run() this thread is a foreign one: what it arms waits in the inbox.
        for (int i = 0; i < 50; ++i) armed.push_back(all.after(1h + i * 1s, [kept] { ++*kept; }));
        for (const timer_handle each : armed) EXPECT_EQ(all.cancel(each), cancel_result::cancelled);
        EXPECT_EQ(kept.use_count(), 1) << "closures are destroyed by the canceller";
        for (const timer_handle each : armed) {
            EXPECT_EQ(all.cancel(each), cancel_result::gone);
            EXPECT_FALSE(all.postpone(each, 1s));
        }
        EXPECT_EQ(context.run(), 0U);
        EXPECT_EQ(all.stats().tickets, 0U);
    }
    EXPECT_EQ(context.now(), time_point{});
    check_ledger_at_rest(*context);
}

TEST(regression, b12_postponed_and_cancelled_before_the_loop_has_accepted_it_it_is_gone_too) {
    testing::virtual_context context;
    timers& all = context->timers();
    int fired = 0;
    for (int round = 0; round < 100; ++round) {
        const timer_handle which = all.after(2h, [&] { ++fired; });
        EXPECT_TRUE(all.postpone(which, round % 2 == 0 ? 1h : 3h));
        EXPECT_EQ(all.cancel(which), cancel_result::cancelled);
        const timer_handle next = all.after(1s, [&] { ++fired; });
        EXPECT_TRUE(all.postpone(next, 5s));
        const time_point asked = context.now();
        context.run();
        EXPECT_EQ(context.now() - asked, 5s);
    }
    EXPECT_EQ(fired, 100);
    check_ledger_at_rest(*context);
}

TEST(regression, b16_cancelled_at_its_very_deadline_it_does_not_run_wherever_it_is) {
    // The first of a tick cancels all others of that tick: some wait in the wheel, some are sorted already, the next one
    // has been found due.
    for (const auto step : {0ns, 1ns, 100ns, 200'000ns, 300'000ns, 1'000'000ns}) {
        for (int kind = 0; kind < 3; ++kind) {
            testing::virtual_context context;
            timers& all = context->timers();
            std::vector<timer_handle> others;
            int ran = 0;
            all.after(20ms, [&] {
                for (const timer_handle each : others) {
                    EXPECT_EQ(all.cancel(each), cancel_result::cancelled);
                    EXPECT_EQ(all.cancel(each), cancel_result::gone);
                }
            });
            for (int i = 0; i < 40; ++i) {
                others.push_back(kind == 1 ? all.every(20ms + i * step, missed_ticks::skip, [&] { ++ran; })
                                           : all.after(20ms + i * step, [&] { ++ran; }));
            }
            if (kind == 2) context.advance(19ms);
            // Time jumps beyond them all, so that all of them are due at once.
            context.clock().advance(1s);
            context.settle();
            EXPECT_EQ(ran, 0);
            check_ledger_at_rest(*context);
        }
    }
}

TEST(regression, b16_a_sleeper_cancelled_at_its_very_deadline_is_told_so) {
    testing::virtual_context context;
    cancel_source source;
    std::vector<wake_reason> reasons;
    context->timers().after(1h, [&] { source.request_cancel(); });
    spawn_detached(*context, sleep_and_note(source.token(), reasons));
    context.run();
    EXPECT_EQ(reasons, std::vector{wake_reason::cancelled});
    check_ledger_at_rest(*context);
}

TEST(regression, b31_due_but_not_run_yet_is_still_cancellable) {
    testing::virtual_context context;
    timers& all = context->timers();
    std::vector<int> ran;
    std::vector<timer_handle> handles(4);
    for (int i = 0; i < 4; ++i) {
        handles[static_cast<std::size_t>(i)] = all.after(5ms, [&, i] {
            ran.push_back(i);
            if (i == 0) {
                EXPECT_EQ(all.cancel(handles[1]), cancel_result::cancelled);
                EXPECT_EQ(all.cancel(handles[3]), cancel_result::cancelled);
            }
        });
    }
    context.run();
    EXPECT_EQ(ran, (std::vector{0, 2}));
    check_ledger_at_rest(*context);
}

TEST(regression, b31_due_but_not_run_yet_can_still_be_postponed) {
    testing::virtual_context context;
    timers& all = context->timers();
    std::vector<std::pair<char, duration>> ran;
    timer_handle second;
    all.after(5ms, [&] {
        ran.emplace_back('a', context.now().time_since_epoch());
        EXPECT_TRUE(all.postpone(second, 7ms));
    });
    second = all.after(5ms, [&] { ran.emplace_back('b', context.now().time_since_epoch()); });
    context.run();
    ASSERT_EQ(ran.size(), 2U);
    EXPECT_EQ(ran[1], (std::pair<char, duration>('b', 12ms)));
    check_ledger_at_rest(*context);
}

// --- Cancelled sleeps.

/// A wait that lets the test in between its two steps.
struct opened_wait {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> frame) {
        const timer_handle handle = cell.prepare(frame, 1h);
        between(handle);
        return cell.commit();
    }
    wake_reason await_resume() noexcept { return cell.reason(); }

    opened_wait(timers& home, std::function<void(timer_handle)> step) : cell(home), between(std::move(step)) {}
    timer_cell cell;
    std::function<void(timer_handle)> between;
};

task<> wait_opened(io_context& context, const std::function<void(timer_handle)>& between,
                   std::vector<wake_reason>& reasons) {
    opened_wait wait(context.timers(), between);
    reasons.push_back(co_await wait);
}

TEST(regression, b29_a_wait_cancelled_in_each_of_its_phases_resumes_once) {
    for (const bool elsewhere : {false, true}) {
        for (int phase = 0; phase < 5; ++phase) {
            testing::virtual_context context;
            std::vector<wake_reason> reasons;
            timer_handle handle;
            int cancels = 0;
            const auto cancel = [&] {
                const auto once = [&] {
                    cancels += context->timers().cancel(handle) == cancel_result::cancelled ? 1 : 0;
                };
                if (elsewhere) {
                    std::thread(once).join();
                } else {
                    once();
                }
            };
            const std::function<void(timer_handle)> between = [&](timer_handle made) {
                handle = made;
                if (phase == 1) cancel();
            };
            spawn_detached(*context, wait_opened(*context, between, reasons));
            if (phase == 0) cancel();  // It names nothing yet.
            context.settle();
            if (phase == 2) cancel();
            if (phase == 3) {
                context.clock().advance(1h);  // Due, but not run.
                cancel();
            }
            context.run();
            if (phase == 4) cancel();
            const bool counts = phase >= 1 && phase <= 3;
            EXPECT_EQ(cancels, counts ? 1 : 0) << phase;
            EXPECT_EQ(reasons, std::vector{counts ? wake_reason::cancelled : wake_reason::elapsed}) << phase;
            EXPECT_EQ(context->timers().cancel(handle), cancel_result::gone);
            check_ledger_at_rest(*context);
        }
    }
}

}  // namespace
}  // namespace chime::test
