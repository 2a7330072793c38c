// SPDX-License-Identifier: MIT
//
// Plain functions that a runtime runs as soon as a worker is free.

#include "runtime/watchdog.hpp"
#include "support/refusal.hpp"
#include "support/runtime_ledger.hpp"
#include "support/witness.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

TEST(runtime_post, runs_what_any_thread_posts_once_and_on_a_worker) {
    const watchdog guard("posting", 30s);
    runtime home({.workers = 2});
    std::atomic<int> ran{0};
    std::atomic<int> elsewhere{0};
    constexpr int count = 2'000;
    std::vector<std::thread> threads;
    for (int number = 0; number < 3; ++number) {
        threads.emplace_back([&] {
            for (int each = 0; each < count; ++each) {
                home.post([&] {
                    if (!home.is_on_a_worker()) ++elsewhere;
                    ++ran;
                });
            }
        });
    }
    for (std::thread& each : threads) each.join();
    home.post([&] { home.post([&] { ++ran; }); });
    await_that([&] { return ran == 3 * count + 1; });
    EXPECT_EQ(elsewhere, 0);
    check_ledger_after_shutdown(home);
}

TEST(runtime_post, does_not_wait_behind_a_worker_that_is_busy) {
    const watchdog guard("posting beside a busy worker", 30s);
    runtime home({.workers = 2});
    std::atomic<bool> may_end{false};
    std::atomic<bool> is_busy{false};
    std::atomic<int> ran{0};
    home.post([&] {
        for (int count = 0; count < 10; ++count) home.post([&] { ++ran; });
        is_busy = true;
        while (!may_end) std::this_thread::yield();
    });
    await_that([&] { return is_busy.load(); });
    await_that([&] { return ran == 10; });  // What the busy one has posted itself is taken over, too.
    may_end = true;
    check_ledger_after_shutdown(home);
}

TEST(runtime_post, refused_leaves_the_function_as_it_was) {
    const watchdog guard("posting in vain", 30s);
    runtime home({.workers = 1, .max_tasks = 1});
    auto sleeper = home.spawn(sleep_for(1h));
    witness_report report;
    std::atomic<int> ran{0};
    auto function = [kept = witness(report), &ran] { ++ran; };
    EXPECT_FALSE(home.try_post(std::move(function)));
    expect_refused(errc::too_many_tasks, "chime::runtime::post: this runtime has no place for another task",
                   [&] { home.post(std::move(function)); });
    EXPECT_EQ(report.ends, 0) << "it was not moved from";
    sleeper.cancel();
    sleeper.wait();
    await_that([&] { return home.try_post(std::move(function)); });
    await_that([&] { return ran == 1; });
    expect_refused(errc::empty_function, "chime::runtime::post", [&] { home.post(std::function<void()>()); });
    home.shutdown();
    EXPECT_EQ(report.ends, 1);
    EXPECT_FALSE(home.try_post([&ran] { ++ran; }));
    expect_refused(errc::stopped, "chime::runtime::post", [&] { home.post([&ran] { ++ran; }); });
    EXPECT_EQ(ran, 1);
    check_ledger_after_shutdown(home);
}

TEST(runtime_post, gives_what_the_function_throws_to_on_exception) {
    const watchdog guard("posting what fails", 30s);
    std::atomic<int> caught{0};
    runtime_config config{.workers = 1};
    config.on_exception = [&](const std::exception_ptr&) { ++caught; };
    runtime home(config);
    home.post([] { throw std::runtime_error("from a posted function"); });
    await_that([&] { return caught == 1; });
    check_ledger_after_shutdown(home);
}

}  // namespace
}  // namespace chime::test
