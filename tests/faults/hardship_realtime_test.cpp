// SPDX-License-Identifier: MIT
//
// Real threads in bad company: storms of signals, one processor for all, threads that stand still.

#include "runtime/small_tasks.hpp"
#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/random.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

task<> nap_often(int naps, std::atomic<int>& early, std::atomic<int>& over) {
    for (int count = 0; count < naps; ++count) {
        const time_point until = chime::clock::now() + 100us;
        auto pause = sleep_until(until);
        co_await pause;
        if (chime::clock::now() < until) ++early;
    }
    ++over;
}

/// A runtime and a loop with sleepers, timers that come and go, and workers that come and go, until all have slept enough.
void work_hard(
    watchdog& guard, int naps, const std::function<void()>& when_started = [] {}) {
    std::atomic<int> early{0};
    std::atomic<int> over{0};
    std::atomic<int> fired{0};
    int expected = 0;
    runtime home({.workers = 2, .metronome = true});
    io_context context({.pool_threads = 1});
    loop_thread loop(context);
    when_started();
    for (int count = 0; count < 8; ++count) {
        spawn_detached(home, nap_often(naps, early, over));
        spawn_detached(context, nap_often(naps, early, over));
    }
    for (int round = 0; over < 16; ++round) {
        guard.pat();
        EXPECT_EQ(home.block_on(answer_after(50us, round)), round);
        for (timers* const all : {&home.timers(), &context.timers()}) {
            const time_point due = chime::clock::now() + 200us;
            const timer_handle which = all->at(due, [&, due] {
                ++fired;
                if (chime::clock::now() < due) ++early;
            });
            if (round % 4 != 0 || all->cancel_and_wait(which) != cancel_result::cancelled) ++expected;
        }
        static_cast<void>(context.cpu_pool().submit([] { return 1; }));
        if (round % 16 == 0) home.retire_worker(home.add_worker());
    }
    await_that([&] { return fired == expected; });
    loop.finish();
    EXPECT_EQ(early.load(), 0);
    check_ledger_at_rest(context);
    check_ledger_after_shutdown(home);
}

std::atomic<std::uint64_t> alarms{0};

