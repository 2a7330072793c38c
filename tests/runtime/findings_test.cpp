// SPDX-License-Identifier: MIT
//
// What we have found ourselves, on paper or in code. Each keeps its sentence.

#include "runtime/small_tasks.hpp"
#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/testing.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

task<int> give(int value) {
    co_await yield();
    co_return value;
}

TEST(findings, a_cap_is_not_reached_by_timers_that_come_and_go) {
    // From outside of the loop, one at a time, three times as many as may be pending.
    testing::virtual_context context({.max_timers = 16});
    int fired = 0;
    for (int round = 0; round < 48; ++round) {
        ASSERT_TRUE(context->timers().try_after(1ms, [&] { ++fired; }).has_value())
            << "round " << round << ", pending " << context->timers().stats().pending;
        context.run();
    }
    EXPECT_EQ(fired, 48);
    check_ledger_at_rest(*context);
}

TEST(findings, a_cap_is_not_reached_by_timers_that_are_armed_and_cancelled) {
    testing::virtual_context context({.max_timers = 16});
    for (int round = 0; round < 48; ++round) {
        const auto armed = context->timers().try_after(1ms, [] {});
        ASSERT_TRUE(armed.has_value()) << "round " << round << ", pending " << context->timers().stats().pending;
        EXPECT_EQ(context->timers().cancel(*armed), cancel_result::cancelled);
        context.run();
    }
    check_ledger_at_rest(*context);
}

TEST(findings, a_cap_is_not_reached_by_tasks_that_come_and_go) {
    testing::virtual_context context({.max_tasks = 16});
    int sum = 0;
    for (int round = 0; round < 48; ++round) {
        auto joined = spawn(*context, give(1));
        context.run();
        EXPECT_TRUE(joined.is_done());
        ++sum;
    }
    EXPECT_EQ(sum, 48);
    check_ledger_at_rest(*context);
}

TEST(findings, a_sleeping_loop_gives_records_back_before_the_cap_is_reached_with_nothing_pending) {
    const watchdog guard("arm and cancel at a sleeping loop");
    for (const std::size_t cap : {64U, 1'000U, 10'000U}) {
        io_context context({.max_timers = cap});
        loop_thread loop(context);
        loop.wait_until_parked();
        std::uint64_t refused = 0;
        for (std::size_t i = 0; i < 30'000; ++i) {
            auto armed = context.timers().try_after(1h, [] {});
            // The owner may need a moment to clean up, but it has to begin.
            for (int patience = 0; !armed && patience < 200; ++patience) {
                ++refused;
                std::this_thread::sleep_for(1ms);
                armed = context.timers().try_after(1h, [] {});
            }
            ASSERT_TRUE(armed.has_value()) << "cap " << cap << ", round " << i << ": refused " << refused
                                           << " times with " << context.timers().stats().pending << " pending";
            ASSERT_EQ(context.timers().cancel(*armed), cancel_result::cancelled);
        }
        loop.finish();
        check_ledger_at_rest(context);
    }
}

TEST(findings, run_returns_when_the_last_timer_is_cancelled_from_outside) {
    const watchdog guard("cancel the last one", 30s);
    for (int kind = 0; kind < 3; ++kind) {
        io_context context;
        cancel_source source;
        timer_handle which;
        join_handle<void> joined;
        std::vector<wake_reason> reasons;
        if (kind == 0) which = context.timers().after(1h, [] {});
        if (kind == 1)
            which = context.timers().every(
                1h, missed_ticks::skip, [] {}, source.token());
        if (kind == 2) joined = spawn(context, sleep_and_note({}, reasons));
        std::thread canceller([&] {
            await_that([&] { return context.timers().stats().parks != 0; });
            std::this_thread::sleep_for(5ms);
            if (kind == 0) {
                EXPECT_EQ(context.timers().cancel(which), cancel_result::cancelled);
            }
            if (kind == 1) {
                EXPECT_TRUE(source.request_cancel());
            }
            if (kind == 2) {
                EXPECT_TRUE(joined.cancel());
            }
        });
        context.run();
        canceller.join();
        check_ledger_at_rest(context);
    }
}

TEST(findings, alternating_postponements_leave_a_bounded_number_of_tickets) {
    for (const bool elsewhere : {false, true}) {
        testing::virtual_context context({.stale_slack = 64});
        timers& all = context->timers();
        int fired = 0;
        const timer_handle which = all.after(10h, [&] { ++fired; });
        context.settle();
        std::uint64_t most = 0;
        for (int i = 0; i < 20'000; ++i) {
            const auto delay = i % 2 == 0 ? 1h + (i % 7) * 1s : 9h;
            if (elsewhere) {
                ASSERT_TRUE(all.postpone(which, delay));
            } else {
                context->post([&, delay] { EXPECT_TRUE(all.postpone(which, delay)); });
            }
            context->poll();
            most = std::max(most, all.stats().tickets);
        }
        EXPECT_LE(most, 200U);
        context.run();
        EXPECT_EQ(fired, 1);
        EXPECT_EQ(context.now().time_since_epoch(), 9h);
        check_ledger_at_rest(*context);
    }
}

TEST(findings, the_last_of_several_postponements_counts_whoever_asked_for_the_first) {
    // First from outside of the loop, then from a callback; both ways, earlier and later.
    for (const auto first : {2h, 20h}) {
        for (const auto second : {1h, 5h, 30h}) {
            for (const bool is_absolute : {false, true}) {
                testing::virtual_context context;
                timers& all = context->timers();
                std::vector<duration> fired;
                const timer_handle which = all.after(10h, [&] { fired.push_back(context.now().time_since_epoch()); });
                context.settle();
                ASSERT_TRUE(all.postpone(which, first));
                context->post([&] {
                    EXPECT_TRUE(is_absolute ? all.postpone_until(which, context.now() + second)
                                            : all.postpone(which, second));
                });
                context.run();
                EXPECT_EQ(fired, std::vector<duration>{second})
                    << "first " << first.count() << " h, then " << second.count() << " h, absolute " << is_absolute;
                check_ledger_at_rest(*context);
            }
        }
    }
}

TEST(findings, a_postponement_from_elsewhere_and_one_from_the_callback_that_armed_it_both_count) {
    testing::virtual_context context;
    timers& all = context->timers();
    std::vector<duration> fired;
    context->post([&] {
        const timer_handle which = all.after(10h, [&] { fired.push_back(context.now().time_since_epoch()); });
        std::thread([&] { EXPECT_TRUE(all.postpone(which, 3h)); }).join();
        EXPECT_TRUE(all.postpone(which, 7h));
    });
    context.run();
    EXPECT_EQ(fired, std::vector<duration>{7h});
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
