// SPDX-License-Identifier: MIT
//
// Narrow windows, entered millions of times: a worker that goes to sleep while somebody spawns or arms, and one that leaves
// while somebody postpones or cancels what it has.

#include "runtime/watchdog.hpp"
#include "support/random.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

task<> count_up(std::atomic<std::uint64_t>& ran) {
    ran.fetch_add(1, std::memory_order_release);
    co_return;
}

/// One piece of work at a time, given just when the worker that has done the last one is about to sleep.
template <class Give>
void give_to_who_goes_to_sleep(const char* name, unsigned workers, std::uint64_t rounds, const Give& give) {
    watchdog guard(name, 15s);
    random_source random(process_seed());
    runtime home({.workers = workers});
    std::atomic<std::uint64_t> ran{0};
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        if (round % 256 == 0) guard.pat();
        give(home, ran);
        await_that([&] { return ran.load(std::memory_order_acquire) == round; });
        spin(random.below(random.one_in(4) ? 20'000 : 1'500));
    }
    check_ledger_after_shutdown(home);
}

TEST(a_worker_that_goes_to_sleep, does_not_miss_a_task_that_is_spawned_just_then) {
    for (const unsigned workers : {1U, 2U}) {
        give_to_who_goes_to_sleep(
            "spawn against park", workers, scaled(60'000),
            [](runtime& home, std::atomic<std::uint64_t>& ran) { spawn_detached(home, count_up(ran)); });
    }
}

TEST(a_worker_that_goes_to_sleep, does_not_miss_a_timer_that_is_armed_just_then) {
    for (const unsigned workers : {1U, 2U}) {
        give_to_who_goes_to_sleep("arm against park", workers, scaled(60'000),
                                  [](runtime& home, std::atomic<std::uint64_t>& ran) {
                                      home.timers().after(0s, [&] { ran.fetch_add(1, std::memory_order_release); });
                                  });
    }
}

TEST(a_worker_that_leaves, gives_away_once_what_others_postpone_and_cancel_meanwhile) {
    watchdog guard("postpone against retire", 20s);
    runtime home({.workers = 2});
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds{scaled(5'000) + 500};
    std::atomic<std::uint64_t> fired{0};
    std::atomic<std::uint64_t> cancelled{0};
    std::atomic<std::uint64_t> armed{0};
    std::vector<std::thread> threads;
    for (std::uint64_t number = 0; number < 3; ++number) {
        threads.emplace_back([&, number] {
            random_source random(process_seed() + number);
            std::vector<timer_handle> handles(400);  // Of all three, more than a worker adopts in one turn.
            while (std::chrono::steady_clock::now() < until) {
                for (timer_handle& each : handles) {
                    if (!home.timers().postpone(each, nanoseconds{random.below(4'000'000'000)})) {
                        each = home.timers().after(nanoseconds{random.below(4'000'000'000)}, [&] { ++fired; });
                        ++armed;
                    } else if (random.one_in(64)) {
                        if (home.timers().cancel(each) == cancel_result::cancelled) ++cancelled;
                    }
                }
            }
            for (const timer_handle each : handles) {
                if (home.timers().cancel_and_wait(each) == cancel_result::cancelled) ++cancelled;
            }
        });
    }
    std::uint64_t rounds = 0;
    worker_id oldest = 0;
    for (; std::chrono::steady_clock::now() < until; ++rounds) {
        guard.pat();
        home.add_worker();
        home.retire_worker(oldest++);
    }
    for (std::thread& each : threads) each.join();
    await_that([&] { return fired + cancelled == armed; });
    std::cout << "armed " << armed << ", fired " << fired << ", cancelled " << cancelled << ", postponed "
              << home.stats().timers.postponed << ", retired " << rounds << ", migrated "
              << home.stats().timers.migrated << '\n';
    // Also what a worker takes from the merge queue, and gives away again before it has adopted it, counts once.
    check_ledger_after_shutdown(home);
    const timer_stats sums = home.stats().timers;
    EXPECT_EQ(sums.armed, armed.load());
    EXPECT_EQ(sums.fired, fired.load());
    EXPECT_EQ(sums.cancelled, cancelled.load());
    EXPECT_GT(sums.migrated, 0U);
}

}  // namespace
}  // namespace chime::test
