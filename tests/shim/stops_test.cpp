// SPDX-License-Identifier: MIT
#include "shim/engine/explore.hpp"
#include "shim/small_crew.hpp"
#include "shim/small_loops.hpp"

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

// Everything stops while somebody is in the middle of something with a timer: it ends once, at once, and whoever was at it is
// told the truth.

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
using test::small_crew;
using test::small_loop;

CHIME_SCENARIO(stop, ends_every_timer_once_while_others_arm_and_cancel, .share = 4) {
    small_loop loop;
    account its;
    const time_point began = shim::now();
    const timer_handle which = loop->timers().at(began + 1h, exact_callback(its, began + 1h));
    tally armed;
    armed.add();
    std::optional<io_context::work_guard> guard(*loop);
    thread driver([&] { loop->run(); }, "loop");
    thread armer([&] {
        if (loop->timers().try_at(began + 2h, exact_callback(its, began + 2h))) armed.add();
    });
    thread canceller([&] { loop->timers().cancel(which); });
    loop->timers().stop();
    armer.join();
    canceller.join();
    guard.reset();
    driver.join();
    require(shim::now() == began, "nobody waits");
    its.require_ran(0);
    require_equal(loop->timers().stats().armed, static_cast<std::uint64_t>(armed.count()), "armed");
    loop.require_rest();
}

/// Whoever postpones it holds on to the record for a moment, or has sent it to the loop.
void stop_while_somebody_postpones(duration delay) {
    small_loop loop;
    account its;
    const time_point began = shim::now();
    const timer_handle which = loop->timers().at(began + 1h, test::any_callback(its));
    loop->poll();
    thread driver([&] { loop->run(); }, "loop");
    bool was_pending = false;
    thread other([&] { was_pending = loop->timers().postpone_until(which, began + delay); }, "other");
    loop->timers().stop();
    other.join();
    driver.join();
    require(shim::now() == began, "nobody waits");
    its.require_ended(0, 1);
    require_equal(loop->timers().stats().postponed, was_pending ? 1 : 0, "postponed");
    require(!loop->timers().postpone_until(which, began + 2h), "it is over");
    loop.require_rest();
}

CHIME_SCENARIO(stop, ends_what_somebody_makes_earlier_meanwhile, .share = 2, .is_small = true, .stale_values = 0) {
    stop_while_somebody_postpones(1ms);
}

CHIME_SCENARIO(stop, ends_what_somebody_makes_later_meanwhile, .share = 2, .is_small = true, .stale_values = 0) {
    stop_while_somebody_postpones(2h);
}

CHIME_SCENARIO(stop, and_a_token_end_a_timer_once, .share = 2, .is_small = true, .stale_values = 0) {
    small_loop loop;
    account its;
    cancel_source source;
    const time_point began = shim::now();
    loop->timers().at(began + 1h, exact_callback(its, began + 1h), source.token());
    loop->poll();
    thread driver([&] { loop->run(); }, "loop");
    thread other([&] { source.request_cancel(); }, "other");
    loop->timers().stop();
    other.join();
    driver.join();
    require(shim::now() == began, "nobody waits");
    its.require_ended(0, 1);
    require_equal(loop->timers().stats().cancelled, 1, "cancelled");
    loop.require_rest();
}

/// Between being prepared and being sent it can be cancelled already, and nobody has found it yet.
CHIME_SCENARIO(stop, and_a_token_end_a_timer_that_is_armed_meanwhile, .share = 4) {
    small_loop loop;
    account its;
    cancel_source source;
    const time_point began = shim::now();
    std::optional<io_context::work_guard> guard(*loop);
    thread driver([&] { loop->run(); }, "loop");
    std::uint64_t armed = 0;
    thread armer(
        [&] {
            if (loop->timers().try_at(began + 1h, exact_callback(its, began + 1h), source.token())) armed = 1;
        },
        "armer");
    thread other([&] { source.request_cancel(); }, "other");
    loop->timers().stop();
    armer.join();
    other.join();
    guard.reset();
    driver.join();
    require(shim::now() == began, "nobody waits");
    its.require_ran(0);
    require_equal(loop->timers().stats().armed, armed, "armed");
    loop.require_rest();
}

/// The loop cancels it, and destroys its closure; whoever waits goes on when that is over.
CHIME_SCENARIO(stop, is_waited_for_by_who_cancels_the_same_timer_and_waits, .share = 2, .is_small = true,
               .stale_values = 0) {
    small_loop loop;
    const time_point began = shim::now();
    int shared = 0;  // Plain: whoever has waited may use it.
    const timer_handle which = loop->timers().at(began + 1h, slow_end(shared));
    loop->poll();
    thread driver([&] { loop->run(); }, "loop");
    thread other(
        [&] {
            loop->timers().cancel_and_wait(which);
            require(shared == 2, "nothing of it is left");
            shared = 7;
        },
        "other");
    loop->timers().stop();
    other.join();
    driver.join();
    require(shared == 7 && shim::now() == began, "it has ended once, at once");
    loop.require_rest();
}

/// It is periodic, and runs when everything stops: that was its last run, and whoever waits for the end of it goes on.
CHIME_SCENARIO(stop, lets_a_run_be_the_last_that_somebody_waits_for, .share = 4) {
    small_loop loop;
    account its;
    const time_point due = shim::now() + 1ms;
    const timer_handle which = loop->timers().every(1ms, missed_ticks::skip, test::any_callback(its));
    thread driver([&] { loop->run(); }, "loop");
    thread other(
        [&] {
            shim::sleep_until(due);
            loop->timers().cancel_and_wait(which);
            require_equal(static_cast<std::uint64_t>(its.destroyed()), 1, "closures that were destroyed");
        },
        "other");
    shim::sleep_until(due);
    loop->timers().stop();
    other.join();
    driver.join();
    require(its.ran() <= 1 && shim::now() == due, "it runs no more, and nobody waits");
    its.require_ended(static_cast<std::uint64_t>(its.ran()), 1);
    loop.require_rest();
}

/// Two that are due soon and late, and so are left in different ways. Nobody may have told them when they are nobody's.
CHIME_SCENARIO(stop, ends_what_is_given_away_and_adopted_meanwhile, .share = 2, .is_small = true, .stale_values = 0) {
    small_crew both(2, 1);
    account its;
    const time_point began = shim::now();
    both.arm(began + 10ms, test::any_callback(its));
    both.arm(began + 1h, test::any_callback(its));
    both.settle(0);
    both.settle(1);
    both.tell_to_retire(0);
    test::crew_threads workers(both, {&small_crew::drive_on, &small_crew::drive_on});
    both->stop_timers();
    shim::sleep_until(began + 1ms);  // When nobody has anything to do any more.
    its.require_ended(0, 2);
    both.note_end();
    workers.finish();
}

}  // namespace
