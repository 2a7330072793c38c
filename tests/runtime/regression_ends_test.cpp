// SPDX-License-Identifier: MIT
//
// Bugs that other runtimes of this kind have had when something ends. Each keeps its number and its sentence.
#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/random.hpp"

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/testing.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

// --- Ends.

/// Owns a timer in its frame and, when destroyed, looks at other timers.
struct frame_with_timers {
    explicit frame_with_timers(io_context& on, int& fires)
        : context(&on), owned(on.timers(), on.timers().after(1h, [&fires] { ++fires; })) {}
    ~frame_with_timers() {
        context->timers().cancel(owned.get());
        EXPECT_FALSE(context->timers().try_after(1s, [] {}).has_value()) << "nothing is armed in a context that ends";
    }
    io_context* context;
    scoped_timer owned;
};

task<> own_timers_and_sleep(io_context& context, int& fires) {
    const frame_with_timers mine(context, fires);
    co_await sleep_for(10h);
    ++fires;
}

TEST(regression, b27_frames_that_own_timers_are_destroyed_with_their_context) {
    int fires = 0;
    {
        testing::virtual_context context;
        for (int i = 0; i < 100; ++i) spawn_detached(*context, own_timers_and_sleep(*context, fires));
        context.advance(1s);
        EXPECT_EQ(context->timers().stats().pending, 200U);
        check_ledger(*context);
    }
    EXPECT_EQ(fires, 0);
}

struct counts_its_end {
    explicit counts_its_end(std::uint64_t& ends) : count(ends) {}
    counts_its_end(const counts_its_end&) = delete;
    counts_its_end& operator=(const counts_its_end&) = delete;
    ~counts_its_end() { ++count; }
    std::uint64_t& count;
};

task<> await_deeper(std::uint64_t depth, std::uint64_t& ends) {
    const counts_its_end mine(ends);
    if (depth == 0) {
        co_await sleep_for(1h);
    } else {
        co_await await_deeper(depth - 1, ends);
    }
}

TEST(regression, b27_a_chain_of_a_million_awaits_is_destroyed_without_recursion) {
    const std::uint64_t depth = scaled(1'000'000);
    std::uint64_t ends = 0;
    {
        testing::virtual_context context;
        spawn_detached(*context, await_deeper(depth, ends));
        context.settle();
        EXPECT_EQ(ends, 0U);
        check_ledger(*context);
    }
    EXPECT_EQ(ends, depth + 1);
}

