// SPDX-License-Identifier: MIT
//
// cancel_and_join() where the callback runs on one worker and whoever waits for it is a task on another one.

#include "runtime/small_tasks.hpp"
#include "runtime/watchdog.hpp"
#include "support/runtime_ledger.hpp"
#include "support/witness.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// A callback that runs until it is told to end.
struct long_callback {
    std::atomic<int> runs{0};
    std::atomic<int> ended{0};
    std::atomic<bool> may_end{false};
    std::atomic<std::thread::id> thread{};
    witness_report closure;

    void run() {
        thread = std::this_thread::get_id();
        ++runs;
        await_that([this] { return may_end.load(); });
        ++ended;
    }
};

/// What a task has seen that has waited for it.
struct joined_callback {
    cancel_result answer = cancel_result::gone;
    std::thread::id waited_on;
    int ended = 0;
    int closures_ended = 0;
};

task<joined_callback> join_it(timers& home, timer_handle which, long_callback& its, std::atomic<int>& waiting) {
    joined_callback seen;
    seen.waited_on = std::this_thread::get_id();
    ++waiting;
    auto joined = home.cancel_and_join(which);
    seen.answer = co_await joined;
    seen.ended = its.ended;
    seen.closures_ended = its.closure.ends;
    co_return seen;
}

/// `arm` gives the callback to a runtime with two workers, as a timer of some kind.
template <class Arm>
void join_on_another_worker(const Arm& arm) {
    watchdog guard("cancel_and_join on another worker", 30s);
    for (int round = 0; round < 20; ++round) {
        guard.pat();
        runtime home({.workers = 2});
        long_callback its;
        const timer_handle which = arm(home.timers(), its);
        await_that([&] { return its.runs == 1; });
        std::atomic<int> waiting{0};
        std::vector<join_handle<joined_callback>> all;
        for (int count = 0; count < 3; ++count) all.push_back(home.spawn(join_it(home.timers(), which, its, waiting)));
        await_that([&] { return waiting == 3; });
        EXPECT_EQ(home.block_on(answer_after(1ms, 7)), 7) << "who waits blocks nobody";
        for (const auto& each : all) EXPECT_FALSE(each.is_done());
        EXPECT_EQ(its.ended.load(), 0);
        its.may_end = true;
        for (auto& each : all) {
            each.wait();
            const joined_callback seen = each.take();
            EXPECT_EQ(seen.answer, cancel_result::running);
            EXPECT_NE(seen.waited_on, its.thread.load());
            EXPECT_EQ(seen.ended, 1) << "it came back while the callback was running";
            EXPECT_EQ(seen.closures_ended, 1);
        }
        EXPECT_EQ(home.timers().cancel(which), cancel_result::gone);
        check_ledger_after_shutdown(home);
        EXPECT_EQ(its.runs.load(), 1);
    }
}

TEST(cancel_and_join_on_many_workers, waits_for_a_callback_that_runs_on_another_worker) {
    join_on_another_worker([](timers& home, long_callback& its) {
        return home.after(0s, [&its, seen = witness(its.closure)] { its.run(); });
    });
}

TEST(cancel_and_join_on_many_workers, waits_for_the_last_run_of_what_repeats_on_another_worker) {
    join_on_another_worker([](timers& home, long_callback& its) {
        return home.every(1ms, missed_ticks::burst, [&its, seen = witness(its.closure)] { its.run(); });
    });
}

}  // namespace
}  // namespace chime::test
