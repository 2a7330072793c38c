// SPDX-License-Identifier: MIT
#include "support/descriptors.hpp"
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
#include <cstdint>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

task<> sleep_until_called() {
    co_await sleep_until(never);
}

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
    expect_to_run_until_its_limit([](io_context& context) { return spawn(context, sleep_until_called()); });
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

// --- What it tells.

TEST(dump_pending, names_what_run_waits_for_and_where_it_was_armed) {
    testing::virtual_context context;
    context->timers().after(1h, [] {});
    context->timers().at(never, [] {});
    spawn_detached(*context, sleep_until_called());
    context.settle();
    context.advance(30min);
    std::ostringstream out;
    context->dump_pending(out);
    const std::string text = out.str();
    EXPECT_NE(text.find("3 timers pending, 1 tasks alive"), std::string::npos) << text;
    EXPECT_NE(text.find("in 1800 s"), std::string::npos) << text;
    EXPECT_NE(text.find("never"), std::string::npos) << text;
    EXPECT_NE(text.find("sleeps, never"), std::string::npos) << text;
    EXPECT_NE(text.find("io_context_test.cpp:"), std::string::npos) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
    check_ledger(*context);
}

TEST(dump_pending, has_little_to_say_of_an_idle_context) {
    testing::virtual_context context;
    const timer_handle cancelled = context->timers().after(1h, [] {});
    context->timers().cancel(cancelled);
    context.run();
    std::ostringstream out;
    context->dump_pending(out);
    EXPECT_NE(out.str().find("0 timers pending, 0 tasks alive"), std::string::npos) << out.str();
    EXPECT_EQ(out.str().find("timer 0"), std::string::npos) << out.str();
    check_ledger_at_rest(*context);
}

TEST(dump_pending, inside_a_callback_says_that_it_is_running) {
    testing::virtual_context context;
    std::ostringstream out;
    context->timers().after(1s, [&] { context->dump_pending(out); });
    context.run();
    EXPECT_NE(out.str().find("running"), std::string::npos) << out.str();
    check_ledger_at_rest(*context);
}

TEST(poll_fd, is_readable_when_there_is_work_and_not_otherwise) {
    io_context context;
    const int fd = context.poll_fd();
    EXPECT_EQ(context.poll_fd(), fd);
    context.poll();
    EXPECT_FALSE(is_readable(fd)) << "nothing to do";
    context.timers().after(1h, [] {});
    context.poll();
    EXPECT_FALSE(is_readable(fd)) << "nothing to do for an hour";
    int ran = 0;
    std::thread stranger([&] { context.post([&] { ++ran; }); });
    EXPECT_TRUE(is_readable(fd, 10'000));
    stranger.join();
    EXPECT_EQ(context.poll(), 1U);
    EXPECT_EQ(ran, 1);
    EXPECT_FALSE(is_readable(fd));
    context.timers().after(0s, [&] { ++ran; });  // By whoever polls, too.
    EXPECT_TRUE(is_readable(fd, 10'000));
    EXPECT_EQ(context.poll(), 1U);
    EXPECT_FALSE(is_readable(fd));
    check_ledger(context);
}

TEST(poll_fd, stays_readable_when_a_callback_has_left_more_to_do) {
    io_context context;
    const int fd = context.poll_fd();
    context.post([&] { context.post([] {}); });
    context.poll();
    EXPECT_TRUE(is_readable(fd));
    context.poll();
    EXPECT_FALSE(is_readable(fd));
    context.post([] { throw std::runtime_error("in between"); });
    context.post([] {});
    EXPECT_THROW(context.poll(), std::runtime_error);
    EXPECT_TRUE(is_readable(fd)) << "the second one is still to be run";
    EXPECT_EQ(context.poll(), 1U);
    EXPECT_FALSE(is_readable(fd));
    check_ledger_at_rest(context);
}

TEST(poll_fd, wakes_for_what_other_threads_cancel_and_postpone) {
    io_context context;
    const int fd = context.poll_fd();
    int ran = 0;
    const timer_handle far = context.timers().after(1h, [&] { ++ran; });
    context.poll();
    ASSERT_FALSE(is_readable(fd));
    std::thread stranger([&] { EXPECT_TRUE(context.timers().postpone(far, 0s)); });
    EXPECT_TRUE(is_readable(fd, 10'000));
    stranger.join();
    while (ran == 0) context.poll();
    EXPECT_FALSE(is_readable(fd));
    check_ledger_at_rest(context);
}

// --- The end.

TEST(io_context_death, is_aborted_when_it_is_destroyed_inside_its_own_callback) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            auto context = std::make_unique<io_context>();
            context->timers().after(0s, [&] { context.reset(); });
            context->run();
        },
        "a context is not destroyed while it runs");
    EXPECT_DEATH(
        {
            auto context = std::make_unique<io_context>();
            context->post([&] { context.reset(); });
            context->run();
        },
        "a context is not destroyed while it runs");
}

TEST(virtual_clock_death, is_aborted_when_it_is_destroyed_before_its_contexts) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            auto clock = std::make_unique<testing::virtual_clock>();
            const io_context context({.clock = clock.get()});
            clock.reset();
        },
        "a virtual clock outlives the contexts that follow it");
}

