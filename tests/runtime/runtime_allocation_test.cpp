// SPDX-License-Identifier: MIT
//
// Counts every call of operator new, and of malloc where no sanitizer has taken its place: after warm-up a context makes
// none.

#include "runtime/watchdog.hpp"
#include "support/counted_new.hpp"
#include "support/ledger.hpp"
#include "support/random.hpp"

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/testing.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// How many allocations there are when the work is done again and again.
template <class Work>
std::uint64_t allocations_of(const Work& work) {
    const std::uint64_t before = allocations.load();
    EXPECT_GT(before, 0U) << "the counter does not count";
    for (int round = 0; round < 20; ++round) work();
    return allocations.load() - before;
}

/// Does the work a few times, and then again and again: without a single allocation.
template <class Work>
void expect_no_allocation(const Work& work) {
    for (int round = 0; round < 5; ++round) work();
    EXPECT_EQ(allocations_of(work), 0U);
}

/// A closure of a given size.
template <std::size_t Bytes>
struct sized_closure {
    void operator()() const { ++*reinterpret_cast<std::uint64_t* const&>(bytes); }
    alignas(8) std::array<std::byte, Bytes> bytes{};

    explicit sized_closure(std::uint64_t& count) { ::new (static_cast<void*>(bytes.data())) std::uint64_t*(&count); }
};

constexpr int many = 200;

/// The ways to run something on a loop: from inside of it, or from the thread that stands outside.
enum class place { loop, outside };

template <class Work>
void run_at(testing::virtual_context& context, place where, Work& work) {
    if (where == place::outside) {
        work();
    } else {
        context->post([&work] { work(); });
        context->poll();
    }
}

class runtime_allocations : public ::testing::TestWithParam<place> {
 protected:
    /// Runs `work` where the parameter says, and then lets the loop come to rest.
    template <class Work>
    void expect_none(Work work) {
        expect_no_allocation([&] {
            run_at(context, GetParam(), work);
            context.advance(10ms);
        });
        check_ledger(*context);
    }

    testing::virtual_context context;
    timers& all = context->timers();
    std::uint64_t count = 0;
};

template <std::size_t Bytes>
void arm_sized(timers& all, std::uint64_t& count) {
    for (int i = 0; i < many; ++i) all.after(i * 10us, sized_closure<Bytes>(count));
}

TEST_P(runtime_allocations, are_none_for_callbacks_with_small_closures) {
    expect_none([this] {
        arm_sized<8>(all, count);
        arm_sized<16>(all, count);
        arm_sized<24>(all, count);
        arm_sized<32>(all, count);
    });
    EXPECT_EQ(count, 25U * 4 * many);
}

TEST_P(runtime_allocations, are_none_for_callbacks_with_large_closures) {
    expect_none([this] {
        arm_sized<40>(all, count);
        arm_sized<104>(all, count);
        arm_sized<1'000>(all, count);
    });
    EXPECT_EQ(count, 25U * 3 * many);
}

TEST_P(runtime_allocations, are_none_for_cancelling) {
    std::array<timer_handle, many> handles;
    expect_none([&] {
        for (timer_handle& each : handles) each = all.after(1h, sized_closure<32>(count));
        for (const timer_handle each : handles) EXPECT_EQ(all.cancel(each), cancel_result::cancelled);
        for (timer_handle& each : handles) each = all.at(context.now() + 1h, sized_closure<64>(count));
        for (const timer_handle each : handles) EXPECT_EQ(all.cancel_and_wait(each), cancel_result::cancelled);
    });
    EXPECT_EQ(count, 0U);
}

TEST_P(runtime_allocations, are_none_for_postponing_both_ways) {
    std::array<timer_handle, many> handles;
    expect_none([&] {
        for (timer_handle& each : handles) each = all.after(5ms, sized_closure<8>(count));
        for (const timer_handle each : handles) EXPECT_TRUE(all.postpone(each, 1h));
        for (const timer_handle each : handles) EXPECT_TRUE(all.postpone(each, 3ms));
        for (const timer_handle each : handles) EXPECT_TRUE(all.postpone_until(each, context.now() + 7ms));
        for (const timer_handle each : handles) EXPECT_TRUE(all.postpone_until(each, context.now() + 2ms));
    });
    EXPECT_EQ(count, 25U * many);
}

TEST_P(runtime_allocations, are_none_for_periodic_timers) {
    std::array<timer_handle, 20> handles;
    expect_none([&] {
        for (const timer_handle each : handles) all.cancel(each);
        for (timer_handle& each : handles) each = all.every(1ms, missed_ticks::skip, sized_closure<8>(count));
    });
    EXPECT_GT(count, 20U * 20);
    for (const timer_handle each : handles) all.cancel(each);
}

