// SPDX-License-Identifier: MIT
#include "support/ledger.hpp"
#include "support/refusal.hpp"
#include "support/running_loop.hpp"
#include "support/witness.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

// --- Out of work.

TEST(io_context, that_has_nothing_to_do_is_out_of_work_at_once) {
    testing::virtual_clock clock;
    io_context context({.clock = &clock});
    EXPECT_EQ(context.run(), 0U);
    EXPECT_EQ(context.run_one(), 0U);
    EXPECT_EQ(context.run_for(1h), 0U);
    EXPECT_EQ(context.run_until(never), 0U);
    EXPECT_EQ(context.poll(), 0U);
    EXPECT_EQ(clock.now(), time_point{});
    EXPECT_FALSE(context.is_stopped()) << "running out of work is no stop";
    check_ledger_at_rest(context);
}

TEST(io_context, runs_again_after_it_was_out_of_work) {
    testing::virtual_clock clock;
    io_context context({.clock = &clock});
    for (std::size_t round = 1; round < 100; ++round) {
        context.timers().after(1s, [] {});
        context.post([] {});
        EXPECT_EQ(context.run(), 2U);
        EXPECT_EQ(clock.now(), time_point{} + std::chrono::seconds{round});
    }
    check_ledger_at_rest(context);
}

/// Each keeps the loop busy in a way of its own: the limit is reached, not the end of work.
template <class Begin>
void expect_to_run_until_its_limit(Begin&& begin) {
    testing::virtual_clock clock;
    io_context context({.clock = &clock});
    [[maybe_unused]] const auto kept = begin(context);
    context.run_for(1h);
    EXPECT_EQ(clock.now(), time_point{} + 1h) << "it was out of work too early";
    check_ledger(context);
}

TEST(io_context, is_not_out_of_work_while_a_timer_is_pending_that_never_comes) {
    expect_to_run_until_its_limit([](io_context& context) { return context.timers().at(never, [] {}); });
    expect_to_run_until_its_limit(
        [](io_context& context) { return context.timers().after(std::chrono::hours::max(), [] {}); });
}

TEST(io_context, is_not_out_of_work_while_a_task_lives) {
    expect_to_run_until_its_limit([](io_context& context) { return spawn(context, sleep_until(never)); });
}

TEST(io_context, is_not_out_of_work_while_a_guard_lives) {
    expect_to_run_until_its_limit([](io_context& context) { return context.make_work_guard(); });
}

TEST(io_context, is_not_out_of_work_while_a_job_runs) {
    io_context context;
    std::atomic<bool> has_ended = false;
    auto job = context.cpu_pool().submit([&] {
        std::this_thread::sleep_for(10ms);
        has_ended = true;
    });
    context.run();
    EXPECT_TRUE(has_ended);
    EXPECT_TRUE(job.is_done());
    check_ledger_at_rest(context);
}

TEST(io_context, that_is_parked_returns_when_another_thread_cancels_the_last_timer) {
    for (const bool by_token : {false, true}) {
        io_context context;
        cancel_source source;
        const timer_handle last = context.timers().after(
            1h, [] { ADD_FAILURE() << "it was cancelled"; }, source.token());
        std::thread runner([&] { EXPECT_EQ(context.run(), 0U); });
        while (context.timers().stats().parks == 0) std::this_thread::yield();
        if (by_token) {
            source.request_cancel();
        } else {
            EXPECT_EQ(context.timers().cancel(last), cancel_result::cancelled);
        }
        runner.join();
        check_ledger_at_rest(context);
    }
}

TEST(io_context, that_is_parked_returns_when_another_thread_drops_the_last_guard) {
    io_context context;
    auto guard = context.make_work_guard();
    std::thread runner([&] { context.run(); });
    while (context.timers().stats().parks == 0) std::this_thread::yield();
    guard.reset();
    runner.join();
    check_ledger_at_rest(context);
}

TEST(io_context, that_is_parked_notices_what_another_thread_asks_for) {
    running_loop loop;
    std::atomic<int> done = 0;
    const auto wait_for_count = [&](int count) {
        while (done != count) std::this_thread::yield();
    };
    for (int round = 0; round < 200; ++round) {
        loop->post([&] { ++done; });
        wait_for_count(3 * round + 1);
        loop->timers().after(0s, [&] { ++done; });
        wait_for_count(3 * round + 2);
        const timer_handle far = loop->timers().after(1h, [&] { ++done; });
        if (round % 2 == 0) loop->post([] {});
        EXPECT_TRUE(loop->timers().postpone(far, 0s));
        wait_for_count(3 * round + 3);
    }
    loop.join();
    check_ledger_at_rest(*loop);
}

