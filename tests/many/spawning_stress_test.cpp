// SPDX-License-Identifier: MIT
//
// A million tasks, spawned by somebody who waits for nobody: all of them run, or exactly those beyond the cap are refused.

#include "runtime/watchdog.hpp"
#include "support/random.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <system_error>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

task<> count_one(std::atomic<std::uint64_t>& ran) {
    ran.fetch_add(1, std::memory_order_relaxed);
    co_return;
}

task<> sleep_for_an_hour(std::atomic<std::uint64_t>& cancelled) {
    const wake_reason why = co_await sleep_for(1h);
    if (why == wake_reason::cancelled) cancelled.fetch_add(1, std::memory_order_relaxed);
}

/// Runs a function inside a task, which never waits.
template <class Function>
task<> do_inside(const Function& function) {
    function();
    co_return;
}

/// Once on this thread, and once inside a task.
template <class Function>
void call_on(runtime& home, bool is_inside, const Function& function) {
    if (is_inside) {
        home.block_on(do_inside(function));
    } else {
        function();
    }
}

void spawn_without_waiting(bool is_inside) {
    watchdog guard("spawning without waiting", 60s);
    const std::uint64_t count = scaled(1'000'000);
    std::atomic<std::uint64_t> ran{0};
    runtime home({.workers = 2});
    call_on(home, is_inside, [&] {
        for (std::uint64_t each = 0; each < count; ++each) {
            if (each % 4'096 == 0) guard.pat();
            spawn_detached(home, count_one(ran));
        }
    });
    guard.pat();
    await_that([&] { return ran == count; });
    EXPECT_EQ(home.stats().timers.refused, 0U);
    check_ledger_after_shutdown(home);
    EXPECT_EQ(ran.load(), count);
}

TEST(a_million_spawns, from_outside_without_waiting_all_run) {
    spawn_without_waiting(false);
}

TEST(a_million_spawns, from_inside_a_task_without_waiting_all_run) {
    spawn_without_waiting(true);
}

void spawn_beyond_the_cap(bool is_inside) {
    watchdog guard("spawning beyond the cap", 60s);
    const std::uint64_t count = scaled(1'000'000);
    const std::uint64_t cap = count / 10;
    std::uint64_t accepted = 0;
    std::uint64_t refused = 0;
    std::atomic<std::uint64_t> cancelled{0};
    // One more for the task that spawns them.
    runtime home({.workers = 2, .max_tasks = static_cast<std::size_t>(cap + (is_inside ? 1 : 0))});
    call_on(home, is_inside, [&] {
        for (std::uint64_t each = 0; each < count; ++each) {
            if (each % 4'096 == 0) guard.pat();
            bool is_accepted = true;
            if (each % 64 != 0) {
                is_accepted = try_spawn_detached(home, sleep_for_an_hour(cancelled));
            } else {
                try {
                    spawn_detached(home, sleep_for_an_hour(cancelled));
                } catch (const std::system_error& error) {
                    EXPECT_EQ(error.code(), errc::too_many_tasks) << error.what();
                    is_accepted = false;
                }
            }
            ++(is_accepted ? accepted : refused);
            // None of them ends, so whoever was refused once is refused for good.
            EXPECT_EQ(is_accepted, each < cap) << "the one with number " << each;
            if (::testing::Test::HasFailure()) return;
        }
    });
    EXPECT_EQ(accepted, cap);
    EXPECT_EQ(refused, count - cap);
    EXPECT_EQ(home.stats().timers.refused, count - cap);
    guard.pat();
    await_that([&] { return home.stats().timers.pending == cap && home.stats().timers.tasks == cap; });
    check_ledger_after_shutdown(home);
    EXPECT_EQ(cancelled.load(), cap);
}

TEST(a_million_spawns, from_outside_beyond_a_cap_are_refused_exactly) {
    spawn_beyond_the_cap(false);
}

TEST(a_million_spawns, from_inside_a_task_beyond_a_cap_are_refused_exactly) {
    spawn_beyond_the_cap(true);
}

}  // namespace
}  // namespace chime::test
