// SPDX-License-Identifier: MIT
//
// Tokens: before, during and after what they watch.
#include "support/ledger.hpp"
#include "support/refusal.hpp"
#include "support/witness.hpp"

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

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

// --- Sleeps.

struct sleep_note {
    std::optional<wake_reason> reason;
    time_point when;
    std::thread::id thread;
};

task<> sleep_on(cancel_token token, std::chrono::nanoseconds delay, sleep_note& note) {
    const wake_reason reason = co_await sleep_for(delay, token);
    note = {reason, this_task::now(), std::this_thread::get_id()};
}

TEST(cancel_token, ends_a_sleep_at_once_and_not_at_its_deadline) {
    testing::virtual_context context;
    cancel_source source;
    sleep_note note;
    spawn_detached(*context, sleep_on(source.token(), 1h, note));
    context.advance(1s);
    source.request_cancel();
    EXPECT_EQ(note.reason, std::nullopt) << "never on the stack of whoever cancels";
    context.run();
    EXPECT_EQ(note.reason, wake_reason::cancelled);
    EXPECT_EQ(note.when, time_point{} + 1s);
    EXPECT_EQ(context->timers().stats().resumed_by_cancel, 1U);
    check_ledger_at_rest(*context);
}

TEST(cancel_token, that_is_cancelled_inside_a_callback_does_not_resume_there) {
    testing::virtual_context context;
    cancel_source source;
    sleep_note note;
    spawn_detached(*context, sleep_on(source.token(), 1h, note));
    context->timers().after(1s, [&] {
        source.request_cancel();
        EXPECT_EQ(note.reason, std::nullopt);
    });
    context.run();
    EXPECT_EQ(note.reason, wake_reason::cancelled);
    check_ledger_at_rest(*context);
}

TEST(cancel_token, that_is_cancelled_elsewhere_resumes_on_the_loop) {
    testing::virtual_context context;
    cancel_source source;
    sleep_note note;
    spawn_detached(*context, sleep_on(source.token(), 1h, note));
    context.settle();
    std::thread canceller([&] { source.request_cancel(); });
    canceller.join();
    EXPECT_EQ(note.reason, std::nullopt);
    context.run();
    EXPECT_EQ(note.reason, wake_reason::cancelled);
    EXPECT_EQ(note.thread, std::this_thread::get_id());
    check_ledger_at_rest(*context);
}

task<> cancel_own_sleeps(cancel_source source, std::string& story) {
    const wake_reason before = co_await sleep_for(1s, source.token());
    story += before == wake_reason::elapsed ? 'e' : 'c';
    source.request_cancel();
    const wake_reason after = co_await sleep_for(1s, source.token());
    story += after == wake_reason::elapsed ? 'e' : 'c';
    const wake_reason without = co_await sleep_for(1s);
    story += without == wake_reason::elapsed ? 'e' : 'c';
}

TEST(cancel_token, ends_only_the_sleeps_that_watch_it) {
    testing::virtual_context context;
    std::string story;
    spawn_detached(*context, cancel_own_sleeps({}, story));
    context.run();
    EXPECT_EQ(story, "ece");
    EXPECT_EQ(context.now(), time_point{} + 2s);
    check_ledger_at_rest(*context);
}

// All four forms of a sleep that throws, with and without the context's name.
task<> throw_from_sleeps(timers& home, cancel_token token, int& thrown, int& passed) {
    const time_point far = home.now() + 1h;
    try {
        co_await sleep_for(1h, token, throw_on_cancel);
        ++passed;
    } catch (const std::system_error& error) {
        if (error.code() == cancelled_ec() && error.code() == std::errc::operation_canceled) ++thrown;
    }
    try {
        co_await sleep_until(far, token, throw_on_cancel);
        ++passed;
    } catch (const std::system_error& error) {
        if (error.code() == errc::cancelled) ++thrown;
    }
    try {
        co_await home.sleep_for(1h, token, throw_on_cancel);
        ++passed;
    } catch (const std::system_error& error) {
        if (error.code() == errc::cancelled) ++thrown;
    }
    try {
        co_await home.sleep_until(far, token, throw_on_cancel);
        ++passed;
    } catch (const std::system_error& error) {
        if (error.code() == errc::cancelled) ++thrown;
    }
}