TEST(work_guard, moves_and_resets) {
    testing::virtual_clock clock;
    io_context context({.clock = &clock});
    auto first = context.make_work_guard();
    auto second = std::move(first);
    auto third = context.make_work_guard();
    third = std::move(second);  // One of the two is gone.
    io_context::work_guard& same = third;
    third = std::move(same);
    context.run_for(1s);
    EXPECT_EQ(clock.now(), time_point{} + 1s);
    third.reset();
    third.reset();
    first.reset();
    context.run_for(1s);
    EXPECT_EQ(clock.now(), time_point{} + 1s) << "nothing is guarded any more";
    check_ledger_at_rest(context);
}

// --- The entrances.

TEST(io_context, run_one_runs_one_piece_and_waits_for_it) {
    testing::virtual_clock clock;
    io_context context({.clock = &clock});
    int ran = 0;
    context.timers().after(1h, [&] { ++ran; });
    context.timers().after(1h, [&] { ++ran; });
    context.post([&] { ++ran; });
    for (int count = 1; count <= 3; ++count) {
        EXPECT_EQ(context.run_one(), 1U);
        EXPECT_EQ(ran, count);
    }
    EXPECT_EQ(clock.now(), time_point{} + 1h);
    EXPECT_EQ(context.run_one(), 0U);
    check_ledger_at_rest(context);
}

TEST(io_context, run_for_and_run_until_end_at_their_limit) {
    testing::virtual_clock clock;
    io_context context({.clock = &clock});
    std::vector<int> ran;
    context.timers().after(30min, [&] { ran.push_back(30); });
    context.timers().after(60min, [&] { ran.push_back(60); });
    context.timers().after(61min, [&] { ran.push_back(61); });
    context.timers().after(3h, [&] { ran.push_back(180); });
    EXPECT_EQ(context.run_for(1h), 2U);
    EXPECT_EQ(clock.now(), time_point{} + 1h);
    EXPECT_EQ(ran, (std::vector{30, 60})) << "what is due at the limit runs";
    EXPECT_EQ(context.run_until(time_point{} + 2h), 1U);
    EXPECT_EQ(clock.now(), time_point{} + 2h);
    EXPECT_EQ(context.run_until(time_point{}), 0U) << "a limit in the past is one look";
    EXPECT_EQ(context.run_for(std::chrono::hours::max()), 1U);
    EXPECT_EQ(ran, (std::vector{30, 60, 61, 180}));
    check_ledger_at_rest(context);
}

TEST(io_context, poll_runs_what_is_there_and_not_what_comes_of_it) {
    testing::virtual_context context;
    int ran = 0;
    context->post([&] {
        ++ran;
        context->post([&] { ++ran; });
        context->timers().after(0s, [&] { ++ran; });
    });
    context->timers().after(1ns, [&] { ++ran; });
    EXPECT_EQ(context->poll(), 1U);
    EXPECT_EQ(ran, 1);
    EXPECT_EQ(context->poll(), 2U);
    EXPECT_EQ(context->poll(), 0U);
    EXPECT_EQ(context->timers().stats().pending, 1U);
    context.run();
    check_ledger_at_rest(*context);
}

TEST(io_context, poll_ends_although_another_thread_keeps_posting) {
    io_context context;
    std::atomic<bool> is_over{false};
    std::atomic<std::uint64_t> posted{0};
    std::uint64_t ran = 0;
    std::thread poster([&] {
        while (!is_over.load()) {
            context.post([&] { ++ran; });
            posted.fetch_add(1);
            if (posted.load() % 64 == 0) std::this_thread::yield();
        }
    });
    for (int round = 0; round < 100; ++round) context.poll();
    is_over.store(true);
    poster.join();
    while (context.poll() != 0) {}
    EXPECT_EQ(ran, posted.load());
    check_ledger_at_rest(context);
}

TEST(io_context, poll_runs_all_that_is_due_whatever_the_budgets) {
    testing::virtual_context context({.timer_budget = 1, .task_budget = 1});
    for (int count = 0; count < 1000; ++count) {
        context->timers().after(1ms, [] {});
        context->post([] {});
    }
    context.clock().advance(1ms);
    EXPECT_EQ(context->poll(), 2000U);
    check_ledger_at_rest(*context);
}

TEST(io_context, stops_in_the_middle_and_goes_on_after_restart) {
    testing::virtual_context context;
    std::vector<int> ran;
    for (int number = 0; number < 5; ++number) {
        context->timers().after(std::chrono::seconds{number}, [&, number] {
            ran.push_back(number);
            if (number == 2) context->stop();
        });
    }
    EXPECT_EQ(context.run(), 3U);
    EXPECT_EQ(context.now(), time_point{} + 2s);
    EXPECT_EQ(context.run(), 0U);
    context->restart();
    EXPECT_FALSE(context->is_stopped());
    EXPECT_EQ(context.run(), 2U);
    EXPECT_EQ(ran, (std::vector{0, 1, 2, 3, 4}));
    check_ledger_at_rest(*context);
}

