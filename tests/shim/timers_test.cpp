// SPDX-License-Identifier: MIT
#include "base/atomic.hpp"
#include "base/futex.hpp"
#include "shim/engine/explore.hpp"
#include "shim/small_loops.hpp"

#include <chime/io_context.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <utility>

// One timer, and threads that cancel, postpone and wait for it while it fires. Time goes on only when nobody can run, so one
// that fires at any other time than its deadline was forgotten.

namespace {

using namespace chime;
using namespace std::chrono_literals;
using shim::require;
using shim::require_equal;
using shim::tally;
using shim::thread;
using test::account;
using test::exact_callback;
using test::slow_end;
using test::small_loop;

CHIME_SCENARIO(timer, is_cancelled_or_fires_when_both_come_at_once, .share = 2, .is_small = true, .stale_values = 0) {
    small_loop loop;
    account its;
    const time_point due = shim::now() + 1ms;
    const timer_handle which = loop->timers().at(due, exact_callback(its, due));
    thread driver([&] { loop->run(); }, "loop");
    cancel_result first = cancel_result::gone;
    thread other([&] {
        shim::sleep_until(due);
        first = loop->timers().cancel(which);
    });
    shim::sleep_until(due);
    const cancel_result second = loop->timers().cancel(which);
    other.join();
    driver.join();
    require(first != cancel_result::cancelled || second != cancel_result::cancelled, "only one can have cancelled it");
    const bool was_cancelled = first == cancel_result::cancelled || second == cancel_result::cancelled;
    its.require_ended(was_cancelled ? 0 : 1, 1);
    loop.require_rest();
}

CHIME_SCENARIO(timer, is_postponed_or_fires_when_both_come_at_once, .share = 2, .is_small = true, .stale_values = 0) {
    small_loop loop;
    account its;
    const time_point due = shim::now() + 1ms;
    const timer_handle which = loop->timers().at(due, test::callback_at(its, {due, due + 1ms}));
    thread driver([&] { loop->run(); }, "loop");
    shim::sleep_until(due);
    const bool did = loop->timers().postpone_until(which, due + 1ms);
    driver.join();
    require(its.last_run() == (did ? due + 1ms : due), "postponed, it fires then; otherwise it had fired");
    its.require_ended(1, 1);
    loop.require_rest();
}

/// The loop sleeps for something that comes between the two. Whoever links the record first counts on nobody; the other one
/// counts on him, and the loop that it has woken may have seen nothing yet.
CHIME_SCENARIO(timer, that_two_postpone_to_before_and_after_what_the_loop_sleeps_for_fires_at_the_last_word, .share = 2,
               .is_small = true, .stale_values = 0) {
    small_loop loop;
    account between;
    account its;
    const time_point began = shim::now();
    loop->timers().at(began + 3ms, exact_callback(between, began + 3ms));
    const timer_handle which = loop->timers().at(began + 10ms, test::callback_at(its, {began + 2ms, began + 8ms}));
    loop->poll();
    thread driver([&] { loop->run(); }, "loop");
    thread other([&] { require(loop->timers().postpone_until(which, began + 8ms), "it is pending"); });
    require(loop->timers().postpone_until(which, began + 2ms), "it is pending");
    other.join();
    driver.join();
    require(its.last_run() == began + 2ms || its.last_run() == began + 8ms, "one of the two has the last word");
    its.require_ended(1, 1);
    loop.require_rest();
}

CHIME_SCENARIO(timer, ends_once_whoever_cancels_and_postpones_it_and_whenever, .share = 4) {
    small_loop loop;
    account its;
    const time_point due = shim::now() + 1ms;
    const timer_handle which = loop->timers().at(due, test::callback_at(its, {due, due - 1us, due + 1ms}));
    thread driver([&] { loop->run(); }, "loop");
    bool earlier = false;
    bool later = false;
    cancel_result answer = cancel_result::gone;
    thread one([&] { earlier = loop->timers().postpone_until(which, due - 1us); });
    thread two([&] {
        shim::sleep_until(due - 1us);
        later = loop->timers().postpone_until(which, due + 1ms);
    });
    shim::sleep_until(due - 1us);
    answer = loop->timers().cancel(which);
    one.join();
    two.join();
    driver.join();
    require(earlier, "it was pending until then");
    its.require_ended(answer == cancel_result::cancelled ? 0 : 1, 1);
    if (answer != cancel_result::cancelled) {
        require(its.last_run() == (later ? due + 1ms : due - 1us), "the last word counts");
    }
    loop.require_rest();
}

/// One that is armed with a delay inside a callback gets its deadline a little later; meanwhile others have its handle.
CHIME_SCENARIO(timer, that_has_no_deadline_yet_is_postponed_by_another_thread, .is_small = true, .stale_values = 0) {
    small_loop loop;
    account its;
    const time_point began = shim::now();
    base::futex_word is_armed{0};
    timer_handle made;  // Plain: published by the word.
    loop->timers().at(began, [&] {
        made = loop->timers().after(1h, test::callback_at(its, {began + 1h, began + 5ms}));
        is_armed.store(1, base::memory_order_release);
        base::futex_wake_one(is_armed);
    });
    thread driver([&] { loop->run(); }, "loop");
    while (is_armed.load(base::memory_order_acquire) == 0) static_cast<void>(base::futex_wait(is_armed, 0));
    require(loop->timers().postpone_until(made, began + 5ms), "it is pending");
    driver.join();
    require(its.last_run() == began + 5ms, "the last word counts");
    its.require_ended(1, 1);
    loop.require_rest();
}

/// Whoever postpones a timer that fires, and whose record the next one gets, does not postpone that one.
CHIME_SCENARIO(timer, that_has_fired_lends_its_record_to_one_that_is_not_postponed_in_its_place, .is_small = true,
               .stale_values = 0) {
    small_loop loop;
    account first;
    account second;
    const time_point due = shim::now() + 1ms;
    const timer_handle old = loop->timers().at(due, test::callback_at(first, {due, due + 1h}));
    loop->timers().at(due, [&] { loop->timers().at(due + 1ms, exact_callback(second, due + 1ms)); });
    thread driver([&] { loop->run(); }, "loop");
    shim::sleep_until(due);
    const bool did = loop->timers().postpone_until(old, due + 1h);
    driver.join();
    require(first.last_run() == (did ? due + 1h : due), "the last word counts");
    first.require_ended(1, 1);
    second.require_ended(1, 1);
    loop.require_rest();
}

CHIME_SCENARIO(timer, whose_closure_another_thread_destroys_is_waited_for, .share = 2) {
    small_loop loop;
    const time_point due = shim::now() + 1ms;
    int shared = 0;  // Plain: whoever has waited may use it.
    const timer_handle which = loop->timers().at(due, slow_end(shared));
    thread driver([&] { loop->run(); }, "loop");
    thread other([&] {
        shim::sleep_until(due);
        loop->timers().cancel(which);
    });
    shim::sleep_until(due);
    loop->timers().cancel_and_wait(which);
    require(shared == 2, "nothing of it is left");
    shared = 7;
    other.join();
    driver.join();
    loop.require_rest();
}

/// `arm` arms a far timer with the closure that it is given.
template <class Arm>
void cancel_on_the_loop_and_wait_elsewhere(Arm&& arm) {
    small_loop loop;
    const time_point due = shim::now() + 1ms;
    int shared = 0;  // Plain: whoever has waited may use it.
    const timer_handle which = arm(loop->timers(), slow_end(shared));
    loop->timers().at(due, [&] { loop->timers().cancel(which); });
    thread driver([&] { loop->run(); }, "loop");
    shim::sleep_until(due);
    loop->timers().cancel_and_wait(which);
    require(shared == 2, "nothing of it is left");
    shared = 7;
    driver.join();
    loop.require_rest();
}

CHIME_SCENARIO(timer, that_is_cancelled_on_the_loop_is_waited_for_by_others, .share = 2, .is_small = true,
               .stale_values = 0) {
    cancel_on_the_loop_and_wait_elsewhere(
        [](timers& all, slow_end closure) { return all.at(shim::now() + 1h, std::move(closure)); });
}

CHIME_SCENARIO(timer, that_is_periodic_and_cancelled_on_the_loop_is_waited_for_by_others, .share = 2, .is_small = true,
               .stale_values = 0) {
    cancel_on_the_loop_and_wait_elsewhere(
        [](timers& all, slow_end closure) { return all.every(1h, missed_ticks::skip, std::move(closure)); });
}

CHIME_SCENARIO(timer, whose_record_is_used_again_is_not_touched_through_an_old_name, .share = 2, .is_small = true,
               .stale_values = 0) {
    small_loop loop;
    account first;
    account second;
    const time_point began = shim::now();
    const timer_handle old = loop->timers().at(began + 1ms, exact_callback(first, began + 1ms));
    std::optional<io_context::work_guard> guard(*loop);
    thread driver([&] { loop->run(); }, "loop");
    thread other([&] {
        shim::sleep_until(began + 1ms);
        loop->timers().postpone_until(old, began + 1h);
        loop->timers().cancel(old);
    });
    require(loop->timers().cancel(old) == cancel_result::cancelled, "it is pending");
    for (int more = 0; more < 2; ++more) {
        loop->timers().at(began + 2ms, exact_callback(second, began + 2ms));
    }
    guard.reset();
    other.join();
    driver.join();
    first.require_ended(0, 1);
    second.require_ended(2, 2);
    loop.require_rest();
}

CHIME_SCENARIO(timer, that_is_periodic_is_cancelled_in_any_of_its_ticks, .share = 4, .is_small = true,
               .stale_values = 0) {
    small_loop loop;
    account its;
    const time_point began = shim::now();
    const timer_handle which = loop->timers().every(1ms, missed_ticks::burst, test::any_callback(its));
    thread driver([&] { loop->run(); }, "loop");
    shim::sleep_until(began + 2ms);
    const cancel_result answer = loop->timers().cancel_and_wait(which);
    const std::int64_t ran = its.ran();
    require(answer != cancel_result::gone, "it never ends by itself");
    require(its.destroyed() == 1, "nothing of it is left");
    driver.join();
    require(its.ran() == ran, "it does not run any more");
    loop.require_rest();
}

CHIME_SCENARIO(timer, that_cancels_itself_leaves_the_next_one_to_fire, .share = 2, .is_small = true,
               .stale_values = 0) {
    small_loop loop;
    account next;
    const time_point began = shim::now();
    timer_handle own;
    own = loop->timers().every(1ms, missed_ticks::skip, [&] { loop->timers().cancel(own); });
    loop->timers().at(began + 5ms, exact_callback(next, began + 5ms));
    thread driver([&] { loop->run(); }, "loop");
    loop->timers().at(began + 7ms, exact_callback(next, began + 7ms));
    driver.join();
    next.require_ended(2, 2);
    loop.require_rest();
}

CHIME_SCENARIO(timer, that_was_cancelled_wakes_nobody, .share = 2, .is_small = true, .stale_values = 0) {
    small_loop loop;
    account its;
    const time_point began = shim::now();
    const timer_handle which = loop->timers().at(began + 1h, exact_callback(its, began + 1h));
    std::optional<io_context::work_guard> guard(*loop);
    thread driver([&] { loop->run(); }, "loop");
    require(loop->timers().cancel(which) == cancel_result::cancelled, "it is pending");
    shim::sleep_until(began + 2h);
    guard.reset();
    driver.join();
    its.require_ended(0, 1);
    loop.require_rest();
}

CHIME_SCENARIO(timer, of_another_loop_is_not_touched, .share = 4, .is_small = true, .stale_values = 0) {
    small_loop one;
    small_loop other;
    account its;
    const time_point due = shim::now() + 1ms;
    const timer_handle which = one->timers().at(due, exact_callback(its, due));
    other->timers().at(due, exact_callback(its, due));
    thread driver([&] { other->run(); }, "other");
    require(other->timers().cancel(which) == cancel_result::gone, "it is not its own");
    require(!other->timers().postpone_until(which, due + 1h), "it is not its own");
    one->run();
    driver.join();
    its.require_ended(2, 2);
    one.require_rest();
    other.require_rest();
}

CHIME_SCENARIO(timer, is_over_when_who_cancels_and_waits_goes_on, .share = 2) {
    small_loop loop;
    const time_point due = shim::now() + 1ms;
    int shared = 0;  // Plain: whoever has waited may use it.
    const timer_handle which = loop->timers().at(due, [&] {
        ++shared;
        shim::yield();
        ++shared;
    });
    thread driver([&] { loop->run(); }, "loop");
    thread other([&] {
        shim::sleep_until(due);
        loop->timers().cancel_and_wait(which);
    });
    shim::sleep_until(due);
    loop->timers().cancel_and_wait(which);
    require(shared == 0 || shared == 2, "it has run or will not");
    shared = 7;
    other.join();
    driver.join();
    require(shared == 7, "it has not run since");
    loop.require_rest();
}

/// Nobody else cancels it: so what is gone has run, and whoever is told so knows of it.
CHIME_SCENARIO(timer, that_is_gone_has_run_with_all_that_it_did, .share = 2, .is_small = true, .stale_values = 0) {
    small_loop loop;
    const time_point due = shim::now() + 1ms;
    int shared = 0;  // Plain: whoever is told that it is gone may use it.
    const timer_handle which = loop->timers().at(due, [&] { shared = 1; });
    thread driver([&] { loop->run(); }, "loop");
    shim::sleep_until(due);
    if (loop->timers().cancel(which) == cancel_result::gone) require(shared == 1, "it has run");
    driver.join();
    loop.require_rest();
}

}  // namespace
