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
#include <system_error>
#include <utility>

// One loop with its own thread, and others that arm, post and stop it. Time goes on only when nobody can run, so a timer
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
using test::small_loop;

// --- Parking and arming.

CHIME_SCENARIO(loop, fires_on_time_what_others_arm_earlier_and_later_than_what_it_sleeps_for, .share = 2,
               .is_small = true, .stale_values = 0) {
    small_loop loop;
    account fired;
    const time_point began = shim::now();
    loop->timers().at(began + 10ms, exact_callback(fired, began + 10ms));
    thread driver([&] { loop->run(); }, "loop");
    thread other([&] { loop->timers().at(began + 5ms, exact_callback(fired, began + 5ms)); });
    loop->timers().at(began + 15ms, exact_callback(fired, began + 15ms));
    other.join();
    driver.join();
    fired.require_ran(3);
    loop.require_rest();
}

CHIME_SCENARIO(loop, runs_until_the_last_timer_that_was_armed_while_it_ran, .share = 2) {
    small_loop loop;
    account fired;
    const time_point began = shim::now();
    std::optional<io_context::work_guard> guard(*loop);
    thread driver([&] { loop->run(); }, "loop");
    thread other([&] { loop->timers().after(1ms, exact_callback(fired, began + 1ms)); });
    loop->timers().after(2ms, exact_callback(fired, began + 2ms));
    other.join();
    guard.reset();
    driver.join();
    fired.require_ran(2);
    loop.require_rest();
}

CHIME_SCENARIO(loop, ends_when_somebody_else_cancels_the_last_timer, .share = 2, .is_small = true, .stale_values = 0) {
    small_loop loop;
    account fired;
    const time_point began = shim::now();
    const timer_handle far = loop->timers().at(began + 1h, exact_callback(fired, began + 1h));
    const timer_handle farther = loop->timers().at(began + 2h, exact_callback(fired, began + 2h));
    thread driver([&] { loop->run(); }, "loop");
    thread other([&] { require(loop->timers().cancel(far) == cancel_result::cancelled, "it was pending"); });
    require(loop->timers().cancel(farther) == cancel_result::cancelled, "it was pending");
    other.join();
    driver.join();
    require(shim::now() == began, "nobody waits for what was cancelled");
    fired.require_ended(0, 2);
    loop.require_rest();
}

CHIME_SCENARIO(loop, runs_what_is_posted_whatever_it_is_just_doing, .share = 2) {
    small_loop loop;
    tally ran;
    std::optional<io_context::work_guard> guard(*loop);
    thread driver([&] { loop->run(); }, "loop");
    thread other([&] { loop->post([&ran] { ran.add(); }); });
    loop->post([&ran] { ran.add(); });
    other.join();
    guard.reset();
    driver.join();
    require_equal(static_cast<std::uint64_t>(ran.count()), 2, "posted functions");
    loop.require_rest();
}

/// The last of them waits for the next turn, for there are more than one goes on for. Stopped before that, the loop still owns it.
CHIME_SCENARIO(loop, runs_what_a_posted_function_posts_or_destroys_it_in_the_end, .share = 2, .is_small = true,
               .stale_values = 0) {
    account its;
    tally posted;
    {
        small_loop loop;
        loop->post([&] {
            for (int count = 0; count < 9; ++count) {
                loop->post(test::any_callback(its));
                posted.add();
            }
        });
        thread driver([&] { loop->run(); }, "loop");
        loop->stop();
        driver.join();
    }
    require(its.ran() <= posted.count(), "what was posted runs once");
    require_equal(static_cast<std::uint64_t>(its.destroyed()), static_cast<std::uint64_t>(posted.count()), "ends");
}

CHIME_SCENARIO(loop, is_stopped_in_any_window_and_runs_again, .share = 2, .is_small = true, .stale_values = 0) {
    small_loop loop;
    account fired;
    const time_point began = shim::now();
    loop->timers().at(began + 1h, exact_callback(fired, began + 1h));
    thread driver([&] { loop->run(); }, "loop");
    loop->stop();
    driver.join();
    require(shim::now() == began, "stopped at once");
    loop->restart();
    loop->run();
    fired.require_ran(1);
    loop.require_rest();
}

