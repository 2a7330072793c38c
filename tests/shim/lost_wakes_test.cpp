// SPDX-License-Identifier: MIT
#include "shim/engine/explore.hpp"
#include "shim/small_crew.hpp"
#include "shim/small_loops.hpp"

#include <chime/io_context.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

// A wake-up that does not arrive. Whoever sends one marks the sleeper as awake before, so whoever comes next relies on it,
// and sends none. What is left is the deadline that the sleeper has given to the kernel, of its own next timer, and any
// signal: then it looks at everything, and nothing is lost. A worker that sleeps without a deadline has only the signal.

namespace {

using namespace chime;
using namespace std::chrono_literals;
using shim::require;
using shim::require_equal;
using shim::tally;
using shim::thread;
using test::account;
using test::callback_at;
using test::crew_threads;
using test::exact_callback;
using test::small_crew;
using test::small_loop;

/// It was on time, or the wake-up was lost and it is as late as the next deadline.
void require_on_time_or_at(time_point ran, time_point due, bool was_lost, time_point next_deadline) {
    require(ran == due || (was_lost && ran == next_deadline),
            "late only if a wake-up was lost, until the next deadline");
}

/// True: the wake-up was lost. If not, the loop was awake for no reason when it was sent.
bool lose_wake_of_loop() {
    small_loop loop;
    account first;
    account second;
    account next;
    bool was_lost = false;
    const time_point began = shim::now();
    loop->timers().at(began + 10ms, exact_callback(next, began + 10ms));
    thread driver([&] { loop->run(); }, "loop");
    shim::sleep_until(began + 1ms);  // Then the loop sleeps.
    {
        const shim::lost_wake fault;
        loop->timers().at(began + 5ms, callback_at(first, {began + 5ms, began + 10ms}));
        was_lost = fault.has_happened();
    }
    loop->timers().at(began + 4ms, callback_at(second, {began + 4ms, began + 10ms}));
    driver.join();
    next.require_ended(1, 1);
    first.require_ended(1, 1);
    second.require_ended(1, 1);
    require_on_time_or_at(first.last_run(), began + 5ms, was_lost, began + 10ms);
    require_on_time_or_at(second.last_run(), began + 4ms, was_lost, began + 10ms);
    require(loop->is_out_of_work(), "it is out of work in the end");
    test::require_ledger_of_late(loop->timers().stats());
    return was_lost;
}

CHIME_SCENARIO(lost_wake, of_a_loop_delays_all_that_comes_to_its_next_deadline_and_no_longer, .share = 2) {
    static_cast<void>(lose_wake_of_loop());
}

/// With a descriptor there are two ways to be woken; the timer is left when the event is lost.
bool lose_event_of_loop() {
    small_loop loop;
    account first;
    account next;
    bool was_lost = false;
    const time_point began = shim::now();
    loop->timers().at(began + 10ms, exact_callback(next, began + 10ms));
    const int descriptor = loop->poll_fd();
    thread foreign(
        [&] {
            loop->poll();
            while (!loop->is_out_of_work()) {
                shim::wait_readable(descriptor);
                loop->poll();
            }
        },
        "foreign");
    shim::sleep_until(began + 1ms);
    {
        const shim::lost_wake fault;
        loop->timers().at(began + 5ms, callback_at(first, {began + 5ms, began + 10ms}));
        was_lost = fault.has_happened();
    }
    foreign.join();
    next.require_ended(1, 1);
    first.require_ended(1, 1);
    require_on_time_or_at(first.last_run(), began + 5ms, was_lost, began + 10ms);
    test::require_ledger_of_late(loop->timers().stats());
    return was_lost;
}

CHIME_SCENARIO(lost_wake, of_a_loop_that_is_polled_delays_what_comes_to_its_next_deadline_and_no_longer, .share = 2) {
    static_cast<void>(lose_event_of_loop());
}

/// Who was called does not hear it, and nobody else is called. Whoever wakes up for his own timer looks for work, too.
bool lose_call_of_crew() {
    small_crew both(2, 2);
    bool was_lost = false;
    time_point ran;
    const time_point began = shim::now();
    both.arm(began + 10ms, [&both] { both.note_end(); });
    const auto run = [](small_crew& on, time_point& when) -> task<> {
        when = shim::now();
        on.note_end();
        co_return;
    };
    crew_threads workers(both, {&small_crew::drive, &small_crew::drive});
    shim::sleep_until(began + 1ms);
    {
        const shim::lost_wake fault;
        both.spawn(run(both, ran));
        was_lost = fault.has_happened();
    }
    shim::sleep_until(began + 11ms);
    // Who has no timer and was not woken when he was called is not woken to leave, either.
    shim::interrupt_all();
    workers.finish();
    require_on_time_or_at(ran, began + 1ms, was_lost, began + 10ms);
    return was_lost;
}

CHIME_SCENARIO(lost_wake, of_a_worker_delays_what_it_was_called_for_to_the_next_deadline_of_anybody, .share = 4) {
    static_cast<void>(lose_call_of_crew());
}

/// Nothing is pending, so there is no deadline.
bool lose_only_wake_of_loop() {
    small_loop loop;
    tally ran;
    bool was_lost = false;
    const time_point began = shim::now();
    std::optional<io_context::work_guard> guard(*loop);
    thread driver([&] { loop->run(); }, "loop");
    shim::sleep_until(began + 1ms);
    {
        const shim::lost_wake fault;
        loop->post([&ran] { ran.add(); });
        was_lost = fault.has_happened();
    }
    guard.reset();
    shim::sleep_until(began + 2ms);
    shim::interrupt_all();
    driver.join();
    require_equal(static_cast<std::uint64_t>(ran.count()), 1, "posted functions");
    loop.require_rest();
    return was_lost;
}

CHIME_SCENARIO(lost_wake, of_a_loop_without_a_deadline_is_made_up_for_by_the_next_signal, .share = 2) {
    static_cast<void>(lose_only_wake_of_loop());
}

/// If nothing unusual happens, all of them sleep when they should be woken.
TEST(lost_wake, really_is_lost_in_each_of_the_scenarios) {
    for (bool (*const body)() : {lose_wake_of_loop, lose_event_of_loop, lose_call_of_crew, lose_only_wake_of_loop}) {
        bool was_lost = false;
        shim::replay nothing_unusual({});
        const shim::outcome ended = shim::execution::run([&] { was_lost = body(); }, nothing_unusual, {});
        EXPECT_FALSE(ended.has_failed) << ended.message;
        EXPECT_TRUE(was_lost);
    }
}

}  // namespace
