// SPDX-License-Identifier: MIT
//
// Running a context until one task has come to its end.
#include "runtime/small_tasks.hpp"
#include "support/ledger.hpp"
#include "support/refusal.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <chrono>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

TEST(block_on, a_context_that_runs_already_is_refused) {
    testing::virtual_context context;
    bool is_refused = false;
    context->post([&] {
        expect_refused(errc::already_running, [&] { static_cast<void>(block_on(*context, answer_after(1s, 1))); });
        is_refused = true;
    });
    context.run();
    EXPECT_TRUE(is_refused);
    EXPECT_EQ(context->timers().stats().tasks, 0U) << "nothing was spawned";
    check_ledger_at_rest(*context);
}

TEST(block_on, a_context_that_is_stopped_meanwhile_is_refused_and_the_task_lives_on) {
    io_context context;
    bool has_ended = false;
    struct sleeper {
        static task<> sleep(bool& noted) {
            co_await sleep_for(20ms);
            noted = true;
        }
    };
    context.timers().after(0s, [&] { context.stop(); });
    expect_refused(errc::stopped, [&] { block_on(context, sleeper::sleep(has_ended)); });
    EXPECT_FALSE(has_ended);
    EXPECT_GT(context.timers().stats().tasks, 0U);
    context.restart();
    context.run();
    EXPECT_TRUE(has_ended);
    check_ledger_at_rest(context);
}

}  // namespace
}  // namespace chime::test
