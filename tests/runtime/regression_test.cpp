// SPDX-License-Identifier: MIT
//
// Fairness, durations and ownership: bugs that other runtimes of this kind have had. Each keeps its number and its sentence.
#include "runtime/small_tasks.hpp"
#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/random.hpp"

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/testing.hpp>
#include <chime/timer_cell.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

// --- Fairness.

/// Arms itself again with no delay, for as long as it may.
struct zero_delay_loop {
    void operator()() const {
        ++*rounds;
        if (!*may_end) context->timers().after(0ns, *this);
    }
    io_context* context;
    std::uint64_t* rounds;
    bool* may_end;
};

task<> yield_until(const bool& is_over, std::uint64_t& rounds) {
    while (!is_over) {
        ++rounds;
        co_await yield();
    }
}

TEST(regression, b24_a_timer_that_arms_itself_with_no_delay_leaves_room_for_the_others) {
    const watchdog guard("zero delay");
    io_context context;
    std::uint64_t rounds = 0;
    std::uint64_t yields = 0;
    bool is_over = false;
    bool was_posted = false;
    context.timers().after(0ns, zero_delay_loop{&context, &rounds, &is_over});
    spawn_detached(context, yield_until(is_over, yields));
    context.post([&] { was_posted = true; });
    context.timers().after(20ms, [&] { is_over = true; });
    context.run();
    EXPECT_TRUE(was_posted);
    EXPECT_GT(rounds, 1U);
    EXPECT_GT(yields, 1U);
    check_ledger_at_rest(context);
}

TEST(regression, b24_poll_ends_although_a_timer_arms_itself_with_no_delay) {
    testing::virtual_context context;
    std::uint64_t rounds = 0;
    bool is_over = false;
    context->timers().after(0ns, zero_delay_loop{&context.context(), &rounds, &is_over});
    for (std::uint64_t i = 1; i <= 10; ++i) {
        EXPECT_EQ(context->poll(), 1U);
        EXPECT_EQ(rounds, i) << "a turn fires what was armed before it";
    }
    is_over = true;
    context.run();
    check_ledger_at_rest(*context);
}

task<> sleep_nothing_until(const bool& is_over, std::uint64_t& rounds) {
    while (!is_over) {
        ++rounds;
        co_await sleep_for(0ns);
    }
}

TEST(regression, b34_sleeps_of_no_length_do_not_starve_queued_work) {
    for (const bool resumes_inline : {true, false}) {
        testing::virtual_context context({.timer_budget = 4, .task_budget = 4, .inline_resumption = resumes_inline});
        bool is_over = false;
        std::uint64_t sleeps = 0;
        std::uint64_t yields = 0;
        std::uint64_t posted = 0;
        for (int i = 0; i < 20; ++i) spawn_detached(*context, sleep_nothing_until(is_over, sleeps));
        for (int i = 0; i < 20; ++i) spawn_detached(*context, yield_until(is_over, yields));
        for (int i = 0; i < 20; ++i) context->post([&] { ++posted; });
        context->timers().after(0ns, [&] { ++posted; });
        for (int i = 0; i < 200; ++i) context->run_one();
        for (int i = 0; i < 50; ++i) context->poll();
        EXPECT_EQ(posted, 21U);
        EXPECT_GT(sleeps, 20U * 20);
        EXPECT_GT(yields, 20U * 20);
        is_over = true;
        context.run();
        check_ledger_at_rest(*context);
    }
}

// --- Durations.