struct owns_timers {
    explicit owns_timers(timers& home, int& counted)
        : watchdog(home, home.after(2h, [] { ADD_FAILURE() << "its owner is gone"; })), ends(counted) {}
    owns_timers(const owns_timers&) = delete;
    owns_timers& operator=(const owns_timers&) = delete;
    ~owns_timers() { ++ends; }
    scoped_timer watchdog;
    int& ends;
};

task<> sleep_and_own(timers& home, int& ends) {
    const owns_timers kept(home, ends);
    co_await sleep_for(1h);
}

TEST(io_context, that_is_destroyed_destroys_sleepers_that_own_timers_and_closures_that_own_closures) {
    int ends = 0;
    witness_report report;
    {
        testing::virtual_context context;
        timers& timers = context->timers();
        for (int count = 0; count < 100; ++count) spawn_detached(*context, sleep_and_own(timers, ends));
        context.settle();
        const timer_handle inner = timers.after(1h, [kept = witness(report)] {});
        timers.after(1h, [owner = scoped_timer(timers, inner)] {});
        check_ledger(*context);
    }
    EXPECT_EQ(ends, 100);
    EXPECT_EQ(report.ends, 1);
}

TEST(io_context, that_is_destroyed_without_ever_having_run_forgets_nothing) {
    witness_report report;
    {
        testing::virtual_context context;
        context->timers().after(1h, [kept = witness(report)] {});
        context->timers().every(1h, missed_ticks::skip, [kept = witness(report)] {});
        context->post([kept = witness(report)] {});
        const timer_handle cancelled = context->timers().after(1h, [kept = witness(report)] {});
        context->timers().cancel(cancelled);
        spawn_detached(*context, sleep_until_called());
        check_ledger(*context);
    }
    EXPECT_EQ(report.ends, 4);
}

TEST(io_context, that_is_destroyed_waits_for_the_job_that_runs_and_drops_those_that_wait) {
    std::atomic<bool> has_begun = false;
    std::atomic<bool> may_end = false;
    std::atomic<bool> has_ended = false;
    std::atomic<int> ran = 0;
    witness_report report;
    std::thread releaser;
    {
        io_context context({.pool_threads = 1});
        static_cast<void>(context.cpu_pool().submit([&] {
            has_begun = true;
            wait_for(may_end);
            has_ended = true;
        }));
        for (int count = 0; count < 10; ++count) {
            static_cast<void>(context.cpu_pool().submit([&, kept = witness(report)] { ++ran; }));
        }
        wait_for(has_begun);
        releaser = std::thread([&] {
            std::this_thread::sleep_for(5ms);
            may_end = true;
        });
        check_ledger(context);
    }
    EXPECT_TRUE(has_ended);
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(report.ends, 10);
    releaser.join();
}

// --- Configuration.

TEST(io_context_config, by_default_is_usable) {
    EXPECT_EQ(io_context_config{}.validate(), "");
}

void expect_unusable(const io_context_config& config, const char* field) {
    EXPECT_NE(config.validate().find(field), std::string::npos) << config.validate();
    try {
        const io_context context(config);
        ADD_FAILURE() << field << " was accepted";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), errc::bad_configuration);
        EXPECT_EQ(error.code(), std::errc::invalid_argument);
        EXPECT_NE(std::string(error.what()).find(field), std::string::npos) << error.what();
    }
}

TEST(io_context_config, that_makes_no_sense_is_refused_with_what_to_change) {
    constexpr std::size_t huge = ~std::size_t{0};
    for (const std::size_t bad : {std::size_t{0}, huge, (std::size_t{1} << 29U) + 1}) {
        expect_unusable({.max_timers = bad}, "max_timers");
        expect_unusable({.max_tasks = bad}, "max_tasks");
    }
    for (const auto bad : {0ns, -1ns, std::chrono::nanoseconds{(std::int64_t{1} << 32U) + 1},
                           std::chrono::nanoseconds::max(), std::chrono::nanoseconds::min()}) {
        expect_unusable({.resolution = bad}, "resolution");
    }
    expect_unusable({.slack = -1ns}, "slack");
    for (const std::size_t bad : {std::size_t{0}, huge}) {
        expect_unusable({.timer_budget = bad}, "timer_budget");
        expect_unusable({.task_budget = bad}, "task_budget");
        expect_unusable({.stale_slack = bad}, "stale_slack");
    }
    expect_unusable({.pool_threads = 4097}, "pool_threads");
}

TEST(io_context_config, at_its_limits_works) {
    for (const io_context_config& config :
         {io_context_config{.max_timers = 1, .max_tasks = 1}, io_context_config{.resolution = 1ns},
          io_context_config{.resolution = std::chrono::nanoseconds{std::int64_t{1} << 32U}},
          io_context_config{.slack = std::chrono::nanoseconds::max()},
          io_context_config{.timer_budget = 1, .task_budget = 1, .stale_slack = 64},
          io_context_config{.time_callbacks = true, .huge_pages = true}}) {
        testing::virtual_context context(config);
        int ran = 0;
        context->timers().after(1s, [&] { ++ran; });
        context.clock().advance(1s);
        context.settle();
        EXPECT_EQ(ran, 1);
        check_ledger_at_rest(*context);
    }
}

}  // namespace
}  // namespace chime::test
