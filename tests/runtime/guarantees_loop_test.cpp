// SPDX-License-Identifier: MIT
//
// G10 threads, G14 shutdown is defined, G15 exceptions.
#include "support/ledger.hpp"
#include "support/random.hpp"
#include "support/refusal.hpp"
#include "support/witness.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

// --- G10

task<> note_thread(cancel_token token, std::vector<std::thread::id>& seen) {
    seen.push_back(std::this_thread::get_id());
    co_await sleep_for(1ms);
    seen.push_back(std::this_thread::get_id());
    co_await yield();
    seen.push_back(std::this_thread::get_id());
    co_await sleep_for(1h, token);
    seen.push_back(std::this_thread::get_id());
}

TEST(guarantee, g10_user_code_runs_on_the_thread_of_the_loop_whoever_armed_or_cancelled) {
    testing::virtual_context context;
    std::vector<std::thread::id> seen;
    cancel_source source;
    std::thread stranger([&] {
        context->timers().after(1ms, [&] { seen.push_back(std::this_thread::get_id()); });
        context->post([&] { seen.push_back(std::this_thread::get_id()); });
        spawn_detached(*context, note_thread(source.token(), seen));
    });
    stranger.join();
    context.advance(1s);
    EXPECT_EQ(seen.size(), 5U);
    std::thread canceller([&] { source.request_cancel(); });
    canceller.join();
    EXPECT_EQ(seen.size(), 5U);
    context.settle();
    EXPECT_EQ(seen, std::vector<std::thread::id>(6, std::this_thread::get_id()));
    check_ledger_at_rest(*context);
}

TEST(guarantee, g10_the_loop_may_be_driven_by_one_thread_after_the_other) {
    testing::virtual_context context;
    std::vector<std::thread::id> seen;
    std::vector<std::thread::id> drivers;
    context->timers().every(1s, missed_ticks::skip, [&] { seen.push_back(std::this_thread::get_id()); });
    for (int count = 0; count < 10; ++count) {
        std::thread driver([&] {
            drivers.push_back(std::this_thread::get_id());
            context.advance(1s);
        });
        driver.join();
    }
    EXPECT_EQ(seen, drivers);
    check_ledger(*context);
}

TEST(guarantee, g10_the_closure_of_a_cancelled_timer_ends_on_the_thread_of_the_canceller) {
    testing::virtual_context context;
    witness_report by_handle;
    witness_report by_token;
    cancel_source source;
    const timer_handle armed = context->timers().after(1h, [kept = witness(by_handle)] {});
    context->timers().after(
        1h, [kept = witness(by_token)] {}, source.token());
    context.settle();
    std::thread::id canceller_id;
    std::thread canceller([&] {
        canceller_id = std::this_thread::get_id();
        EXPECT_EQ(context->timers().cancel(armed), cancel_result::cancelled);
        EXPECT_EQ(by_handle.ends, 1);
        source.request_cancel();
        EXPECT_EQ(by_token.ends, 1);
    });
    canceller.join();
    EXPECT_EQ(by_handle.thread.load(), canceller_id);
    EXPECT_EQ(by_token.thread.load(), canceller_id);
    context.settle();
    check_ledger_at_rest(*context);
}

// --- G14

task<> count_wakes(std::chrono::nanoseconds pause, int& elapsed, int& cancelled) {
    const wake_reason reason = co_await sleep_for(pause);
    ++(reason == wake_reason::elapsed ? elapsed : cancelled);
}

TEST(guarantee, g14_stopping_the_context_touches_no_timer) {
    testing::virtual_context context;
    int ran = 0;
    int elapsed = 0;
    int cancelled = 0;
    context->timers().after(1s, [&] { context->stop(); });
    context->timers().after(2s, [&] { ++ran; });
    spawn_detached(*context, count_wakes(2s, elapsed, cancelled));
    context.run();
    EXPECT_TRUE(context->is_stopped());
    EXPECT_EQ(context.now(), time_point{} + 1s);
    EXPECT_EQ(context->timers().stats().pending, 2U);
    EXPECT_EQ(context.run(), 0U) << "it stays in force";
    EXPECT_EQ(context->poll(), 0U);
    EXPECT_EQ(context->run_one(), 0U);
    EXPECT_EQ(ran, 0);
    // Arming goes on meanwhile.
    context->timers().after(1s, [&] { ++ran; });
    context->restart();
    context.run();
    EXPECT_EQ(ran, 2);
    EXPECT_EQ(elapsed, 1);
    EXPECT_EQ(cancelled, 0);
    check_ledger_at_rest(*context);
}

