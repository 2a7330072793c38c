// SPDX-License-Identifier: MIT
//
// Two loops on two threads whose tasks join, cancel and visit each other.
#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/random.hpp"

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>

namespace chime::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

task<int> sleep_there(duration delay) {
    co_return co_await sleep_for(delay) == wake_reason::elapsed ? 1 : 2;
}

struct join_sums {
    std::uint64_t elapsed = 0;
    std::uint64_t cancelled = 0;
};

task<> spawn_cancel_join(io_context& other, std::uint64_t rounds, std::uint64_t seed, join_sums& sums) {
    random_source random(seed);
    for (std::uint64_t round = 0; round < rounds; ++round) {
        const bool is_long = random.one_in(2);
        auto joined = spawn(other, sleep_there(is_long ? duration{1h} : duration{nanoseconds{random.below(5'000)}}));
        spin(random.below(4'000));
        if (is_long || random.one_in(2)) joined.cancel();
        (co_await joined == 1 ? sums.elapsed : sums.cancelled) += 1;
    }
}

TEST(two_loops, spawn_cancel_and_join_across_them_lose_nobody) {
    const watchdog guard("spawn, cancel, join", 120s);
    io_context first;
    io_context second;
    const std::uint64_t rounds = scaled(40'000);
    join_sums there;
    join_sums back;
    // Each loop has tasks that spawn on the other one.
    spawn_detached(first, spawn_cancel_join(second, rounds, process_seed(), there));
    spawn_detached(second, spawn_cancel_join(first, rounds, process_seed() + 1, back));
    {
        loop_thread one(first);
        loop_thread two(second);
        await_that([&] {
            std::this_thread::sleep_for(1ms);
            return first.timers().stats().tasks + second.timers().stats().tasks == 0;
        });
    }
    EXPECT_EQ(there.elapsed + there.cancelled, rounds);
    EXPECT_EQ(back.elapsed + back.cancelled, rounds);
    EXPECT_GT(there.elapsed, 0U);
    EXPECT_GT(there.cancelled, rounds / 3);
    check_ledger_at_rest(first);
    check_ledger_at_rest(second);
}

task<> hop_between(io_context& here, io_context& there, std::uint64_t rounds, std::uint64_t& hops) {
    for (std::uint64_t round = 0; round < rounds; ++round) {
        co_await there.get_scheduler().schedule();
        co_await sleep_for(0ns);
        co_await here.get_scheduler().schedule();
        ++hops;
        const wake_reason why = co_await sleep_for(1us);
        if (why == wake_reason::cancelled) co_return;
    }
}

TEST(two_loops, a_task_that_hops_between_them_can_be_cancelled_wherever_it_is) {
    watchdog guard("hop", 30s);
    io_context first;
    io_context second;
    loop_thread one(first);
    loop_thread two(second);
    random_source random(process_seed());
    std::uint64_t hops = 0;
    for (std::uint64_t round = 0; round < scaled(4'000); ++round) {
        guard.pat();
        auto joined = spawn(first, hop_between(first, second, 100'000, hops));
        spin(random.below(20'000));
        ASSERT_TRUE(joined.cancel()) << replay_hint();
        await_that([&] { return joined.is_done(); });
    }
    one.finish();
    two.finish();
    check_ledger_at_rest(first);
    check_ledger_at_rest(second);
}

}  // namespace
}  // namespace chime::test
