// SPDX-License-Identifier: MIT
//
// Sleeps that are cancelled by a token, or by their task.
#include "support/ledger.hpp"
#include "support/refusal.hpp"

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

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

task<> sleep_until_cancelled(timers& home, cancel_token token, std::string& story) {
    const time_point far_away = home.now() + 1h;
    const wake_reason anywhere = co_await sleep_until(far_away, token);
    story += anywhere == wake_reason::cancelled ? 'c' : 'e';
    const wake_reason here = co_await home.sleep_until(far_away, token);
    story += here == wake_reason::cancelled ? 'c' : 'e';
    try {
        co_await home.sleep_until(far_away, throw_on_cancel);
        story += 'p';
    } catch (const std::system_error&) {
        story += 't';
    }
    try {
        co_await home.sleep_until(far_away, token, throw_on_cancel);
        story += 'p';
    } catch (const std::system_error&) {
        story += 't';
    }
}

TEST(sleep_until, watches_its_token_in_every_form) {
    testing::virtual_context context;
    cancel_source source;
    std::string story;
    spawn_detached(*context, sleep_until_cancelled(context->timers(), source.token(), story));
    context.settle();
    source.request_cancel();
    context.run();
    EXPECT_EQ(story, "ccpt") << "only the third one has no token";
    EXPECT_EQ(context.now(), time_point{} + 1h);
    story.clear();
    const cancel_source silent;
    spawn_detached(*context, sleep_until_cancelled(context->timers(), silent.token(), story));
    context.run();
    EXPECT_EQ(story, "eepp");
    check_ledger_at_rest(*context);
}

TEST(this_task, outside_of_a_task_is_not_cancelled) {
    testing::virtual_context context;
    EXPECT_FALSE(this_task::is_cancelled());
    bool is_cancelled = true;
    context->timers().after(1s, [&] { is_cancelled = this_task::is_cancelled(); });
    context.run();
    EXPECT_FALSE(is_cancelled);
    check_ledger_at_rest(*context);
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