TEST(io_context, is_stopped_by_another_thread_while_it_is_parked) {
    io_context context;
    const auto guard = context.make_work_guard();
    context.timers().after(1h, [] {});
    std::thread runner([&] { context.run(); });
    while (context.timers().stats().parks == 0) std::this_thread::yield();
    context.stop();
    runner.join();
    EXPECT_EQ(context.timers().stats().pending, 1U);
    check_ledger(context);
}

// --- Posting.

TEST(post, keeps_the_order_of_one_thread) {
    testing::virtual_context context;
    std::vector<int> ran;
    for (int number = 0; number < 1000; ++number) context->post([&, number] { ran.push_back(number); });
    context.run();
    ASSERT_EQ(ran.size(), 1000U);
    EXPECT_TRUE(std::is_sorted(ran.begin(), ran.end()));
    check_ledger_at_rest(*context);
}

TEST(post, from_a_callback_runs_soon_and_in_order) {
    testing::virtual_context context;
    std::string story;
    context->timers().after(1s, [&] {
        context->post([&] { story += 'b'; });
        context->post([&] {
            story += 'c';
            context->post([&] { story += 'd'; });
        });
        story += 'a';
    });
    context.run();
    EXPECT_EQ(story, "abcd");
    EXPECT_EQ(context.now(), time_point{} + 1s);
    check_ledger_at_rest(*context);
}

TEST(post, from_many_threads_loses_nothing_and_keeps_the_order_of_each) {
    testing::virtual_context context;
    constexpr int threads = 4;
    constexpr int posts = 5000;
    std::vector<std::vector<int>> ran(threads);
    std::vector<std::thread> strangers;
    for (int thread = 0; thread < threads; ++thread) {
        strangers.emplace_back([&, thread] {
            for (int number = 0; number < posts; ++number) {
                context->post([&ran, thread, number] { ran[static_cast<std::size_t>(thread)].push_back(number); });
            }
        });
    }
    for (std::thread& each : strangers) each.join();
    context.run();
    for (const std::vector<int>& each : ran) {
        EXPECT_EQ(each.size(), std::size_t{posts});
        EXPECT_TRUE(std::is_sorted(each.begin(), each.end()));
    }
    check_ledger_at_rest(*context);
}

TEST(post, destroys_its_function_on_the_loop_after_it_has_run) {
    testing::virtual_context context;
    witness_report report;
    context->post([&, kept = witness(report)] { EXPECT_EQ(report.ends, 0); });
    EXPECT_EQ(report.ends, 0);
    context.run();
    EXPECT_EQ(report.ends, 1);
    context->post([kept = witness(report)] { throw std::runtime_error("and when it throws"); });
    EXPECT_THROW(context.run(), std::runtime_error);
    EXPECT_EQ(report.ends, 2);
    check_ledger_at_rest(*context);
}

// --- Running while running.

TEST(io_context, refuses_to_run_inside_itself) {
    testing::virtual_context context;
    const auto is_refused = [](auto&& request) { expect_refused(errc::already_running, request); };
    int ran = 0;
    const auto try_all = [&] {
        ++ran;
        is_refused([&] { context->run(); });
        is_refused([&] { context->run_one(); });
        is_refused([&] { context->run_for(1s); });
        is_refused([&] { context->run_until(never); });
        is_refused([&] { context->poll(); });
    };
    context->timers().after(1s, try_all);
    context->post(try_all);
    context.run();
    EXPECT_EQ(ran, 2);
    check_ledger_at_rest(*context);
}

TEST(io_context, refuses_to_be_run_by_two_threads_at_once) {
    running_loop loop;
    std::atomic<bool> is_running = false;
    loop->post([&] { is_running = true; });
    wait_for(is_running);
    expect_refused(errc::already_running, [&] { loop->run(); });
    expect_refused(errc::already_running, [&] { loop->poll(); });
    loop.join();
    EXPECT_EQ(loop->run(), 0U) << "afterwards anybody may";
    check_ledger_at_rest(*loop);
}

TEST(io_context, may_be_run_inside_a_callback_of_another_one) {
    testing::virtual_context outer;
    testing::virtual_context inner;
    std::string story;
    outer->timers().after(1s, [&] {
        story += 'a';
        inner->timers().after(1h, [&] {
            story += 'b';
            outer->timers().after(1s, [&] { story += 'd'; });
        });
        inner.run();
        outer->timers().after(0s, [&] { story += 'c'; });
    });
    outer.run();
    EXPECT_EQ(story, "abcd");
    EXPECT_EQ(outer.now(), time_point{} + 2s);
    EXPECT_EQ(inner.now(), time_point{} + 1h);
    check_ledger_at_rest(*outer);
    check_ledger_at_rest(*inner);
}

}  // namespace
}  // namespace chime::test
