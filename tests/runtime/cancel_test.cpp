// SPDX-License-Identifier: MIT
//
// Tokens, and the callbacks that they watch: before, during and after.
#include "support/ledger.hpp"
#include "support/witness.hpp"

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

// --- The types.

static_assert(std::is_convertible_v<std::stop_token, cancel_token> &&
              std::is_convertible_v<cancel_token, std::stop_token>);
static_assert(std::is_convertible_v<std::stop_source, cancel_source> &&
              std::is_convertible_v<cancel_source, std::stop_source>);

TEST(cancel_token, of_its_own_is_never_cancelled) {
    const cancel_token token;
    EXPECT_FALSE(token.is_cancelled());
    EXPECT_FALSE(token.can_be_cancelled());
    EXPECT_EQ(token, cancel_token());
}

TEST(cancel_token, tells_what_its_source_was_asked_for) {
    cancel_source source;
    const cancel_token token = source.token();
    EXPECT_TRUE(token.can_be_cancelled());
    EXPECT_FALSE(token.is_cancelled());
    EXPECT_FALSE(source.is_cancelled());
    EXPECT_TRUE(source.request_cancel());
    EXPECT_FALSE(source.request_cancel()) << "once and for all";
    EXPECT_TRUE(token.is_cancelled());
    EXPECT_TRUE(source.is_cancelled());
    EXPECT_EQ(token, source.token());
    EXPECT_NE(token, cancel_source().token());
}

TEST(cancel_token, cannot_be_cancelled_any_more_when_its_source_is_gone) {
    cancel_token token;
    {
        const cancel_source source;
        token = source.token();
        EXPECT_TRUE(token.can_be_cancelled());
    }
    EXPECT_FALSE(token.can_be_cancelled());
}

TEST(cancel_token, converts_from_and_to_a_stop_token) {
    std::stop_source theirs;
    const cancel_token ours = theirs.get_token();
    theirs.request_stop();
    EXPECT_TRUE(ours.is_cancelled());

    cancel_source source;
    const std::stop_token token = source.token();
    const std::stop_source same = source;
    EXPECT_EQ(same.get_token(), token);
    EXPECT_EQ(source.token().stop_token(), token);
    source.request_cancel();
    EXPECT_TRUE(token.stop_requested());

    cancel_source adopted = std::stop_source();
    std::stop_source kept = adopted;
    kept.request_stop();
    EXPECT_TRUE(adopted.is_cancelled());
    EXPECT_EQ(adopted.stop_source(), kept);
}

// --- Callbacks.

TEST(cancel_token, keeps_a_callback_from_running) {
    testing::virtual_context context;
    cancel_source source;
    witness_report report;
    const timer_handle armed = context->timers().after(
        1s, [kept = witness(report)] { ADD_FAILURE() << "it was cancelled"; }, source.token());
    context.advance(999ms);
    source.request_cancel();
    EXPECT_EQ(report.ends, 1) << "the closure goes at once";
    EXPECT_EQ(context->timers().cancel(armed), cancel_result::gone);
    context.advance(1h);
    EXPECT_EQ(report.ends, 1);
    EXPECT_EQ(context->timers().stats().cancelled, 1U);
    check_ledger_at_rest(*context);
}

TEST(cancel_token, that_is_cancelled_already_keeps_a_callback_from_running) {
    testing::virtual_context context;
    cancel_source source;
    source.request_cancel();
    witness_report outside;
    witness_report inside;
    const auto arm_one = [&](witness_report& report) {
        const timer_handle armed = context->timers().after(
            0s, [kept = witness(report)] { ADD_FAILURE() << "it was cancelled"; }, source.token());
        EXPECT_EQ(report.ends, 1);
        EXPECT_EQ(context->timers().cancel(armed), cancel_result::gone);
        EXPECT_FALSE(context->timers().postpone(armed, 1s));
    };
    arm_one(outside);
    context->post([&] { arm_one(inside); });
    context.run();
    EXPECT_EQ(context->timers().stats().armed, 2U);
    EXPECT_EQ(context->timers().stats().cancelled, 2U);
    check_ledger_at_rest(*context);
}

