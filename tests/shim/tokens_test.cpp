// SPDX-License-Identifier: MIT
#include "base/atomic.hpp"
#include "shim/engine/explore.hpp"
#include "shim/small_loops.hpp"

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

// Tokens: what watches them begins, ends and is told, all at once.

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

task<> sleep_with(cancel_token token, time_point due, tally& elapsed, tally& cancelled) {
    const wake_reason why = co_await sleep_until(due, token);
    if (why == wake_reason::elapsed) require(shim::now() == due, "it wakes at its deadline");
    (why == wake_reason::elapsed ? elapsed : cancelled).add();
}

CHIME_SCENARIO(token, ends_a_sleep_in_any_of_its_phases_once, .share = 2, .is_small = true, .stale_values = 0) {
    small_loop loop;
    cancel_source source;
    tally elapsed;
    tally cancelled;
    const time_point began = shim::now();
    spawn_detached(*loop, sleep_with(source.token(), began + 1h, elapsed, cancelled));
    thread driver([&] { loop->run(); }, "loop");
    require(source.request_cancel(), "it is the first");
    driver.join();
    require(shim::now() == began, "nobody waits for its time");
    require_equal(static_cast<std::uint64_t>(cancelled.count()), 1, "cancelled");
    loop.require_rest();
}

CHIME_SCENARIO(token, and_time_end_a_sleep_together_once, .share = 2) {
    small_loop loop;
    cancel_source source;
    tally elapsed;
    tally cancelled;
    const time_point due = shim::now() + 1ms;
    spawn_detached(*loop, sleep_with(source.token(), due, elapsed, cancelled));
    spawn_detached(*loop, sleep_with(source.token(), due, elapsed, cancelled));
    thread driver([&] { loop->run(); }, "loop");
    shim::sleep_until(due);
    source.request_cancel();
    driver.join();
    require_equal(static_cast<std::uint64_t>(elapsed.count() + cancelled.count()), 2, "ends");
    loop.require_rest();
}

CHIME_SCENARIO(token, ends_a_timer_while_it_is_prepared_armed_or_fired, .share = 2) {
    small_loop loop;
    account its;
    cancel_source source;
    const time_point began = shim::now();
    std::optional<io_context::work_guard> guard(*loop);
    thread driver([&] { loop->run(); }, "loop");
    thread other([&] { source.request_cancel(); });
    const timer_handle old = loop->timers().at(began + 1h, exact_callback(its, began + 1h), source.token());
    other.join();
    account next;
    for (int more = 0; more < 3; ++more) loop->timers().at(began + 1ms, exact_callback(next, began + 1ms));
    require(loop->timers().cancel(old) == cancel_result::gone, "an old name names nothing");
    guard.reset();
    driver.join();
    require(shim::now() == began + 1ms, "nobody waits for its time");
    next.require_ended(3, 3);
    its.require_ended(0, 1);
    loop.require_rest();
}

CHIME_SCENARIO(token, a_handle_and_time_end_a_timer_together_once, .share = 2) {
    small_loop loop;
    account its;
    cancel_source source;
    const time_point due = shim::now() + 1ms;
    const timer_handle which = loop->timers().at(due, exact_callback(its, due), source.token());
    thread driver([&] { loop->run(); }, "loop");
    thread other([&] {
        shim::sleep_until(due);
        source.request_cancel();
    });
    shim::sleep_until(due);
    const cancel_result answer = loop->timers().cancel(which);
    other.join();
    driver.join();
    if (answer == cancel_result::cancelled) its.require_ran(0);
    require(its.ran() <= 1, "it runs once at most");
    require_equal(static_cast<std::uint64_t>(its.destroyed()), 1, "closures that were destroyed");
    loop.require_rest();
}

CHIME_SCENARIO(token, ends_a_periodic_timer_in_any_of_its_ticks, .share = 4) {
    small_loop loop;
    account its;
    cancel_source source;
    const time_point began = shim::now();
    loop->timers().every(1ms, missed_ticks::skip, test::any_callback(its), source.token());
    thread driver([&] { loop->run(); }, "loop");
    shim::sleep_until(began + 2ms);
    source.request_cancel();
    driver.join();
    require(its.ran() >= 1 && its.ran() <= 2, "it has run until then");
    require_equal(static_cast<std::uint64_t>(its.destroyed()), 1, "closures that were destroyed");
    loop.require_rest();
}

CHIME_SCENARIO(token, ends_sleeps_on_many_workers_once, .share = 16) {
    tally elapsed;
    tally cancelled;
    cancel_source source;
    const time_point due = shim::now() + 1ms;
    runtime both(test::small_runtime(2));
    spawn_detached(both, sleep_with(source.token(), due, elapsed, cancelled));
    thread other([&] {
        shim::sleep_until(due);
        source.request_cancel();
    });
    both.block_on(sleep_with(source.token(), due, elapsed, cancelled));
    other.join();
    shim::sleep_until(due + 1ms);
    both.shutdown();
    require_equal(static_cast<std::uint64_t>(elapsed.count() + cancelled.count()), 2, "ends");
    test::require_ledger(both.stats().timers);
}

}  // namespace