CHIME_SCENARIO(loop, that_was_stopped_knows_what_was_done_before, .share = 2, .is_small = true) {
    small_loop loop;
    int told = 0;  // Plain: published by stop().
    std::optional<io_context::work_guard> guard(*loop);
    thread driver(
        [&] {
            loop->run();
            require(told == 1, "who comes out of run() knows why");
        },
        "loop");
    thread watcher([&] {
        if (loop->is_stopped()) require(told == 1, "so does who has asked");
    });
    told = 1;
    loop->stop();
    watcher.join();
    driver.join();
}

CHIME_SCENARIO(loop, that_is_polled_through_its_descriptor_misses_nothing, .share = 2, .is_small = true,
               .stale_values = 0) {
    small_loop loop;
    account fired;
    const time_point began = shim::now();
    loop->timers().at(began + 10ms, exact_callback(fired, began + 10ms));
    loop->poll();
    thread foreign(
        [&] {
            const int descriptor = loop->poll_fd();  // Others ring while it is made.
            loop->poll();
            while (!loop->is_out_of_work()) {
                shim::wait_readable(descriptor);
                loop->poll();
            }
        },
        "foreign");
    loop->timers().at(began + 5ms, exact_callback(fired, began + 5ms));
    foreign.join();
    fired.require_ran(2);
    loop.require_rest();
}

CHIME_SCENARIO(loop, that_is_polled_learns_that_somebody_has_cancelled_the_last_timer, .share = 2, .is_small = true,
               .stale_values = 0) {
    small_loop loop;
    account fired;
    const time_point began = shim::now();
    const int descriptor = loop->poll_fd();
    timer_handle far;
    timer_handle farther;
    loop->post([&] {
        far = loop->timers().at(began + 1h, exact_callback(fired, began + 1h));
        farther = loop->timers().at(began + 2h, exact_callback(fired, began + 2h));
    });
    loop->poll();  // So that they are the loop's own, and more than what others have counted.
    thread foreign(
        [&] {
            loop->poll();
            while (!loop->is_out_of_work()) {
                shim::wait_readable(descriptor);
                loop->poll();
            }
        },
        "foreign");
    require(loop->timers().cancel(far) == cancel_result::cancelled, "it is pending");
    require(loop->timers().cancel(farther) == cancel_result::cancelled, "it is pending");
    foreign.join();
    require(shim::now() == began, "nobody waits for what was cancelled");
    fired.require_ended(0, 2);
    loop.require_rest();
}

CHIME_SCENARIO(loop, gives_out_its_descriptor_while_it_sleeps_and_others_ring, .share = 4, .is_small = true,
               .stale_values = 0) {
    small_loop loop;
    tally ran;
    std::optional<io_context::work_guard> guard(*loop);
    thread driver([&] { loop->run(); }, "loop");
    thread other([&] { loop->post([&ran] { ran.add(); }); });
    static_cast<void>(loop->poll_fd());
    other.join();
    guard.reset();
    driver.join();
    require_equal(static_cast<std::uint64_t>(ran.count()), 1, "posted functions");
    loop.require_rest();
}

CHIME_SCENARIO(loop, may_be_driven_by_one_thread_after_the_other, .share = 2) {
    small_loop loop;
    account fired;
    const time_point began = shim::now();
    const auto poll = [&] {
        try {
            loop->poll();
        } catch (const std::system_error&) {
            return;  // The other one is at it.
        }
    };
    thread one(poll);
    thread two(poll);
    loop->timers().at(began, exact_callback(fired, began));
    loop->timers().at(began, exact_callback(fired, began));
    one.join();
    two.join();
    loop->run();
    fired.require_ended(2, 2);
    loop.require_rest();
}

}  // namespace