TEST(cancel_token, that_is_cancelled_afterwards_changes_nothing) {
    testing::virtual_context context;
    cancel_source source;
    int ran = 0;
    context->timers().after(
        1s, [&] { ++ran; }, source.token());
    context.run();
    EXPECT_EQ(ran, 1);
    source.request_cancel();
    context.run();
    EXPECT_EQ(ran, 1);
    EXPECT_EQ(context->timers().stats().cancelled, 0U);
    check_ledger_at_rest(*context);
}

TEST(cancel_token, ends_a_periodic_callback) {
    testing::virtual_context context;
    cancel_source source;
    int beats = 0;
    witness_report report;
    context->timers().every(
        1s, missed_ticks::skip, [&, kept = witness(report)] { ++beats; }, source.token());
    context.advance(3s);
    EXPECT_EQ(beats, 3);
    source.request_cancel();
    EXPECT_EQ(report.ends, 1);
    context.run();
    EXPECT_EQ(beats, 3);
    check_ledger_at_rest(*context);
}

TEST(cancel_token, that_a_callback_cancels_itself_lets_it_come_to_its_end) {
    testing::virtual_context context;
    cancel_source source;
    int beats = 0;
    witness_report report;
    context->timers().every(
        1s, missed_ticks::burst,
        [&, kept = witness(report)] {
            source.request_cancel();
            EXPECT_EQ(report.ends, 0) << "a closure is not destroyed while it runs";
            ++beats;
        },
        source.token());
    context.run();
    EXPECT_EQ(beats, 1);
    EXPECT_EQ(report.ends, 1);
    check_ledger_at_rest(*context);
}

TEST(cancel_token, ends_all_that_watch_it) {
    testing::virtual_context context;
    cancel_source source;
    witness_report report;
    for (int count = 0; count < 1000; ++count) {
        context->timers().after(
            std::chrono::seconds{count}, [kept = witness(report)] { ADD_FAILURE() << "it was cancelled"; },
            source.token());
    }
    int others = 0;
    context->timers().after(1s, [&] { ++others; });
    source.request_cancel();
    EXPECT_EQ(report.ends, 1000);
    context.run();
    EXPECT_EQ(others, 1);
    check_ledger_at_rest(*context);
}

TEST(cancel_token, may_be_dropped_with_its_source_while_a_callback_is_pending) {
    testing::virtual_context context;
    int ran = 0;
    {
        const cancel_source source;
        context->timers().after(
            1s, [&] { ++ran; }, source.token());
    }
    context.run();
    EXPECT_EQ(ran, 1);
    check_ledger_at_rest(*context);
}

struct cancels_at_its_end {
    cancels_at_its_end(cancel_source to_cancel, int& counted) : source(std::move(to_cancel)), ends(&counted) {}
    cancels_at_its_end(cancels_at_its_end&& other) noexcept
        : source(std::move(other.source)), ends(std::exchange(other.ends, nullptr)) {}
    ~cancels_at_its_end() {
        if (ends == nullptr) return;
        ++*ends;
        source.request_cancel();
    }
    void operator()() const {}
    cancel_source source;
    int* ends;
};

TEST(cancel_token, may_be_cancelled_by_the_end_of_a_closure_that_watches_it) {
    testing::virtual_context context;
    cancel_source source;
    int ends = 0;
    context->timers().after(1s, cancels_at_its_end(source, ends), source.token());
    const timer_handle second = context->timers().after(2s, cancels_at_its_end(source, ends), source.token());
    EXPECT_EQ(context->timers().cancel(second), cancel_result::cancelled);
    EXPECT_EQ(ends, 2) << "the one took the other with it";
    context.run();
    EXPECT_EQ(ends, 2);
    check_ledger_at_rest(*context);
}

TEST(cancel_token, watches_timers_that_a_callback_arms_for_a_time) {
    testing::virtual_context context;
    timers& timers = context->timers();
    cancel_source source;
    int fired = 0;
    timers.after(1s, [&] {
        timers.at(
            time_point{} + 3s, [&] { ++fired; }, source.token());
        timers.at(
            time_point{} + 5s, [&] { ++fired; }, source.token());
    });
    timers.after(4s, [&] { source.request_cancel(); });
    context.run();
    EXPECT_EQ(fired, 1) << "the second one was cancelled in time";
    EXPECT_EQ(context.now(), time_point{} + 4s);
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