TEST(guarantee, g14_stopping_the_timers_resumes_every_sleeper_once_with_cancelled) {
    testing::virtual_context context;
    int elapsed = 0;
    int cancelled = 0;
    witness_report report;
    for (int count = 0; count < 10'000; ++count) {
        spawn_detached(*context, count_wakes(std::chrono::seconds{1 + count}, elapsed, cancelled));
    }
    context->timers().after(5h, [kept = witness(report)] { ADD_FAILURE() << "the timers were stopped"; });
    context->timers().every(5h, missed_ticks::burst, [] { ADD_FAILURE() << "the timers were stopped"; });
    context.advance(10s);
    EXPECT_EQ(elapsed, 10);
    context->timers().stop();
    EXPECT_EQ(cancelled, 0) << "the work is done by whoever runs the context";
    context.run();
    EXPECT_EQ(elapsed, 10);
    EXPECT_EQ(cancelled, 9'990);
    EXPECT_EQ(report.ends, 1);
    EXPECT_EQ(context.now(), time_point{} + 10s) << "at once, not at their deadlines";
    EXPECT_EQ(context->timers().stats().resumed_by_shutdown, 9'990U);
    check_ledger_at_rest(*context);
}

TEST(guarantee, g14_after_stopping_the_timers_everything_new_is_refused) {
    testing::virtual_context context;
    context->timers().stop();
    context->timers().stop();
    const auto is_refused = [](auto&& request) { expect_refused(errc::stopped, request); };
    int elapsed = 0;
    int cancelled = 0;
    is_refused([&] { context->timers().after(1s, [] {}); });
    is_refused([&] { context->timers().at(time_point{}, [] {}); });
    is_refused([&] { context->timers().every(1s, missed_ticks::skip, [] {}); });
    is_refused([&] { context->post([] {}); });
    is_refused([&] { spawn_detached(*context, count_wakes(1s, elapsed, cancelled)); });
    is_refused([&] { static_cast<void>(spawn(*context, count_wakes(1s, elapsed, cancelled))); });
    EXPECT_FALSE(context->timers().try_after(1s, [] {}));
    EXPECT_EQ(context.run(), 0U);
    EXPECT_EQ(elapsed + cancelled, 0);
    check_ledger_at_rest(*context);
}

task<> sleep_again(int& steps, [[maybe_unused]] witness kept) {
    ++steps;
    const wake_reason reason = co_await sleep_for(1h);
    EXPECT_EQ(reason, wake_reason::cancelled);
    ++steps;
    co_await yield();  // It may take its time to clean up, as long as it does not wait for time.
    ++steps;
    co_await sleep_for(1h);
    ++steps;
}

task<> await_sleep_again(int& steps, witness inner, [[maybe_unused]] witness outer) {
    co_await sleep_again(steps, std::move(inner));
    ++steps;
}

TEST(guarantee, g14_a_task_that_sleeps_again_after_the_stop_is_destroyed_where_it_stands) {
    testing::virtual_context context;
    int steps = 0;
    witness_report inner;
    witness_report outer;
    spawn_detached(*context, await_sleep_again(steps, witness(inner), witness(outer)));
    context.settle();
    EXPECT_EQ(steps, 1);
    context->timers().stop();
    context.run();
    EXPECT_EQ(steps, 3);
    EXPECT_EQ(inner.ends, 1);
    EXPECT_EQ(outer.ends, 1);
    EXPECT_EQ(context->timers().stats().destroyed, 1U);
    check_ledger_at_rest(*context);
}

task<> stop_and_sleep(timers& home, std::optional<wake_reason>& reason) {
    home.stop();
    reason = co_await sleep_for(1h);
}

TEST(guarantee, g14_a_task_that_stops_the_timers_itself_is_told_once_too) {
    testing::virtual_context context;
    std::optional<wake_reason> reason;
    spawn_detached(*context, stop_and_sleep(context->timers(), reason));
    context.run();
    EXPECT_EQ(reason, wake_reason::cancelled);
    check_ledger_at_rest(*context);
}

TEST(guarantee, g14_a_callback_may_stop_the_timers) {
    testing::virtual_context context;
    int beats = 0;
    context->timers().every(1s, missed_ticks::burst, [&] {
        ++beats;
        context->timers().stop();
    });
    context->timers().after(1s, [] { ADD_FAILURE() << "it was stopped"; });
    context->timers().after(2s, [] { ADD_FAILURE() << "it was stopped"; });
    context.clock().advance(1s);
    EXPECT_EQ(context->run_one(), 1U);  // One by one, because what is due in the same turn may still run.
    EXPECT_EQ(beats, 1);
    context.run();
    EXPECT_EQ(beats, 1);
    check_ledger_at_rest(*context);
}

task<> sleep_long([[maybe_unused]] witness kept) {
    co_await sleep_for(1h);
    ADD_FAILURE() << "it was destroyed";
}

TEST(guarantee, g14_destroying_a_context_destroys_a_million_sleepers_and_closures) {
    const int count = static_cast<int>(scaled(1'000'000));
    witness_report frames;
    witness_report closures;
    witness_report posted;
    {
        testing::virtual_context context;
        for (int left = count; left != 0; --left) {
            spawn_detached(*context, sleep_long(witness(frames)));
            context->timers().after(1h, [kept = witness(closures)] { ADD_FAILURE() << "it was destroyed"; });
        }
        context.settle();
        EXPECT_EQ(context->timers().stats().waiting, static_cast<std::uint64_t>(count));
        context->post([kept = witness(posted)] { ADD_FAILURE() << "it was destroyed"; });
        check_ledger(*context);
    }
    EXPECT_EQ(frames.ends, count);
    EXPECT_EQ(closures.ends, count);
    EXPECT_EQ(posted.ends, 1);
}

task<> nest(int depth, std::string& ends, witness kept);

struct name_of_frame {
    explicit name_of_frame(std::string& out, int which) noexcept : ends(out), depth(which) {}
    name_of_frame(const name_of_frame&) = delete;
    name_of_frame& operator=(const name_of_frame&) = delete;
    ~name_of_frame() { ends += static_cast<char>('0' + depth); }
    std::string& ends;
    int depth;
};

task<> nest(int depth, std::string& ends, witness kept) {
    const name_of_frame name(ends, depth);
    if (depth == 0) {
        co_await sleep_for(1h);
    } else {
        co_await nest(depth - 1, ends, std::move(kept));
    }
}

TEST(guarantee, g14_suspended_frames_are_destroyed_innermost_first) {
    std::string ends;
    witness_report report;
    {
        testing::virtual_context context;
        spawn_detached(*context, nest(5, ends, witness(report)));
        context.settle();
        check_ledger(*context);
    }
    EXPECT_EQ(ends, "012345");
    EXPECT_EQ(report.ends, 1);
}

// --- G15

TEST(guarantee, g15_an_exception_from_a_callback_leaves_the_other_due_timers_due) {
    testing::virtual_context context;
    std::vector<int> ran;
    context->timers().after(1ms, [&] { ran.push_back(0); });
    context->timers().after(1ms, [&] {
        ran.push_back(1);
        throw std::runtime_error("from a callback");
    });
    context->timers().after(1ms, [&] { ran.push_back(2); });
    EXPECT_THROW(context.run(), std::runtime_error);
    EXPECT_EQ(ran, (std::vector{0, 1}));
    check_ledger(*context);
    EXPECT_EQ(context.run(), 1U);
    EXPECT_EQ(ran, (std::vector{0, 1, 2}));
    check_ledger_at_rest(*context);
}

TEST(guarantee, g15_what_a_callback_armed_before_it_threw_is_armed) {
    testing::virtual_context context;
    int ran = 0;
    context->timers().after(1ms, [&] {
        context->timers().after(1ms, [&] { ++ran; });
        context->timers().at(context.now() + 2ms, [&] { ++ran; });
        context->post([&] { ++ran; });
        throw std::runtime_error("afterwards");
    });
    EXPECT_THROW(context.run(), std::runtime_error);
    EXPECT_EQ(context.run(), 3U);
    EXPECT_EQ(ran, 3);
    check_ledger_at_rest(*context);
}

task<> fail_after(std::chrono::nanoseconds pause) {
    co_await sleep_for(pause);
    throw std::out_of_range("from a task");
}

TEST(guarantee, g15_exceptions_of_posted_functions_and_detached_tasks_go_out_of_run) {
    testing::virtual_context context;
    int ran = 0;
    context->post([] { throw std::invalid_argument("from a posted function"); });
    context->post([&] { ++ran; });
    spawn_detached(*context, fail_after(1ms));
    context->timers().after(2ms, [&] { ++ran; });
    EXPECT_THROW(context.run(), std::invalid_argument);
    EXPECT_EQ(ran, 0);
    EXPECT_THROW(context.run(), std::out_of_range);
    EXPECT_EQ(ran, 1);
    EXPECT_EQ(context.run(), 1U);
    EXPECT_EQ(ran, 2);
    check_ledger_at_rest(*context);
}

TEST(guarantee, g15_a_periodic_timer_goes_on_after_an_exception) {
    testing::virtual_context context;
    int beats = 0;
    const timer_handle beat = context->timers().every(1s, missed_ticks::skip, [&] {
        if (++beats % 2 == 1) throw std::runtime_error("every other time");
    });
    int thrown = 0;
    for (int second = 0; second < 10; ++second) {
        try {
            context.advance_to(time_point{} + std::chrono::seconds{second + 1});
        } catch (const std::runtime_error&) {
            ++thrown;
        }
    }
    EXPECT_EQ(beats, 10);
    EXPECT_EQ(thrown, 5);
    EXPECT_EQ(context->timers().cancel(beat), cancel_result::cancelled);
    context.settle();
    check_ledger_at_rest(*context);
}

TEST(guarantee, g15_any_object_may_be_thrown_and_any_entrance_lets_it_out) {
    testing::virtual_context context;
    for (int count = 0; count < 4; ++count) context->post([count] { throw count; });
    const auto thrown_by = [](auto&& drive) {
        try {
            drive();
        } catch (int number) {
            return number;
        }
        return -1;
    };
    EXPECT_EQ(thrown_by([&] { context->run_one(); }), 0);
    EXPECT_EQ(thrown_by([&] { context->poll(); }), 1);
    EXPECT_EQ(thrown_by([&] { context->run_for(1s); }), 2);
    EXPECT_EQ(thrown_by([&] { context->run(); }), 3);
    EXPECT_EQ(context->run(), 0U);
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
