// SPDX-License-Identifier: MIT
#include "shim/engine/explore.hpp"
#include "shim/small_crew.hpp"

#include <gtest/gtest.h>

#include <chrono>

// A worker leaves, and others want something of it, or of what it has: nothing is lost, nothing fires twice, late or out of
// order, and whoever was to be called is.

namespace {

using namespace chime;
using namespace std::chrono_literals;
using shim::require;
using shim::thread;
using test::crew_threads;
using test::gate;
using test::small_crew;

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

}  // namespace
