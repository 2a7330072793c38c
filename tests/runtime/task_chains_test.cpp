// SPDX-License-Identifier: MIT
//
// Tasks that await tasks that await tasks, a million deep.
#include "support/ledger.hpp"
#include "support/run_to_end.hpp"
#include "support/witness.hpp"

#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

// Awaiting takes no stack where the compiler turns the transfer from frame to frame into a jump. g++ does so only when it
// optimises, and never with a sanitizer: there it needs stack for each.
#if defined(__clang__) || (defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__))
constexpr std::uint64_t long_chain = 1'000'000;
#else
constexpr std::uint64_t long_chain = 100;
#endif

task<std::uint64_t> one() {
    co_return 1;
}

task<std::uint64_t> await_many(std::uint64_t count) {
    std::uint64_t sum = 0;
    for (std::uint64_t left = count; left != 0; --left) sum += co_await one();
    co_return sum;
}

task<std::uint64_t> dive(std::uint64_t depth) {
    if (depth == 0) co_return 0;
    const std::uint64_t below = co_await dive(depth - 1);
    co_return below + 1;
}

task<std::uint64_t> dive_and_sleep(std::uint64_t depth) {
    if (depth == 0) {
        co_await sleep_for(1s);
        co_return 0;
    }
    const std::uint64_t below = co_await dive_and_sleep(depth - 1);
    co_return below + 1;
}

task<> dive_and_fail(std::uint64_t depth) {
    if (depth == 0) throw std::out_of_range("from the bottom");
    co_await dive_and_fail(depth - 1);
}

TEST(task, is_awaited_a_million_times_in_a_loop_without_taking_stack) {
    EXPECT_EQ(run_to_end(await_many(long_chain)), long_chain);
}

TEST(task, awaits_itself_a_million_deep_without_taking_stack) {
    EXPECT_EQ(run_to_end(dive(long_chain)), long_chain);
}

TEST(task, sleeps_at_the_bottom_of_a_million_awaits_and_comes_back) {
    EXPECT_EQ(run_to_end(dive_and_sleep(long_chain)), long_chain);
}

TEST(task, carries_an_exception_up_through_many_awaits) {
    EXPECT_THROW(run_to_end(dive_and_fail(long_chain / 100)), std::out_of_range);
}

task<> sink(std::uint64_t depth, witness_report& report) {
    const witness kept(report);
    if (depth == 0) {
        co_await sleep_for(1h);
    } else {
        co_await sink(depth - 1, report);
    }
}

TEST(task, that_is_suspended_under_a_million_awaits_is_destroyed_with_its_context) {
    witness_report report;
    {
        testing::virtual_context context;
        spawn_detached(*context, sink(long_chain, report));
        context.settle();
        EXPECT_EQ(context->timers().stats().pending, 1U);
        EXPECT_EQ(report.ends, 0);
        check_ledger(*context);
    }
    EXPECT_EQ(report.ends, static_cast<int>(long_chain) + 1);
}

TEST(task, that_is_suspended_under_a_million_awaits_comes_back_when_everything_stops) {
    testing::virtual_context context;
    witness_report report;
    spawn_detached(*context, sink(long_chain, report));
    context.settle();
    context->timers().stop();
    context.run();
    EXPECT_EQ(report.ends, static_cast<int>(long_chain) + 1);
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
