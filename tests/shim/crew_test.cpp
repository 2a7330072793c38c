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

// --- Retiring.

/// Who leaves while it is called passes the call on, and all that it has.
CHIME_SCENARIO(crew, passes_on_the_call_of_one_who_retires, .share = 4) {
    small_crew three(3, 2);
    gate between;
    crew_threads workers(three, {&small_crew::drive, &small_crew::drive, &small_crew::drive});
    thread leaver([&] { three.tell_to_retire(0); }, "leaver");
    three.spawn(pass(three, between));
    three.spawn(open(three, between));
    leaver.join();
    workers.finish();
}

/// And whoever has the seat next was not called.
CHIME_SCENARIO(crew, does_not_take_the_call_of_one_who_has_left_for_that_of_the_next, .share = 4) {
    small_crew both(2, 2);
    gate between;
    both.settle(1);
    both.lay_down(0);
    crew_threads workers(both, {&small_crew::give_up_the_seat_and_drive, &small_crew::park_and_drive});
    both.spawn(pass(both, between));
    both.spawn(open(both, between));
    workers.finish();
}

/// Postponed while it moves, it may have moved on and say the same: it is fired once, by who has it, and by nobody else.
CHIME_SCENARIO(crew, fires_once_what_is_postponed_while_its_worker_retires, .share = 2) {
    small_crew both(2, 1);
    const time_point due = shim::now() + 2ms;
    const timer_handle which = both.arm(due, [&both, due] {
        require(shim::now() == due - 1ms, "it fires at its deadline");
        both.note_end();
    });
    both.settle(0);
    both.tell_to_retire(0);
    crew_threads workers(both, {&small_crew::drive_on, &small_crew::drive});
    require(both->postpone(which, detail::wait_limit::at(due - 1ms)), "it is pending");
    workers.finish();
    shim::require_equal(both->stats().migrated, 1, "times that it has moved");
}

/// It is given away, adopted, and says the same as before: whoever has looked at it meanwhile gives it back to who has it.
CHIME_SCENARIO(crew, gives_a_cancelled_timer_back_to_who_has_adopted_it, .share = 2) {
    small_crew both(2, 1);
    const timer_handle far = both.arm(shim::now() + 1h, [] {});
    both.settle(0);
    both.tell_to_retire(0);
    thread zero([&] { both.drive_on(0); }, "zero");
    thread one([&] { both.drive(1); }, "one");
    require(both->cancel(far) == cancel_result::cancelled, "it is pending");
    zero.join();
    both.note_end();
    one.join();
    both.require_rest();
}

/// A timer that was sent to who leaves is fired by who stays, in time.
CHIME_SCENARIO(crew, fires_in_time_what_was_sent_to_who_retires, .share = 4) {
    small_crew both(2, 2);
    const time_point due = shim::now() + 1ms;
    const auto fire = [&both, due] {
        require(shim::now() == due, "it fires at its deadline");
        both.note_end();
    };
    crew_threads workers(both, {&small_crew::drive, &small_crew::drive});
    both.arm(due, fire);
    thread leaver([&] { both.tell_to_retire(0); }, "leaver");
    both.arm(due, fire);
    leaver.join();
    workers.finish();
}

/// Two timers that one worker arms, and a third of another one, which is there until they have fired.
struct two_in_order {
    small_crew& on;
    timer_handle far;
    int fired = 0;

    void fire(int before) {
        require(fired++ == before, "they fire in their order");
        if (fired == 2) require(on->cancel(far) == cancel_result::cancelled, "it is pending");
        on.note_end();
    }
};

task<> arm_two(two_in_order& them, time_point first, time_point second) {
    them.on.arm(second, [&them] { them.fire(1); });
    them.on.arm(first, [&them] { them.fire(0); });
    co_return;
}

task<> arm_far(two_in_order& them, time_point deadline) {
    them.far = them.on.arm(deadline, [] {});
    co_return;
}

/// More than a worker with the smallest budget looks at in a turn.
task<> arm_and_cancel_many(small_crew& on, time_point past) {
    constexpr int many = 70;
    for (int count = 0; count < many; ++count) on->cancel(on.arm(past, [] {}));
    co_return;
}