TEST(a_storm_of_signals, that_interrupts_every_call_loses_nothing) {
    watchdog guard("a storm of signals", 60s);
    struct sigaction noted {};
    struct sigaction before {};
    noted.sa_handler = [](int) { alarms.fetch_add(1, std::memory_order_relaxed); };  // Without SA_RESTART.
    ::sigaction(SIGALRM, &noted, &before);
    const itimerval often{{0, 100}, {0, 100}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
    sigset_t only_this;
    ::sigemptyset(&only_this);
    ::sigaddset(&only_this, SIGALRM);
    // The kernel prefers the first thread: if that does not want them, the threads of the library get them.
    work_hard(guard, static_cast<int>(scaled(1'000)), [&] { ::pthread_sigmask(SIG_BLOCK, &only_this, nullptr); });
    const itimerval never_again{};
    ::setitimer(ITIMER_REAL, &never_again, nullptr);
    ::pthread_sigmask(SIG_UNBLOCK, &only_this, nullptr);
    ::sigaction(SIGALRM, &before, nullptr);
    EXPECT_GT(alarms.load(), 10U);
}

TEST(one_processor, for_all_threads_is_enough) {
    watchdog guard("one processor", 60s);
    cpu_set_t before;
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (unsigned processor = 0; processor < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++processor) {
        if (CPU_ISSET(processor, &before)) CPU_SET(processor, &one);
    }
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);  // Threads that are started inherit it.
    work_hard(guard, static_cast<int>(scaled(1'000)));
    ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(a_stuck_worker, for_a_tenth_of_a_second_or_a_whole_one_delays_and_loses_nothing) {
    watchdog guard("a stuck worker", 60s);
    for (const auto stuck_for : {100ms, 1000ms}) {
        runtime home({.workers = 2});
        io_context context;
        loop_thread loop(context);
        for (timers* const all : {&home.timers(), &context.timers()}) {
            std::atomic<bool> is_stuck{false};
            std::atomic<int> fired{0};
            std::atomic<int> early{0};
            int cancelled = 0;
            all->after(0s, [&] {
                is_stuck = true;
                std::this_thread::sleep_for(stuck_for);
            });
            await_that([&] { return is_stuck.load(); });
            const int count = static_cast<int>(scaled(20'000));
            for (int made = 0; made < count; ++made) {  // Most of them at the one that is stuck.
                const time_point due = chime::clock::now() + (made % 100) * 1ms;
                const bool is_postponed = made % 5 == 0;
                const timer_handle which = all->at(due, [&, due, is_postponed] {
                    ++fired;
                    if (!is_postponed && chime::clock::now() < due) ++early;
                });
                if (is_postponed) all->postpone(which, 30ms);
                if (made % 3 == 0 && all->cancel(which) == cancel_result::cancelled) ++cancelled;
            }
            await_that([&] { return fired + cancelled == count; });
            EXPECT_EQ(early.load(), 0);
            guard.pat();
        }
        loop.finish();
        check_ledger_at_rest(context);
        check_ledger_after_shutdown(home);
    }
}

/// Stuck for so long, and until it was reported and others have gone on: if one of them did not come, nobody would end it.
void get_stuck(std::chrono::milliseconds stuck_for) {
    std::atomic<int> reports{0};
    runtime_config config{.workers = 2, .metronome = true, .metronome_period = 1ms, .stuck_after = 50ms};
    config.on_stuck = [&](const stuck_worker& report) { reports += report.since >= 50ms ? 1 : 0; };
    runtime home(config);
    std::atomic<bool> is_stuck{false};
    std::atomic<bool> is_over{false};
    std::atomic<int> rounds{0};
    std::atomic<int> early{0};
    std::atomic<int> fired{0};
    std::atomic<int> over{0};
    const int count = static_cast<int>(scaled(2'000));
    const auto arm_one = [&](int number) {
        const time_point due = chime::clock::now() + (number % 20) * 5ms;
        home.timers().at(due, [&, due] {
            ++fired;
            if (chime::clock::now() < due) ++early;
        });
    };
    // Sleepers and timers from before: those of the stuck worker wait for it.
    for (int sleeper = 0; sleeper < 8; ++sleeper) spawn_detached(home, nap_often(50, early, over));
    for (int number = 0; number < count; ++number) arm_one(number);
    home.timers().after(1ms, [&] {
        is_stuck = true;
        std::this_thread::sleep_for(stuck_for);
        await_that([&] { return reports != 0 && rounds >= 3; });
        is_over = true;
    });
    await_that([&] { return is_stuck.load(); });
    for (int number = 0; number < count; ++number) arm_one(number);
    while (!is_over) {  // This needs somebody who is not stuck.
        const time_point until = chime::clock::now() + 2ms;
        EXPECT_EQ(home.block_on(answer_after(2ms, 17)), 17);
        if (chime::clock::now() < until) ++early;
        ++rounds;
    }
    await_that([&] { return fired == 2 * count && over == 8; });
    EXPECT_EQ(early.load(), 0);
    EXPECT_GE(home.stats().stuck_reports, 1U);
    check_ledger_after_shutdown(home);
}

TEST(a_stuck_worker, for_up_to_ten_seconds_is_reported_while_others_go_on_and_nothing_is_lost) {
    watchdog guard("a worker stuck for long", 60s);
    for (const auto stuck_for : {100ms, 1'000ms, 10'000ms}) {
        get_stuck(stuck_for);
        guard.pat();
    }
}

std::atomic<bool> is_stalled{false};
std::atomic<std::uint64_t> stalls{0};

/// Holds the thread that gets the signal wherever it is.
void stall(int) {
    stalls.fetch_add(1);
    const timespec moment{0, 200'000};
    while (is_stalled.load()) ::nanosleep(&moment, nullptr);
}

TEST(a_thread, that_is_stopped_anywhere_and_goes_on_loses_nothing) {
    watchdog guard("stopped threads", 60s);
    SCOPED_TRACE(replay_hint());
    random_source random(process_seed());
    struct sigaction stalling {};
    struct sigaction before {};
    stalling.sa_handler = stall;
    ::sigaction(SIGUSR2, &stalling, &before);
    runtime home({.workers = 2, .metronome = true});
    // Who is there: threads give their timers to different workers.
    std::mutex mutex;
    std::set<pthread_t> met;
    const auto is_everybody_met = [&] {
        const std::lock_guard lock(mutex);
        return met.size() == 2;
    };
    while (!is_everybody_met()) {
        std::thread([&] {
            home.timers().after(0s, [&] {
                const std::lock_guard lock(mutex);
                met.insert(::pthread_self());
            });
        }).join();
        std::this_thread::sleep_for(1ms);
    }
    const std::vector<pthread_t> workers(met.begin(), met.end());
    std::atomic<bool> is_over{false};
    std::atomic<int> early{0};
    std::atomic<int> over{0};
    std::atomic<std::uint64_t> fired{0};
    std::atomic<std::uint64_t> expected{0};
    for (int count = 0; count < 8; ++count)
        spawn_detached(home, nap_often(static_cast<int>(scaled(2'000)), early, over));
    std::vector<std::thread> callers;
    for (int count = 0; count < 2; ++count) {
        callers.emplace_back([&] {
            while (!is_over) {
                const timer_handle which = home.timers().after(100us, [&] { ++fired; });
                home.timers().postpone(which, 50us);
                if (expected.load() % 4 != 0 || home.timers().cancel(which) != cancel_result::cancelled) ++expected;
                std::this_thread::sleep_for(20us);
            }
        });
    }
    for (int round = 0; round < 60; ++round) {
        guard.pat();
        is_stalled = true;
        ::pthread_kill(workers[random.below(2)], SIGUSR2);
        std::this_thread::sleep_for(round == 30 ? std::chrono::nanoseconds{1s} : random.below(5'000) * 1us);
        is_stalled = false;
        std::this_thread::sleep_for(random.below(3'000) * 1us);
    }
    is_over = true;
    for (std::thread& each : callers) each.join();
    await_that([&] { return over == 8 && fired == expected; });
    EXPECT_EQ(early.load(), 0);
    EXPECT_GE(stalls.load(), 30U);
    ::sigaction(SIGUSR2, &before, nullptr);
    check_ledger_after_shutdown(home);
}

}  // namespace
}  // namespace chime::test
