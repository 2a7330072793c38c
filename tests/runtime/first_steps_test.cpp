// SPDX-License-Identifier: MIT
#include "support/ledger.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

TEST(io_context, runs_callbacks_in_the_order_of_their_deadlines) {
    testing::virtual_context context;
    std::vector<int> order;
    context->timers().after(3ms, [&] { order.push_back(3); });
    context->timers().after(1ms, [&] { order.push_back(1); });
    context->timers().after(2ms, [&] { order.push_back(2); });
    EXPECT_EQ(context.run(), 3U);
    EXPECT_EQ(order, (std::vector{1, 2, 3}));
    check_ledger_at_rest(*context);
}

task<int> answer() {
    co_await sleep_for(5ms);
    co_return 42;
}

task<> ask(int& result) {
    result = co_await answer();
}

TEST(spawn_detached, runs_a_task_that_awaits_a_task_that_sleeps) {
    testing::virtual_context context;
    int result = 0;
    spawn_detached(*context, ask(result));
    context.advance(4ms);
    EXPECT_EQ(result, 0);
    context.advance(1ms);
    EXPECT_EQ(result, 42);
    check_ledger_at_rest(*context);
}

TEST(timers, periodic_callbacks_keep_their_rhythm_for_an_hour) {
    testing::virtual_context context;
    int beats = 0;
    const timer_handle beat = context->timers().every(1s, missed_ticks::skip, [&] { ++beats; });
    context.advance(1h);
    EXPECT_EQ(beats, 3600);
    EXPECT_EQ(context->timers().cancel(beat), cancel_result::cancelled);
    context.advance(1h);
    EXPECT_EQ(beats, 3600);
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
