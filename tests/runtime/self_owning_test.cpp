// SPDX-License-Identifier: MIT
//
// A closure that holds the only owner of its own timer: whoever ends the timer destroys the closure, and with it the
// owner, which cancels the timer and waits for its end. It must not wait for itself.
#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/running_loop.hpp"
#include "support/witness.hpp"

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/testing.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

struct session {
    explicit session(witness_report& report) : seen(report) {}

    scoped_timer timeout;
    witness seen;
};

/// Arms the timeout of a session that lives in the closure of that timeout alone.
timer_handle arm_session(timers& all, witness_report& report, const cancel_token& token = {}) {
    auto owner = std::make_unique<session>(report);
    session& its = *owner;
    const timer_handle armed = all.after(
        1h, [kept = std::move(owner)] { ADD_FAILURE() << "it was cancelled"; }, token);
    its.timeout = scoped_timer(all, armed);
    return armed;
}

TEST(self_owning_closure, goes_with_its_context_wherever_its_timer_is) {
    const watchdog guard("a context is destroyed", 30s);
    for (const bool is_in_the_wheel : {false, true}) {
        for (const bool has_token : {false, true}) {
            witness_report report;
            const cancel_source source;
            std::optional<testing::virtual_context> context(std::in_place);
            arm_session((*context)->timers(), report, has_token ? source.token() : cancel_token{});
            if (is_in_the_wheel) context->settle();
            check_ledger(**context);
            context.reset();
            EXPECT_EQ(report.ends, 1) << "in the wheel " << is_in_the_wheel << ", token " << has_token;
        }
    }
}

TEST(self_owning_closure, is_destroyed_by_another_thread_that_cancels_it) {
    const watchdog guard("cancel from another thread", 30s);
    running_loop loop;
    witness_report report;
    const timer_handle armed = arm_session(loop->timers(), report);
    EXPECT_EQ(loop->timers().cancel(armed), cancel_result::cancelled);
    EXPECT_EQ(report.ends, 1);
    EXPECT_EQ(report.thread, std::this_thread::get_id());

    const timer_handle waited_for = arm_session(loop->timers(), report);
    EXPECT_EQ(loop->timers().cancel_and_wait(waited_for), cancel_result::cancelled);
    EXPECT_EQ(report.ends, 2);
    loop.join();
    check_ledger_at_rest(*loop);
}

TEST(self_owning_closure, is_destroyed_by_another_thread_that_cancels_its_token) {
    const watchdog guard("cancel a token from another thread", 30s);
    running_loop loop;
    cancel_source source;
    witness_report report;
    arm_session(loop->timers(), report, source.token());
    EXPECT_TRUE(source.request_cancel());
    EXPECT_EQ(report.ends, 1);
    loop.join();
    check_ledger_at_rest(*loop);
}

TEST(self_owning_closure, is_destroyed_by_a_callback_that_cancels_it_or_its_token) {
    const watchdog guard("cancel from a callback", 30s);
    for (const bool by_token : {false, true}) {
        testing::virtual_context context;
        timers& all = context->timers();
        cancel_source source;
        witness_report report;
        const timer_handle armed = arm_session(all, report, by_token ? source.token() : cancel_token{});
        all.after(1s, [&] {
            if (by_token) {
                EXPECT_TRUE(source.request_cancel());
            } else {
                EXPECT_EQ(all.cancel(armed), cancel_result::cancelled);
            }
            EXPECT_EQ(report.ends, 1);
        });
        context.run();
        EXPECT_EQ(context.now(), time_point{} + 1s);
        check_ledger_at_rest(*context);
    }
}

TEST(self_owning_closure, is_destroyed_when_all_timers_stop) {
    const watchdog guard("stop", 30s);
    testing::virtual_context context;
    const cancel_source source;
    witness_report report;
    arm_session(context->timers(), report);
    arm_session(context->timers(), report, source.token());
    context->timers().stop();
    context.run();
    EXPECT_EQ(report.ends, 2);
    check_ledger_at_rest(*context);
}

TEST(self_owning_closure, of_a_periodic_timer_may_end_in_its_own_run) {
    const watchdog guard("a periodic timer lets go of itself", 30s);
    testing::virtual_context context;
    timers& all = context->timers();
    witness_report report;
    int runs = 0;
    auto owner = std::make_unique<session>(report);
    session& its = *owner;
    const timer_handle armed = all.every(1s, missed_ticks::skip, [kept = std::move(owner), &runs] {
        if (++runs < 3) return;
        EXPECT_EQ(kept->timeout.cancel(), cancel_result::running);
    });
    its.timeout = scoped_timer(all, armed);
    context.run();
    EXPECT_EQ(runs, 3);
    EXPECT_EQ(report.ends, 1);
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
