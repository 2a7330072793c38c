// SPDX-License-Identifier: MIT
//
// Nobody is kept waiting by others who always have something to do; and nobody waits for himself.

#include "runtime/watchdog.hpp"
#include "support/random.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

task<> yield_until(const std::atomic<bool>& is_over) {
    while (!is_over.load()) co_await yield();
}

task<> yield_for_ever(std::atomic<int>& begun) {
    ++begun;
    for (;;) co_await yield();
}

task<int> give(int value) {
    co_return value;
}

void expect_refused(errc wanted, auto&& call) {
    try {
        call();
        ADD_FAILURE() << "it was not refused";
    } catch (const std::system_error& refused) {
        EXPECT_EQ(refused.code(), wanted) << refused.what();
    }
}

TEST(fairness, tasks_that_keep_a_ring_full_do_not_keep_another_one_waiting) {
    const watchdog guard("a full ring", 30s);
    runtime rt({.workers = 1});
    std::atomic<bool> is_over{false};
    for (int i = 0; i < 600; ++i) spawn_detached(rt, yield_until(is_over));
    EXPECT_EQ(rt.block_on(give(7)), 7);
    is_over.store(true);
    rt.shutdown();
    check_ledger_after_shutdown(rt);
}

TEST(fairness, a_timer_that_always_throws_does_not_keep_ready_tasks_from_running) {
    const watchdog guard("a throwing timer", 30s);
    std::atomic<std::uint64_t> thrown{0};
    runtime_config config;
    config.workers = 1;
    config.on_exception = [&](const std::exception_ptr&) { ++thrown; };
    runtime rt(config);
    std::atomic<bool> is_over{false};
    struct again {
        void operator()() const {
            if (is_over->load()) return;
            rt->timers().after(0s, *this);
            throw std::runtime_error("as always");
        }
        runtime* rt;
        std::atomic<bool>* is_over;
    };
    rt.timers().after(0s, again{&rt, &is_over});
    EXPECT_EQ(rt.block_on(give(7)), 7);
    is_over.store(true);
    rt.shutdown();
    check_ledger_after_shutdown(rt);
}

TEST(fairness, a_task_that_always_throws_does_not_keep_timers_from_firing) {
    const watchdog guard("throwing tasks", 30s);
    runtime_config config;
    config.workers = 1;
    std::atomic<bool> is_over{false};
    runtime* home = nullptr;
    struct thrower {
        static task<> once(runtime& rt, const std::atomic<bool>& is_over) {
            if (is_over.load()) co_return;
            spawn_detached(rt, once(rt, is_over));
            throw std::runtime_error("as always");
        }
    };
    config.on_exception = [](const std::exception_ptr&) {};
    runtime rt(config);
    home = &rt;
    spawn_detached(rt, thrower::once(*home, is_over));
    std::atomic<bool> has_fired{false};
    rt.timers().after(1ms, [&] { has_fired.store(true); });
    while (!has_fired.load()) std::this_thread::yield();
    is_over.store(true);
    rt.shutdown();
    check_ledger_after_shutdown(rt);
}

TEST(shutdown, ends_although_a_task_yields_for_ever) {
    const watchdog guard("a task that yields for ever", 30s);
    runtime rt({.workers = 2});
    std::atomic<int> begun{0};
    for (int i = 0; i < 3; ++i) spawn_detached(rt, yield_for_ever(begun));
    while (begun.load() != 3) std::this_thread::yield();
    rt.shutdown();
    EXPECT_EQ(rt.stats().timers.destroyed, 3U);
    check_ledger_after_shutdown(rt);
}

TEST(on_a_worker, is_noticed_inside_a_context_that_a_task_runs) {
    const watchdog guard("a loop in a loop", 30s);
    runtime rt({.workers = 2});
    struct nested {
        static task<> run(runtime& rt) {
            io_context inner;
            inner.post([&] {
                EXPECT_TRUE(rt.is_on_a_worker());
                expect_refused(errc::on_a_worker, [&] { rt.block_on(give(1)); });
                expect_refused(errc::on_a_worker, [&] { rt.shutdown(); });
            });
            inner.run();
            co_return;
        }
    };
    rt.block_on(nested::run(rt));
    rt.shutdown();
    check_ledger_after_shutdown(rt);
}

TEST(on_a_worker, is_noticed_where_exceptions_are_reported) {
    const watchdog guard("inside on_exception", 30s);
    runtime* home = nullptr;
    std::atomic<int> refused{0};
    runtime_config config;
    config.workers = 2;
    config.on_exception = [&](const std::exception_ptr&) {
        expect_refused(errc::on_a_worker, [&] { home->shutdown(); });
        expect_refused(errc::on_a_worker, [&] { home->block_on(give(1)); });
        ++refused;
    };
    runtime rt(config);
    home = &rt;
    rt.timers().after(0s, [] { throw std::runtime_error("once"); });
    while (refused.load() == 0) std::this_thread::yield();
    rt.shutdown();
    check_ledger_after_shutdown(rt);
}

task<> hop_over(runtime& rt, io_context& context, std::atomic<int>& hops) {
    for (int i = 0; i < 100; ++i) {
        co_await context.get_scheduler().schedule();
        EXPECT_FALSE(rt.is_on_a_worker());
        co_await sleep_for(0s);
        co_await rt.get_scheduler().schedule();
        EXPECT_TRUE(rt.is_on_a_worker());
        co_await sleep_for(1us);
        ++hops;
    }
}

TEST(scheduler, takes_a_task_from_a_context_to_the_workers_and_back) {
    const watchdog guard("hops", 30s);
    io_context context;
    auto guard_of_work = context.make_work_guard();
    std::thread loop([&] { context.run(); });
    runtime rt({.workers = 2});
    std::atomic<int> hops{0};
    rt.block_on(hop_over(rt, context, hops));
    EXPECT_EQ(hops.load(), 100);
    guard_of_work.reset();
    loop.join();
    rt.shutdown();
    check_ledger_after_shutdown(rt);
}

TEST(a_worker_that_is_called, leaves_a_task_to_the_worker_that_awaits_it) {
    constexpr int rounds = 20'000;
    runtime home({.workers = 2});
    const auto answer = [](int number) -> task<int> { co_return number; };
    const auto ask = [&]() -> task<> {
        for (int round = 0; round < rounds; ++round) {
            auto asked = spawn(home, answer(round));
            const int answered = co_await asked;
            EXPECT_EQ(answered, round);
        }
    };
    home.block_on(ask());
    if (CHIME_TEST_SCALE == 1) {  // With pauses it looks as if the task stayed.
        EXPECT_LT(home.stats().timers.wakeups, static_cast<std::uint64_t>(rounds / 4));
    }
    check_ledger_after_shutdown(home);
}

}  // namespace
}  // namespace chime::test
