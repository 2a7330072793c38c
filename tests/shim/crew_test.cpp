// SPDX-License-Identifier: MIT
#include "shim/engine/explore.hpp"
#include "shim/small_crew.hpp"
#include "shim/small_loops.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <new>
#include <system_error>

// Who sleeps, who looks for work and who is called for it, with as few steps around it as can be. What cannot go on until
// somebody else has had his turn keeps its worker: so a call that gets lost is a worker that sleeps for ever.

namespace {

using namespace chime;
using namespace std::chrono_literals;
using shim::require;
using shim::thread;
using test::account;
using test::crew_threads;
using test::gate;
using test::small_crew;

/// One task cannot end before the other one has run. Both come from outside, so there is somebody to be called for each.
CHIME_SCENARIO(crew, calls_somebody_for_what_comes_while_the_last_who_looked_is_busy, .share = 4) {
    small_crew both(2, 2);
    gate between;
    crew_threads workers(both, {&small_crew::drive, &small_crew::drive});
    thread other([&] { both.spawn(open(both, between)); }, "other");
    both.spawn(pass(both, between));
    other.join();
    workers.finish();
}

/// The same, from one thread: whoever runs the first leaves the second to somebody else.
CHIME_SCENARIO(crew, calls_somebody_for_the_second_of_two_when_the_first_keeps_its_worker, .share = 4) {
    small_crew both(2, 2);
    gate between;
    crew_threads workers(both, {&small_crew::drive, &small_crew::drive});
    both.spawn(pass(both, between));
    both.spawn(open(both, between));
    workers.finish();
}

task<> spawn_and_pass(small_crew& on, gate& between) {
    on.spawn(open(on, between));
    between.pass();
    on.note_end();
    co_return;
}

/// What is in the ring of a worker that is busy is for others to take.
CHIME_SCENARIO(crew, calls_somebody_for_what_a_busy_worker_has_put_into_its_ring, .share = 4) {
    small_crew both(2, 2);
    gate between;
    both.settle(1);
    both.spawn(spawn_and_pass(both, between));
    crew_threads workers(both, {&small_crew::drive, &small_crew::park_and_drive});
    workers.finish();
}

/// One wakes up by itself, for its timer, and is taken for one that sleeps: it hears the call, or somebody else is called.
CHIME_SCENARIO(crew, leaves_no_call_with_who_wakes_up_by_himself, .share = 4) {
    small_crew both(2, 3);
    gate between;
    const time_point due = shim::now() + 1ms;
    both.arm(due, [&both] { both.note_end(); });
    crew_threads workers(both, {&small_crew::drive, &small_crew::drive});
    thread other(
        [&] {
            shim::sleep_until(due);
            both.spawn(open(both, between));
        },
        "other");
    shim::sleep_until(due);
    both.spawn(pass(both, between));
    other.join();
    workers.finish();
}

/// One wakes up by itself when it is called already, and takes what keeps it: if it did not hear the call, nobody would be
/// called any more.
CHIME_SCENARIO(crew, hears_the_call_that_was_made_before_it_woke_up_by_itself, .share = 4) {
    small_crew both(2, 2);
    gate between;
    both.settle(1);
    both.lay_down(0);
    crew_threads workers(both, {&small_crew::wake_up_and_drive, &small_crew::park_and_drive});
    both.spawn(pass(both, between));
    both.spawn(open(both, between));
    workers.finish();
}

/// One looks for work, finds none, and is busy with a timer; somebody else has work while it looks.
CHIME_SCENARIO(crew, calls_somebody_when_who_looked_for_work_is_busy_with_a_timer, .share = 4) {
    small_crew both(2, 2);
    gate between;
    const time_point due = shim::now() + 1ms;
    both.arm(due, [&both, &between] {
        between.pass();
        both.note_end();
    });
    both.lay_down(0);
    both.lay_down(1);
    crew_threads workers(both, {&small_crew::wake_up_and_drive, &small_crew::wake_up_and_drive});
    shim::sleep_until(due);
    both.spawn(open(both, between));
    workers.finish();
}

task<> wait_and_pass(small_crew& of, detail::completion& awaited, const gate& before) {
    detail::completion_awaiter waiting(awaited);
    co_await waiting;
    before.pass();
    of.note_end();
}

/// One wakes up by itself and is taken for one that sleeps; the other goes to sleep when nobody looks at it any more. Two
/// have work, and the second leaves it to the first to call. They have nothing else to do with each other, so that one
/// learns of the other what it has to and no more.
CHIME_SCENARIO(crew, calls_somebody_for_the_second_of_two_who_call_at_once, .share = 2) {
    small_crew both(2, 2);
    gate between;
    detail::completion first;
    both.settle(1);
    both.spawn(wait_and_pass(both, first, between));
    both.lay_down(0);
    crew_threads workers(both, {&small_crew::wake_up_and_drive, &small_crew::park_and_drive});
    thread other([&] { both.spawn(open(both, between)); }, "other");
    first.complete();
    other.join();
    workers.finish();
}

/// Somebody joins who has work at once, while the only other one goes to sleep: that one sees who has come and what he has,
/// or is seen to sleep, and called. They have nothing to do with each other before, so that one who sees too few seats has
/// learnt nothing of them.
CHIME_SCENARIO(crew, goes_to_sleep_only_after_a_look_at_who_has_just_joined, .share = 2) {
    test::take_an_odd_number();
    small_crew growing(1, 2);
    gate between;
    growing.settle(0);
    crew_threads workers(growing, {&small_crew::park_and_drive});
    require(growing->add_worker() == &growing->at(1), "there is a seat");
    growing.arm(shim::now(), [&growing, &between] {
        growing.spawn(open(growing, between));
        between.pass();
        growing.note_end();
    });
    growing.drive(1);
    workers.finish();
}

/// Three are there, and three tasks that go on only together.
CHIME_SCENARIO(crew, of_three_runs_three_that_wait_for_each_other, .share = 4) {
    small_crew three(3, 3);
    gate first;
    gate second;
    const auto middle = [](small_crew& on, gate& before, gate& after) -> task<> {
        before.pass();
        after.open();
        on.note_end();
        co_return;
    };
    crew_threads workers(three, {&small_crew::drive, &small_crew::drive, &small_crew::drive});
    three.spawn(pass(three, second));
    three.spawn(middle(three, first, second));
    three.spawn(open(three, first));
    workers.finish();
}

// --- Free records.

/// The only record is on its way back to a worker that nobody drives yet. Whoever needs it fetches it from there, or is
/// refused because somebody else is about to.
CHIME_SCENARIO(crew, is_tidied_up_by_one_of_those_who_need_a_record_and_who_begins_to_drive, .share = 2) {
    detail::worker_settings settings = small_crew::small();
    settings.max_timers = 1;
    small_crew one(1, 1, settings);
    const timer_handle far = one.arm(shim::now() + 1h, [] {});
    require(one->cancel(far) == cancel_result::cancelled, "it is pending");
    const auto need = [&one] {
        const detail::arming begun = one->begin_arming();
        if (begun.closure != nullptr) one->abandon_arming(begun);
    };
    thread zero([&] { one.drive(0); }, "zero");
    thread other(need, "other");
    need();
    other.join();
    one.note_end();
    zero.join();
    one.require_rest();
}

// --- The end.

/// Somebody has cancelled a timer, and gives the record back when all that are there have gone to sleep.
CHIME_SCENARIO(crew, that_was_stopped_comes_to_rest_though_somebody_gives_back_late, .share = 2) {
    small_crew both(2, 1);
    const time_point began = shim::now();
    const timer_handle far = both.arm(began + 1h, [] {});
    both.settle(0);
    crew_threads workers(both, {&small_crew::drive_on, &small_crew::drive});
    thread other([&] { both->cancel(far); }, "other");
    both->stop_timers();
    other.join();
    // When all of them sleep; one that is awake for no reason looks as if there was something to do.
    for (int looks = 1; !both->is_at_rest(); ++looks) {
        require(looks < 100, "all is drained");
        shim::sleep_until(began + looks * 1ms);
    }
    both.note_end();
    workers.finish();
}

/// Whoever spawns while everything ends is refused, or what he has spawned is destroyed.
void end_while_somebody_spawns(bool is_stopped_before) {
    small_crew ending(1, 1);
    thread other([&] {
        try {
            ending.spawn(note_end(ending));
        } catch (const std::system_error&) {}
    });
    if (is_stopped_before) ending->stop_timers();
    ending->destroy_pending();
    other.join();
    shim::require_equal(ending->stats().tasks, 0, "tasks that were accepted and are left");
}

CHIME_SCENARIO(crew, that_was_stopped_and_ends_refuses_a_task_or_destroys_it, .is_small = true) {
    end_while_somebody_spawns(true);
}

CHIME_SCENARIO(crew, that_ends_refuses_a_task_or_destroys_it, .is_small = true) {
    end_while_somebody_spawns(false);
}

/// And whoever arms meanwhile is refused, or his closure is destroyed: by him, because he comes too late, or by who ends
/// it.
CHIME_SCENARIO(crew, that_ends_refuses_a_timer_or_destroys_its_closure_once, .is_small = true) {
    account its;
    std::uint64_t accepted = 0;
    {
        small_crew ending(1, 0);
        thread other([&] {
            const detail::arming begun = ending->begin_arming();
            if (begun.closure == nullptr) return;
            accepted = 1;
            using closure = decltype(test::any_callback(its));
            new (begun.closure) closure(test::any_callback(its));
            ending->arm(begun.index, detail::closure_in_place<closure>::operations,
                        detail::wait_limit::at(shim::now() + 1h));
        });
        ending->destroy_pending();
        other.join();
        require(its.destroyed() <= 1, "nobody destroys it for the second time");
    }  // Who ends the crew looks once more.
    its.require_ended(0, accepted);
}

}  // namespace
