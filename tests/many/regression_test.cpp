// SPDX-License-Identifier: MIT
//
// Bugs that others have shipped, where it takes several workers to have them.

#include "runtime/watchdog.hpp"
#include "support/runtime_ledger.hpp"
#include "support/witness.hpp"

#include <chime/runtime.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

task<> block(std::atomic<int>& blocked, const std::atomic<bool>& may_go_on) {
    ++blocked;
    await_that([&] { return may_go_on.load(); });
    co_return;
}

/// Arms timers of an hour from three threads while all workers are in user code, does something to each, and cancels it.
/// Then every worker finds them in its inbox, and nothing of them gets into a wheel.
template <class Meddle>
void cancel_before_insertion(const Meddle& meddle) {
    watchdog guard("cancelled before it is inserted", 30s);
    constexpr unsigned workers = 3;
    constexpr int of_each_thread = 500;
    runtime home({.workers = workers});
    witness_report closures;
    std::uint64_t commands = 0;
    for (int round = 0; round < 5; ++round) {
        guard.pat();
        std::atomic<int> blocked{0};
        std::atomic<bool> may_go_on{false};
        std::vector<join_handle<>> blocking;
        for (unsigned count = 0; count < workers; ++count) blocking.push_back(home.spawn(block(blocked, may_go_on)));
        await_that([&] { return blocked == workers; });
        std::array<std::thread, workers> threads;  // Those that are started together have different workers.
        for (std::thread& each : threads) {
            each = std::thread([&] {
                std::vector<timer_handle> armed;
                for (int count = 0; count < of_each_thread; ++count) {
                    armed.push_back(home.timers().after(1h, [seen = witness(closures)] { FAIL() << "cancelled"; }));
                    meddle(home.timers(), armed.back());
                }
                for (const timer_handle which : armed) {
                    EXPECT_EQ(home.timers().cancel(which), cancel_result::cancelled);
                    EXPECT_EQ(home.timers().cancel(which), cancel_result::gone);
                }
            });
        }
        for (std::thread& each : threads) each.join();
        commands += workers * of_each_thread;
        EXPECT_EQ(closures.ends.load(), static_cast<int>(commands)) << "destroyed by who cancels";
        EXPECT_EQ(home.stats().timers.pending, 0U);
        may_go_on = true;
        for (const join_handle<>& each : blocking) each.wait();
        await_that([&] { return home.stats().timers.commands >= commands && home.stats().timers.tasks == 0; });
        // What a worker has in its wheel it says at the end of its turn.
        std::uint64_t left = home.stats().timers.tickets;
        for (int looks = 0; looks < 2'000 && left != 0; ++looks) {
            std::this_thread::sleep_for(1ms);
            left = home.stats().timers.tickets;
        }
        ASSERT_EQ(left, 0U) << "inserted although it was cancelled, for an hour";
        EXPECT_EQ(home.stats().timers.stale_tickets, 0U);
    }
    std::uint64_t obeying = 0;
    for (const worker_stats& each : home.stats().workers) obeying += each.timers.commands != 0 ? 1 : 0;
    EXPECT_GT(obeying, 1U) << "one worker alone has had all of them";
    check_ledger_after_shutdown(home);
    EXPECT_EQ(home.stats().timers.armed, commands);
    EXPECT_EQ(home.stats().timers.cancelled, commands);
}

TEST(regression, b12_cancelled_before_its_worker_has_accepted_it_it_never_enters_a_wheel) {
    cancel_before_insertion([](timers&, timer_handle) {});
}

TEST(regression, b12_postponed_and_cancelled_before_its_worker_has_accepted_it_it_never_enters_a_wheel) {
    cancel_before_insertion([](timers& home, timer_handle which) {
        EXPECT_TRUE(home.postpone(which, 2h));
        EXPECT_TRUE(home.postpone(which, 30min));
    });
}

}  // namespace
}  // namespace chime::test