TEST(regression, b27_three_hundred_thousand_sleepers_are_destroyed_with_their_context) {
    const std::uint64_t count = scaled(300'000);
    std::uint64_t ends = 0;
    {
        testing::virtual_context context;
        for (std::uint64_t i = 0; i < count; ++i) spawn_detached(*context, await_deeper(1, ends));
        context.settle();
        check_ledger(*context);
    }
    EXPECT_EQ(ends, 2 * count);
}

TEST(regression, b28_what_is_armed_while_everything_stops_is_refused_or_ended) {
    const watchdog guard("arm against stop");
    for (std::uint64_t round = 0; round < scaled(400); ++round) {
        io_context context;
        std::atomic<std::int64_t> alive{0};
        std::atomic<std::uint64_t> fired{0};
        struct counted {
            explicit counted(std::atomic<std::int64_t>& all) : count(&all) { ++*count; }
            counted(counted&& other) noexcept : count(std::exchange(other.count, nullptr)) {}
            ~counted() {
                if (count != nullptr) --*count;
            }
            std::atomic<std::int64_t>* count;
        };
        std::uint64_t accepted = 0;
        std::thread loop([&, guarded = context.make_work_guard()]() mutable {
            const auto mine = std::move(guarded);
            context.run();
        });
        std::thread sender([&] {
            for (int i = 0; i < 200; ++i) {
                const auto delay = i % 3 == 0 ? duration{0} : duration{1h};
                const auto armed = context.timers().try_after(delay, [mine = counted(alive), &fired] { ++fired; });
                if (!armed) break;
                ++accepted;
            }
        });
        spin(round * 37 % 5'000);
        context.timers().stop();
        sender.join();
        // The loop is still held by its guard, which lives in its thread: stop it, then let it finish what is left.
        context.stop();
        loop.join();
        context.restart();
        context.run();
        EXPECT_EQ(alive.load(), 0) << "every closure was destroyed";
        const timer_stats sums = context.timers().stats();
        EXPECT_EQ(sums.armed, accepted);
        EXPECT_EQ(sums.fired, fired.load());
        check_ledger_at_rest(context);
    }
}

task<> spawned_sleep(int& ends) {
    co_await sleep_for(1h);
    ++ends;
}

TEST(regression, b28_whoever_joins_a_task_of_a_stopped_context_is_told) {
    testing::virtual_context context;
    int ends = 0;
    auto joined = spawn(*context, spawned_sleep(ends));
    context.settle();
    context->timers().stop();
    context.run();
    EXPECT_TRUE(joined.is_done());
    EXPECT_EQ(ends, 1);
    EXPECT_THROW(spawn_detached(*context, spawned_sleep(ends)), std::system_error);
    EXPECT_THROW(context->timers().after(1s, [] {}), std::system_error);
    check_ledger_at_rest(*context);
}

// --- Memory of others.

task<int> give(int value) {
    co_await yield();
    co_return value;
}

task<> ask_elsewhere(io_context& other, std::uint64_t rounds, std::uint64_t& sum) {
    for (std::uint64_t round = 0; round < rounds; ++round) {
        // The handle, and what it shares with the task, goes away as soon as the answer is there.
        auto joined = spawn(other, give(1));
        sum += static_cast<std::uint64_t>(co_await joined);
    }
}

TEST(regression, b30_whoever_tells_a_joiner_does_not_touch_what_that_frees) {
    const watchdog guard("join");
    io_context asking;
    io_context answering;
    loop_thread loop(answering);
    std::uint64_t sum = 0;
    const std::uint64_t rounds = scaled(20'000);
    spawn_detached(asking, ask_elsewhere(answering, rounds, sum));
    asking.run();
    loop.finish();
    EXPECT_EQ(sum, rounds);
    check_ledger_at_rest(asking);
    check_ledger_at_rest(answering);
}

task<> compute_elsewhere(io_context& context, std::uint64_t rounds, std::uint64_t& sum) {
    for (std::uint64_t round = 0; round < rounds; ++round) {
        auto job = context.cpu_pool().submit([] { return std::uint64_t{1}; });
        sum += co_await job;
    }
}

TEST(regression, b30_a_pool_that_ends_a_job_does_not_touch_what_the_waiter_frees) {
    const watchdog guard("job");
    io_context context({.pool_threads = 2});
    std::uint64_t sum = 0;
    const std::uint64_t rounds = scaled(10'000);
    spawn_detached(context, compute_elsewhere(context, rounds, sum));
    context.run();
    EXPECT_EQ(sum, rounds);
    check_ledger_at_rest(context);
}

task<> join_callback(io_context& context, timer_handle which, std::vector<cancel_result>& results) {
    auto wait = context.timers().cancel_and_join(which);
    results.push_back(co_await wait);
}

TEST(regression, b30_whoever_ends_a_callback_does_not_touch_what_its_joiner_frees) {
    const watchdog guard("cancel_and_join");
    io_context running;
    io_context joining;
    loop_thread loop(running);
    for (std::uint64_t round = 0; round < scaled(2'000); ++round) {
        std::atomic<int> stage{0};
        const timer_handle which = running.timers().after(0s, [&] {
            stage = 1;
            spin(round % 3'000);
            stage = 2;
        });
        await_that([&] { return stage.load() != 0; });
        std::vector<cancel_result> results;
        spawn_detached(joining, join_callback(running, which, results));
        joining.run();
        EXPECT_EQ(stage.load(), 2);
        ASSERT_EQ(results.size(), 1U);
        EXPECT_NE(results[0], cancel_result::cancelled);
    }
    loop.finish();
    check_ledger_at_rest(running);
    check_ledger_at_rest(joining);
}

}  // namespace
}  // namespace chime::test
