// SPDX-License-Identifier: MIT
//
// What is armed or postponed by a delay gets its deadline when the user's code returns; until then there is only a note of it,
// which knows a timer by the last bits of its life. Here the code that has left a note goes on for so long that others use the
// same record, or the same task waits, until these bits are the same again.

#include "runtime/small_tasks.hpp"
#include "runtime/watchdog.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/timer_cell.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t lives_that_a_note_tells_apart = std::uint64_t{1} << 21U;

bool look_the_same_in_a_note(timer_handle left, timer_handle right) {
    return left.index == right.index && (left.timer_id() - right.timer_id()) % lives_that_a_note_tells_apart == 0;
}

/// Runs it as a callback of that worker.
template <class F>
void run_on(runtime& home, unsigned worker, F function) {
    bool is_there = false;
    while (!is_there) {
        std::thread([&] {
            const timer_handle armed = home.timers().after(50ms, function);
            is_there = armed.worker_hint() == worker;
            if (!is_there) home.timers().cancel(armed);
        }).join();
    }
}

/// One worker arms a timer for `noted` and cancels it, gives its record away and does not return yet. The other one gets that
/// record and uses it until a note cannot tell the two apart. Answers how long its last timer, for `wanted`, takes to fire; zero
/// if it did not within ten seconds more.
std::chrono::nanoseconds time_of_a_timer_with_a_note_of_another(duration noted, duration wanted) {
    std::atomic<bool> is_given_away{false};
    std::atomic<bool> is_armed{false};
    std::atomic<std::int64_t> took_ns{0};
    timer_handle first;
    time_point armed_at;
    runtime home({.workers = 2});
    timers& timers = home.timers();
    run_on(home, 0, [&] {
        std::vector<timer_handle> many;
        for (int count = 0; count < 300; ++count) many.push_back(timers.after(1h, [] {}));
        first = timers.after(noted, [] {});
        timers.cancel(first);
        for (const timer_handle each : many) timers.cancel(each);  // More than anybody keeps for himself.
        is_given_away = true;
        await_that([&] { return is_armed.load(); });
    });
    run_on(home, 1, [&] {
        await_that([&] { return is_given_away.load(); });
        std::vector<timer_handle> others;
        timer_handle mine = timers.after(1h, [] {});
        while (mine.index != first.index && others.size() < 10'000) {
            others.push_back(mine);
            mine = timers.after(1h, [] {});
        }
        EXPECT_EQ(mine.index, first.index) << "the record was not given away: this test does not test anything";
        if (mine.index == first.index) {
            while (!look_the_same_in_a_note(mine, first)) {
                timers.cancel(mine);
                mine = timers.after(wanted, [&] { took_ns = (chime::clock::now() - armed_at).count(); });
            }
        }
        for (const timer_handle each : others) timers.cancel(each);
        armed_at = chime::clock::now();
        timers.after(0ms, [&] { is_armed = true; });  // When it has its deadline.
    });
    await_that([&] { return is_armed.load(); });
    const time_point end = chime::clock::now() + wanted + 10s;
    while (took_ns == 0 && chime::clock::now() < end) std::this_thread::sleep_for(1ms);
    home.shutdown();
    return std::chrono::nanoseconds(took_ns.load());
}

TEST(notes, a_timer_fires_though_there_is_a_note_of_another_one_in_its_record) {
    const watchdog guard("a note of a later timer", 60s);
    EXPECT_NE(time_of_a_timer_with_a_note_of_another(1h, 100ms), 0ns);
}

TEST(notes, a_timer_is_not_early_because_there_is_a_note_of_another_one_in_its_record) {
    const watchdog guard("a note of an earlier timer", 60s);
    EXPECT_GE(time_of_a_timer_with_a_note_of_another(1ms, 400ms), 400ms);
}

/// Waits in a cell of the user's, so that it has a name.
struct named_wait {
    timer_cell& cell;
    duration delay;
    timer_handle& name;
    std::atomic<bool>& is_named;

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> frame) {
        name = cell.prepare(frame, delay);
        is_named = true;
        return cell.commit();
    }
    void await_resume() const noexcept {}
};

struct two_waits {
    timer_handle first;
    timer_handle second;
    std::atomic<bool> first_is_named{false};
    std::atomic<bool> second_is_named{false};
    std::atomic<bool> is_over{false};
    chime::duration second_took{};
};

/// Between the two, as many others as make them look the same.
task<> wait_twice(two_waits& waits, duration wanted) {
    timer_cell cell;
    named_wait first{cell, 1h, waits.first, waits.first_is_named};
    co_await first;
    for (std::uint64_t count = 1; count < lives_that_a_note_tells_apart; ++count) co_await yield();
    const time_point begin = chime::clock::now();
    named_wait second{cell, wanted, waits.second, waits.second_is_named};
    co_await second;
    waits.second_took = chime::clock::now() - begin;
    waits.is_over = true;
}

/// One worker postpones a task's sleep to `noted` and cancels it, and does not return before the task sleeps again, on another
/// one. Answers how long it sleeps; zero if it has not woken up after ten seconds more.
duration time_of_a_sleep_with_a_note_of_another(duration noted, duration wanted) {
    two_waits waits;
    runtime home({.workers = 2});
    spawn_detached(home, wait_twice(waits, wanted));
    await_that([&] { return waits.first_is_named.load(); });
    std::this_thread::sleep_for(20ms);
    run_on(home, waits.first.worker_hint(), [&] {
        EXPECT_TRUE(home.timers().postpone(waits.first, noted));
        EXPECT_EQ(home.timers().cancel(waits.first), cancel_result::cancelled);
        await_that([&] { return waits.second_is_named.load(); });
        std::this_thread::sleep_for(20ms);  // It is asleep.
    });
    await_that([&] { return waits.second_is_named.load(); });
    EXPECT_TRUE(look_the_same_in_a_note(waits.first, waits.second)) << "this test does not test anything";
    const time_point end = chime::clock::now() + wanted + 10s;
    while (!waits.is_over && chime::clock::now() < end) std::this_thread::sleep_for(1ms);
    const bool is_over = waits.is_over;
    home.shutdown();
    return is_over ? waits.second_took : duration::zero();
}

TEST(notes, a_sleep_ends_though_an_earlier_one_of_the_same_task_was_postponed_by_who_has_not_returned) {
    const watchdog guard("a note of a longer sleep", 60s);
    EXPECT_NE(time_of_a_sleep_with_a_note_of_another(1h, 100ms), 0ns);
}

TEST(notes, a_sleep_is_not_short_because_an_earlier_one_of_the_same_task_was_postponed) {
    const watchdog guard("a note of a shorter sleep", 60s);
    EXPECT_GE(time_of_a_sleep_with_a_note_of_another(1ms, 400ms), 400ms);
}

}  // namespace
}  // namespace chime::test