/// Who adopts them has looked at a part only of what was armed there for the past.
CHIME_SCENARIO(crew, fires_in_order_what_comes_in_the_middle_of_an_advance, .share = 8) {
    detail::worker_settings settings = small_crew::small();
    settings.max_timers = 256;  // A free record for each of them.
    settings.fire_budget = 1;
    small_crew both(2, 2, settings);
    two_in_order them{both, {}};
    const time_point start = shim::now() + 10ms;
    shim::sleep_until(start);
    both.spawn(arm_two(them, start + 1us, start + 1ms));  // The first in the tick that the other worker is in.
    both.settle(0);
    both.spawn(arm_far(them, start + 1h));
    both.settle(1);
    both.turn(1);
    both.spawn(arm_and_cancel_many(both, start - 1ms));
    both.turn(1);
    shim::sleep_until(start + 2ms);
    both.tell_to_retire(0);
    crew_threads workers(both, {&small_crew::drive_on, &small_crew::drive_on});
    workers.finish();
}

/// They lie in one tick, the later one first, and are adopted while the first worker is still giving away.
CHIME_SCENARIO(crew, fires_in_order_what_is_given_away_one_after_the_other, .share = 8) {
    detail::worker_settings settings = small_crew::small();
    settings.max_timers = 256;  // More than one worker keeps for itself.
    small_crew both(2, 2, settings);
    two_in_order them{both, {}};
    const time_point start = shim::now() + 10ms;
    shim::sleep_until(start);
    both.spawn(arm_two(them, start + 1us, start + 2us));
    both.settle(0);
    both.spawn(arm_far(them, start + 1h));
    both.settle(1);
    shim::sleep_until(start + 2ms);
    both.tell_to_retire(0);
    crew_threads workers(both, {&small_crew::drive_on, &small_crew::drive_on});
    workers.finish();
}

/// Timers that are adopted one at a time, by one who leaves in the middle of it, and postponed meanwhile.
CHIME_SCENARIO(crew, fires_in_time_what_is_left_for_later_by_two_who_retire, .share = 4) {
    detail::worker_settings settings = small_crew::small();
    settings.adoption_budget = 1;
    small_crew three(3, 2, settings);
    const time_point due = shim::now() + 1ms;
    const auto fire = [&three, due] {
        require(shim::now() == due, "it fires at its deadline");
        three.note_end();
    };
    const timer_handle first = three.arm(due + 1h, fire);
    const timer_handle second = three.arm(due + 1h, fire);
    three.settle(0);
    three.settle(1);
    three.lay_down(2);
    three.tell_to_retire(0);
    three.tell_to_retire(1);
    crew_threads workers(three, {&small_crew::drive_on, &small_crew::drive_on, &small_crew::wake_up_and_drive});
    require(three->postpone(first, detail::wait_limit::at(due)), "it is pending");
    require(three->postpone(second, detail::wait_limit::at(due)), "it is pending");
    workers.finish();
}

/// Timers that one thread arms for the same time.
struct armed_in_order {
    small_crew& on;
    int fired = 0;

    void arm(time_point due, int rank) {
        on.arm(due, [this, rank] {
            require(fired++ == rank, "those that one thread has armed fire in their order");
            on.note_end();
        });
    }
};

/// The first ones were accepted by who leaves, and are left for later; the last is armed while he does.
CHIME_SCENARIO(crew, fires_in_order_what_was_accepted_by_who_retires_and_what_comes_then, .share = 2) {
    small_crew both(2, 4);
    armed_in_order them{both};
    const time_point due = shim::now() + 1h;
    for (int rank = 0; rank < 3; ++rank) them.arm(due, rank);
    both.settle(0);
    both.tell_to_retire(0);
    crew_threads workers(both, {&small_crew::drive_on, &small_crew::drive});
    them.arm(due, 3);
    workers.finish();
}

/// All of them are on their way while he leaves.
CHIME_SCENARIO(crew, fires_in_order_what_one_thread_arms_while_somebody_retires, .share = 4) {
    small_crew both(2, 3);
    armed_in_order them{both};
    const time_point due = shim::now() + 1h;
    both.settle(0);
    crew_threads workers(both, {&small_crew::drive_on, &small_crew::drive});
    thread leaver([&] { both.tell_to_retire(0); }, "leaver");
    for (int rank = 0; rank < 3; ++rank) them.arm(due, rank);
    leaver.join();
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