TEST(regression, b32_fractions_of_a_nanosecond_are_rounded_up) {
    testing::virtual_context context;
    std::vector<std::int64_t> fired_ns;
    const auto note = [&] { fired_ns.push_back(context.now().time_since_epoch().count()); };
    using picoseconds = std::chrono::duration<std::int64_t, std::pico>;
    context->timers().after(picoseconds{1}, note);
    context->timers().after(picoseconds{1'001}, note);
    context->timers().after(std::chrono::duration<double, std::milli>{0.99}, note);
    context->timers().after(std::chrono::duration<double>{0.1}, note);
    context.run();
    EXPECT_EQ(fired_ns, (std::vector<std::int64_t>{1, 2, 990'000, 100'000'001}));
    check_ledger_at_rest(*context);
}

TEST(regression, b32_nothing_fires_before_its_deadline_wherever_the_tick_ends) {
    for (const auto resolution : {1ns, 1'000ns, 262'144ns, 1'000'000ns}) {
        testing::virtual_context context({.resolution = resolution});
        random_source random(process_seed());
        std::uint64_t early = 0;
        std::uint64_t fired = 0;
        for (int i = 0; i < 500; ++i) {
            const time_point deadline = context.now() + std::chrono::nanoseconds{random.below(5'000'000)};
            context->timers().at(deadline, [&context, &early, &fired, deadline] {
                early += context.now() < deadline ? 1U : 0U;
                ++fired;
            });
        }
        // One nanosecond before a tick ends, on it, and after it.
        while (fired != 500) context.advance(std::chrono::nanoseconds{random.below(3'000)});
        EXPECT_EQ(early, 0U) << replay_hint();
        check_ledger_at_rest(*context);
    }
}

TEST(regression, b33_no_time_and_less_than_none_are_due_now_and_not_never) {
    testing::virtual_context context;
    context.advance(1h);
    int fired = 0;
    timers& all = context->timers();
    all.after(0ns, [&] { ++fired; });
    all.after(-1ns, [&] { ++fired; });
    all.after(std::chrono::hours::min(), [&] { ++fired; });
    all.after(std::chrono::duration<double>{-0.0}, [&] { ++fired; });
    all.after(-std::chrono::duration<double>{1e300}, [&] { ++fired; });
    all.at(time_point::min(), [&] { ++fired; });
    all.at(time_point{}, [&] { ++fired; });
    const timer_handle far = all.after(std::chrono::hours::max(), [&] { ++fired; });
    EXPECT_EQ(context.settle(), 7U);
    EXPECT_EQ(fired, 7);
    EXPECT_TRUE(all.postpone(far, -1h));
    context.settle();
    EXPECT_EQ(fired, 8);
    EXPECT_THROW(all.every(0ns, missed_ticks::skip, [] {}), std::system_error);
    check_ledger_at_rest(*context);
}

// --- Ownership, as the compiler sees it.

template <class T>
inline constexpr bool is_plain_data =
    std::is_trivially_copyable_v<T>&& std::is_trivially_destructible_v<T>&& std::is_standard_layout_v<T>;
template <class T>
inline constexpr bool is_only_moved = std::is_nothrow_move_constructible_v<T> && !std::is_copy_constructible_v<T>;

TEST(regression, b35_handles_own_nothing_and_owners_are_only_moved) {
    static_assert(is_plain_data<timer_handle>);
    static_assert(is_only_moved<scoped_timer>);
    static_assert(is_only_moved<io_context::work_guard>);
    static_assert(is_only_moved<testing::virtual_clock::hold>);
    static_assert(is_only_moved<join_handle<int>>);
    static_assert(is_only_moved<task<int>>);
    static_assert(!std::is_copy_constructible_v<timer_delay>);
    testing::virtual_context context;
    int fired = 0;
    context->timers().after(1ms, [&] { ++fired; });  // The handle goes at once, and that means nothing.
    {
        const scoped_timer owner(context->timers(), context->timers().after(1ms, [&] { ++fired; }));
    }
    static_cast<void>(scoped_timer(context->timers(), context->timers().after(1ms, [&] { ++fired; })));
    std::vector<wake_reason> reasons;
    static_cast<void>(spawn(*context, sleep_and_note({}, reasons)));  // Dropping it detaches.
    context.run();
    EXPECT_EQ(fired, 1);
    EXPECT_EQ(reasons, std::vector{wake_reason::elapsed});
    check_ledger_at_rest(*context);
}

// --- Statistics.

TEST(regression, a_timer_that_another_thread_cancels_while_it_is_due_leaves_no_absurd_number_of_stale_tickets) {
    testing::virtual_context context;
    timers& timers = context->timers();
    const time_point deadline = timers.now() + 5ms;
    timer_handle cancelled;
    std::vector<std::uint64_t> seen;
    const auto look = [&] { seen.push_back(timers.stats().stale_tickets); };
    timers.at(deadline, [&] {
        std::thread([&] { EXPECT_EQ(timers.cancel(cancelled), cancel_result::cancelled); }).join();
        context->post([&] {
            look();
            context->post([&] { look(); });
        });
    });
    cancelled = timers.at(deadline, [] { FAIL() << "it was cancelled"; });
    timers.at(deadline, [&] { look(); });
    timers.at(deadline + 5ms, [&] { look(); });
    context.run();
    EXPECT_EQ(seen.size(), 4U);
    for (const std::uint64_t stale : seen) EXPECT_LE(stale, 4U);
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