TEST(throw_on_cancel, turns_a_cancelled_sleep_into_an_exception) {
    testing::virtual_context context;
    cancel_source source;
    int thrown = 0;
    int passed = 0;
    spawn_detached(*context, throw_from_sleeps(context->timers(), source.token(), thrown, passed));
    context.settle();
    source.request_cancel();
    context.run();
    EXPECT_EQ(thrown, 4);
    EXPECT_EQ(passed, 0);
    EXPECT_EQ(context.now(), time_point{});
    check_ledger_at_rest(*context);
}

TEST(throw_on_cancel, lets_a_sleep_that_elapses_pass) {
    testing::virtual_context context;
    int thrown = 0;
    int passed = 0;
    const cancel_source source;
    spawn_detached(*context, throw_from_sleeps(context->timers(), source.token(), thrown, passed));
    context.run();
    EXPECT_EQ(thrown, 0);
    EXPECT_EQ(passed, 4);
    check_ledger_at_rest(*context);
}

task<> throw_without_token(int& thrown) {
    try {
        co_await sleep_for(1h, throw_on_cancel);
    } catch (const std::system_error& error) {
        if (error.code() == errc::cancelled) ++thrown;
    }
    try {
        co_await sleep_until(never, throw_on_cancel);
    } catch (const std::system_error& error) {
        if (error.code() == errc::cancelled) ++thrown;
    }
}

TEST(throw_on_cancel, needs_no_token_when_the_task_itself_is_cancelled) {
    testing::virtual_context context;
    int thrown = 0;
    auto joined = spawn(*context, throw_without_token(thrown));
    context.settle();
    EXPECT_TRUE(joined.cancel());
    context.run();
    EXPECT_EQ(thrown, 2);
    EXPECT_TRUE(joined.is_done());
    check_ledger_at_rest(*context);
}

task<> sleep_moved(cancel_token token, std::optional<wake_reason>& reason) {
    auto sleep = sleep_for(1h, std::move(token));
    auto moved = std::move(sleep);
    reason = co_await std::move(moved);
}

TEST(sleep_for, may_be_moved_until_it_is_awaited) {
    testing::virtual_context context;
    cancel_source source;
    std::optional<wake_reason> reason;
    spawn_detached(*context, sleep_moved(source.token(), reason));
    context.settle();
    source.request_cancel();
    context.run();
    EXPECT_EQ(reason, wake_reason::cancelled);
    check_ledger_at_rest(*context);
}

TEST(sleep_for, outside_of_a_task_is_refused) {
    struct stranger {
        struct promise_type {
            stranger get_return_object() { return {}; }
            std::suspend_never initial_suspend() noexcept { return {}; }
            std::suspend_never final_suspend() noexcept { return {}; }
            void return_void() {}
            void unhandled_exception() { throw; }
        };
    };
    testing::virtual_context context;
    static constexpr auto sleep_there = [](timers* home) -> stranger {
        if (home == nullptr) {
            co_await sleep_for(1s);
        } else {
            co_await home->sleep_for(1s);
        }
    };
    static constexpr auto yield_there = []() -> stranger { co_await yield(); };
    expect_refused(errc::not_in_a_task, [] { sleep_there(nullptr); });
    expect_refused(errc::not_in_a_task, [&] { sleep_there(&context->timers()); });
    expect_refused(errc::not_in_a_task, [] { yield_there(); });
    // Not even inside a callback, which is no task.
    context->post([&] { expect_refused(errc::not_in_a_task, [&] { sleep_there(&context->timers()); }); });
    context.run();
    check_ledger_at_rest(*context);
}

task<> sleep_at_the_neighbours(timers& other) {
    co_await other.sleep_for(1s);
}

TEST(sleep_for, on_the_timers_of_another_context_is_refused) {
    testing::virtual_context here;
    testing::virtual_context there;
    spawn_detached(*here, sleep_at_the_neighbours(there->timers()));
    expect_refused(errc::not_in_a_task, [&] { here.run(); });
    check_ledger_at_rest(*here);
    check_ledger_at_rest(*there);
}

}  // namespace
}  // namespace chime::test