TEST_P(runtime_allocations, are_none_for_tokens_of_callbacks) {
    cancel_source source;
    expect_none([&] {
        for (int i = 0; i < many; ++i) all.after(1ms, sized_closure<8>(count), source.token());
    });
    EXPECT_EQ(count, 25U * many);
}

TEST_P(runtime_allocations, are_none_for_posting) {
    expect_none([&] {
        for (int i = 0; i < many; ++i) context->post(sized_closure<32>(count));
        for (int i = 0; i < many; ++i) context->post(sized_closure<200>(count));
    });
    EXPECT_EQ(count, 25U * 2 * many);
}

task<> sleep_briefly(std::uint64_t& count) {
    co_await sleep_for(1ms);
    ++count;
}

TEST_P(runtime_allocations, are_none_for_spawning_small_tasks) {
    expect_none([&] {
        for (int i = 0; i < many; ++i) spawn_detached(*context, sleep_briefly(count));
    });
    EXPECT_EQ(count, 25U * many);
}

task<> await_others(io_context& context, std::uint64_t& count) {
    auto joined = spawn(context, sleep_briefly(count));
    co_await joined;
    co_await sleep_briefly(count);
}

TEST_P(runtime_allocations, are_none_for_tasks_that_await_and_join) {
    expect_none([&] {
        for (int i = 0; i < many; ++i) spawn_detached(*context, await_others(*context, count));
    });
    EXPECT_EQ(count, 25U * 2 * many);
}

INSTANTIATE_TEST_SUITE_P(everywhere, runtime_allocations, ::testing::Values(place::loop, place::outside),
                         [](const auto& made) { return made.param == place::loop ? "in_the_loop" : "from_outside"; });

// --- Tasks that stay.

task<> sleep_on(std::uint64_t& count, const bool& is_over) {
    while (!is_over) {
        co_await sleep_for(100us);
        ++count;
    }
}

task<> sleep_watched(std::uint64_t& count, const bool& is_over, cancel_token token) {
    while (!is_over) {
        co_await sleep_for(100us, token);
        co_await yield();
        ++count;
    }
}

TEST(runtime_allocations_of_sleeps, are_none) {
    testing::virtual_context context;
    std::uint64_t count = 0;
    bool is_over = false;
    for (int i = 0; i < many; ++i) spawn_detached(*context, sleep_on(count, is_over));
    expect_no_allocation([&] { context.advance(5ms); });
    EXPECT_GE(count, 25U * 40 * many);
    is_over = true;
    context.run();
    check_ledger_at_rest(*context);
}

TEST(runtime_allocations_of_sleeps, are_none_with_a_token) {
    testing::virtual_context context;
    std::uint64_t count = 0;
    bool is_over = false;
    cancel_source source;
    for (int i = 0; i < many; ++i) spawn_detached(*context, sleep_watched(count, is_over, source.token()));
    expect_no_allocation([&] { context.advance(5ms); });
    EXPECT_GE(count, 25U * 40 * many);
    is_over = true;
    source.request_cancel();
    context.run();
    check_ledger_at_rest(*context);
}

// --- Two threads.

TEST(runtime_allocations_between_threads, are_none_after_warm_up) {
    const watchdog guard("two threads");
    io_context context;
    timers& all = context.timers();
    loop_thread loop(context);
    std::atomic<std::uint64_t> ran{0};
    std::array<timer_handle, many> handles;
    std::uint64_t expected = 0;
    const auto note = [&ran] { ran.fetch_add(1, std::memory_order_release); };
    const auto work = [&] {
        for (int i = 0; i < many; ++i) all.after(i * 1us, note);
        for (int i = 0; i < many; ++i) context.post(note);
        expected += 2 * many;
        for (timer_handle& each : handles)
            each = all.after(1h, [note, padding = std::array<char, 100>{}] {
                static_cast<void>(padding);
                note();
            });
        for (const timer_handle each : handles) EXPECT_TRUE(all.postpone(each, 2h));
        for (const timer_handle each : handles) EXPECT_TRUE(all.postpone(each, 30min));
        for (const timer_handle each : handles) EXPECT_EQ(all.cancel(each), cancel_result::cancelled);
        await_that([&] { return ran.load(std::memory_order_acquire) == expected; });
    };
    // As long as it takes until as many stale tickets are about as may be.
    for (int round = 0; round < 100; ++round) work();
    // How much is pending at once depends on how the threads take turns, so there may be more than ever once more; but not
    // again and again.
    std::uint64_t allocated = allocations_of(work);
    for (int attempt = 0; attempt < 10 && allocated != 0; ++attempt) allocated = allocations_of(work);
    EXPECT_EQ(allocated, 0U);
    loop.finish();
    check_ledger_at_rest(context);
}

}  // namespace
}  // namespace chime::test
