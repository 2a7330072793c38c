// SPDX-License-Identifier: MIT
//
// The end of all timers, for good.
#include "support/ledger.hpp"
#include "support/witness.hpp"

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// Takes no notice of anything that it is told.
task<> sleep_for_ever(cancel_token token, std::vector<wake_reason>& told, witness kept) {
    for (;;) {
        told.push_back(co_await sleep_for(1s, token));
        EXPECT_TRUE(kept.is_here());
    }
}

/// Enough for whatever ends, and no hang for what does not.
void poll_often(io_context& context) {
    for (int turn = 0; turn < 100; ++turn) context.poll();
}

/// A task that does not take a hint, asleep.
class stop_of_a_cancelled_task : public ::testing::Test {
 protected:
    stop_of_a_cancelled_task() { context.settle(); }

    /// It has been told of the one and then of the other; the third time it is destroyed where it stands.
    void expect_told_twice_and_destroyed() {
        poll_often(*context);
        EXPECT_EQ(told, std::vector(2, wake_reason::cancelled));
        EXPECT_TRUE(joined.is_done());
        EXPECT_EQ(report.ends, 1);
        EXPECT_TRUE(context->is_out_of_work());
        check_ledger_at_rest(*context);
    }

    testing::virtual_context context;
    cancel_source source;
    std::vector<wake_reason> told;
    witness_report report;
    join_handle<void> joined = spawn(*context, sleep_for_ever(source.token(), told, witness(report)));
};

TEST_F(stop_of_a_cancelled_task, destroys_it_when_it_sleeps_on) {
    EXPECT_TRUE(joined.cancel());
    context->timers().stop();
    expect_told_twice_and_destroyed();
}

TEST_F(stop_of_a_cancelled_task, destroys_it_when_it_sleeps_on_with_a_token_that_was_cancelled) {
    EXPECT_TRUE(source.request_cancel());
    context->timers().stop();
    expect_told_twice_and_destroyed();
}

TEST_F(stop_of_a_cancelled_task, destroys_it_when_it_is_cancelled_after_the_stop) {
    context->timers().stop();
    EXPECT_TRUE(joined.cancel());
    expect_told_twice_and_destroyed();
}

TEST(timers_stop, keeps_run_going_until_the_work_guard_is_gone) {
    testing::virtual_context context;
    auto guard = context->make_work_guard();
    context->timers().after(1h, [] { ADD_FAILURE() << "it was cancelled"; });
    context->timers().stop();
    poll_often(*context);
    EXPECT_FALSE(context->is_out_of_work()) << "a guard is no timer";
    guard.reset();
    context.run();
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
