// SPDX-License-Identifier: MIT
//
// Plain functions that run once, on whatever worker comes first.

#include "runtime/watchdog.hpp"
#include "support/refusal.hpp"
#include "support/runtime_ledger.hpp"
#include "support/witness.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

TEST(a_posted_function, runs_once_on_a_worker_whoever_posts_it) {
    const watchdog guard("posting", 30s);
    runtime home({.workers = 2});
    std::atomic<int> runs{0};
    std::atomic<int> elsewhere{0};
    const auto run = [&] {
        if (!home.is_on_a_worker()) ++elsewhere;
        ++runs;
    };
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 3; ++thread) {
        threads.emplace_back([&] {
            for (int count = 0; count < 1'000; ++count) home.post(run);
        });
    }
    for (std::thread& each : threads) each.join();
    home.timers().after(0s, [&] { home.post(run); });
    home.post([&] { home.post(run); });
    await_that([&] { return runs == 3'002; });
    check_ledger_after_shutdown(home);
    EXPECT_EQ(runs, 3'002);
    EXPECT_EQ(elsewhere, 0);
}

TEST(a_posted_function, may_be_one_that_can_only_be_moved_and_is_destroyed_once) {
    const watchdog guard("posting what can only be moved", 30s);
    runtime home({.workers = 2});
    witness_report report;
    std::atomic<bool> was_there{false};
    home.post([&, seen = witness(report)] { was_there = seen.is_here(); });
    await_that([&] { return report.ends == 1; });
    EXPECT_TRUE(was_there);
    check_ledger_after_shutdown(home);
    EXPECT_EQ(report.ends, 1);
}

TEST(a_posted_function, that_throws_is_reported_and_the_others_run) {
    const watchdog guard("posting what throws", 30s);
    std::atomic<int> reported{0};
    std::atomic<int> runs{0};
    runtime home({.workers = 2, .on_exception = [&](const std::exception_ptr& thrown) {
                      try {
                          std::rethrow_exception(thrown);
                      } catch (const std::runtime_error& error) {
                          if (error.what() == std::string("broken")) ++reported;
                      }
                  }});
    for (int count = 0; count < 10; ++count) {
        home.post([] { throw std::runtime_error("broken"); });
        home.post([&] { ++runs; });
    }
    await_that([&] { return reported == 10 && runs == 10; });
    check_ledger_after_shutdown(home);
}

TEST(a_posted_function, is_refused_when_it_is_empty_or_comes_too_late_or_there_is_no_room) {
    const watchdog guard("posting in vain", 30s);
    runtime home({.workers = 1, .max_tasks = 1});
    expect_refused(errc::empty_function, "chime::runtime::post", [&] { home.post(std::function<void()>()); });
    auto only = home.spawn(sleep_until(never));
    witness_report report;
    const auto post = [&] { home.post([seen = witness(report)] { ADD_FAILURE() << "it has run"; }); };
    expect_refused(errc::too_many_tasks, "chime::runtime::post: as many tasks live as this runtime may hold", post);
    EXPECT_EQ(report.ends, 1);
    home.shutdown();
    expect_refused(errc::stopped, "chime::runtime::post: the runtime was shut down", post);
    EXPECT_EQ(report.ends, 2);
    check_ledger_after_shutdown(home);
}

TEST(a_posted_function, that_is_ready_when_the_runtime_is_shut_down_still_runs) {
    testing::simulation simulated(7, {.workers = 2});
    int runs = 0;
    for (int count = 0; count < 20; ++count) simulated->post([&] { ++runs; });
    EXPECT_EQ(runs, 0) << "nothing runs on the stack of who posts";
    simulated->shutdown();
    EXPECT_EQ(runs, 20);
}

}  // namespace
}  // namespace chime::test
