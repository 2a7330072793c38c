// SPDX-License-Identifier: MIT
#include "base/atomic.hpp"
#include "shim/engine/explore.hpp"
#include "shim/small_loops.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <system_error>

// Many workers: who wakes whom, who takes what from whom, and who leaves.

namespace {

using namespace chime;
using namespace std::chrono_literals;
using shim::require;
using shim::require_equal;
using shim::tally;
using shim::thread;
using test::account;
using test::exact_callback;
using test::small_runtime;

void require_end(runtime& ended) {
    const time_point began = shim::now();
    ended.shutdown();
    require(shim::now() == began, "nobody waits until somebody looks again");
    const runtime_stats all = ended.stats();
    test::require_ledger(all.timers);
    require(all.workers.empty(), "L9: a thread is left");
}

task<> count(tally& ran) {
    ran.add();
    co_return;
}

task<> spawn_two(runtime& on, tally& ran) {
    spawn_detached(on, count(ran));
    auto second = on.spawn(count(ran));
    co_await second;
    ran.add();
}

CHIME_SCENARIO(workers, run_what_is_spawned_outside_though_all_of_them_sleep, .share = 8) {
    tally ran;
    runtime both(small_runtime(2));
    thread other([&] { spawn_detached(both, count(ran)); });
    both.block_on(count(ran));
    other.join();
    require_end(both);
    require_equal(static_cast<std::uint64_t>(ran.count()), 2, "tasks");
}

CHIME_SCENARIO(workers, take_from_each_other_and_run_everything_once, .share = 8) {
    tally ran;
    runtime both(small_runtime(2));
    both.block_on(spawn_two(both, ran));
    both.block_on(spawn_two(both, ran));
    require_end(both);
    require_equal(static_cast<std::uint64_t>(ran.count()), 6, "tasks");
}

task<> wait_for(base::atomic<bool>& is_open) {
    // Blocks its worker: only another one can open it.
    while (!is_open.load(base::memory_order_acquire)) shim::yield();
    co_return;
}

task<> open(base::atomic<bool>& is_open) {
    is_open.store(true, base::memory_order_release);
    co_return;
}

task<> block_and_open(runtime& on, base::atomic<bool>& is_open) {
    auto opener = on.spawn(open(is_open));
    co_await wait_for(is_open);
    co_await opener;
}

/// Whoever runs something that takes long calls another worker for what is ready beside it.
CHIME_SCENARIO(workers, that_are_busy_call_others_for_what_is_ready_beside, .share = 8) {
    runtime both(small_runtime(2));
    base::atomic<bool> is_open{false};
    both.block_on(block_and_open(both, is_open));
    require_end(both);
}

CHIME_SCENARIO(workers, that_are_busy_leave_what_comes_from_outside_to_others, .share = 8) {
    runtime both(small_runtime(2));
    base::atomic<bool> is_open{false};
    spawn_detached(both, wait_for(is_open));
    both.block_on(open(is_open));
    require_end(both);
}

/// One that wakes up by itself this moment, and is called because it seems to sleep, hears the call or is not called.
CHIME_SCENARIO(workers, that_wake_up_by_themselves_do_not_leave_a_call_unheard, .share = 8) {
    runtime both(small_runtime(2));
    base::atomic<bool> is_open{false};
    tally rang;
    const time_point due = shim::now() + 1ms;
    both.timers().at(due, [&rang] { rang.add(); });
    shim::sleep_until(due);
    thread other([&] { spawn_detached(both, wait_for(is_open)); });
    both.block_on(open(is_open));
    other.join();
    require_end(both);
}

task<> sleep_exactly(time_point due, tally& slept) {
    const wake_reason why = co_await sleep_until(due);
    require(why == wake_reason::cancelled || shim::now() == due, "it wakes at its deadline");
    slept.add();
}

CHIME_SCENARIO(workers, wake_sleepers_on_time_or_when_they_are_cancelled, .share = 8) {
    tally slept;
    runtime both(small_runtime(2));
    const time_point due = shim::now() + 1ms;
    auto one = both.spawn(sleep_exactly(due, slept));
    thread other([&] {
        shim::sleep_until(due);
        one.cancel();
    });
    both.block_on(sleep_exactly(due, slept));
    other.join();
    require_end(both);
    require_equal(static_cast<std::uint64_t>(slept.count()), 2, "sleeps");
}

// --- Retiring.

CHIME_SCENARIO(retirement, takes_timers_along_that_others_arm_and_cancel_meanwhile, .share = 8) {
    account kept;
    account dropped;
    runtime both(small_runtime(2));
    const time_point due = shim::now() + 1ms;
    const timer_handle first = both.timers().at(due, exact_callback(dropped, due));
    thread leaving([&] { both.retire_worker(0); });
    thread other([&] { both.timers().at(due, exact_callback(kept, due)); });
    both.timers().at(due, exact_callback(kept, due));
    require(both.timers().cancel(first) == cancel_result::cancelled, "it is pending");
    leaving.join();
    other.join();
    shim::sleep_until(due + 1ms);
    require_end(both);
    kept.require_ended(2, 2);
    dropped.require_ended(0, 1);
}

CHIME_SCENARIO(retirement, takes_timers_along_that_others_postpone_meanwhile, .share = 8) {
    account its;
    runtime both(small_runtime(2));
    const time_point due = shim::now() + 2ms;
    const timer_handle which = both.timers().at(due, test::callback_at(its, {due, due - 1ms}));
    const timer_handle far = both.timers().at(due, test::callback_at(its, {due, due + 1ms}));
    thread leaving([&] { both.retire_worker(0); });
    require(both.timers().postpone_until(which, due - 1ms), "it is pending");
    require(both.timers().postpone_until(far, due + 1ms), "it is pending");
    leaving.join();
    shim::sleep_until(due - 1ms + 1ns);
    require(its.ran() == 1, "the earlier one has run");
    shim::sleep_until(due + 2ms);
    require_end(both);
    require(its.last_run() == due + 1ms, "the later one has run");
    its.require_ended(2, 2);
}

CHIME_SCENARIO(retirement, of_two_at_once_leaves_all_to_the_third, .share = 16) {
    account fired;
    tally slept;
    runtime three(small_runtime(3));
    const time_point due = shim::now() + 1ms;
    spawn_detached(three, sleep_exactly(due, slept));
    three.timers().at(due, exact_callback(fired, due));
    thread one([&] { three.retire_worker(0); });
    thread two([&] { three.retire_worker(1); });
    three.timers().at(due, exact_callback(fired, due));
    one.join();
    two.join();
    shim::sleep_until(due + 1ms);
    require_end(three);
    fired.require_ended(2, 2);
    require_equal(static_cast<std::uint64_t>(slept.count()), 1, "sleeps");
}

/// What the first gives away the second adopts, and gives away in its turn.
CHIME_SCENARIO(retirement, of_whoever_has_just_adopted_moves_all_once_more, .share = 16) {
    account fired;
    runtime both(small_runtime(2));
    const time_point due = shim::now() + 1ms;
    const timer_handle which = both.timers().at(due, exact_callback(fired, due));
    thread mover([&] {
        both.retire_worker(0);
        both.add_worker();
        both.retire_worker(1);
    });
    const bool was_cancelled = both.timers().cancel(which) == cancel_result::cancelled;
    require(was_cancelled, "it is pending all the time");
    both.timers().at(due, exact_callback(fired, due));
    mover.join();
    shim::sleep_until(due + 1ms);
    require_end(both);
    fired.require_ended(1, 2);
}

CHIME_SCENARIO(retirement, leaves_ready_tasks_and_sleepers_to_others, .share = 8) {
    tally ran;
    tally slept;
    runtime both(small_runtime(2));
    const time_point due = shim::now() + 1ms;
    auto sleeper = both.spawn(sleep_exactly(due, slept));
    thread leaving([&] { both.retire_worker(0); });
    thread other([&] {
        shim::sleep_until(due);
        sleeper.cancel();
    });
    both.block_on(spawn_two(both, ran));
    leaving.join();
    other.join();
    shim::sleep_until(due + 1ms);
    require_end(both);
    require_equal(static_cast<std::uint64_t>(ran.count()), 3, "tasks");
    require_equal(static_cast<std::uint64_t>(slept.count()), 1, "sleeps");
}

// --- The end.

CHIME_SCENARIO(shutdown, ends_everything_once_while_others_arm_spawn_and_cancel, .share = 16) {
    account its;
    tally slept;
    tally armed;
    {
        runtime both(small_runtime(2));
        const time_point due = shim::now() + 1h;
        const timer_handle which = both.timers().at(due, exact_callback(its, due));
        armed.add();
        spawn_detached(both, sleep_exactly(due, slept));
        thread armer([&] {
            if (both.timers().try_at(due, exact_callback(its, due))) armed.add();
        });
        thread spawner([&] {
            try {
                spawn_detached(both, count(slept));
            } catch (const std::system_error&) {
                slept.add();
            }
        });
        both.timers().cancel(which);
        const time_point began = shim::now();
        both.shutdown();
        require(shim::now() == began, "nobody waits until somebody looks again");
        armer.join();
        spawner.join();
        require_end(both);
        require(shim::now() < due, "nobody waits");
    }
    its.require_ran(0);
}

CHIME_SCENARIO(shutdown, waits_for_a_retirement_that_has_begun, .share = 16) {
    account its;
    runtime both(small_runtime(2));
    const time_point due = shim::now() + 1h;
    both.timers().at(due, exact_callback(its, due));
    thread leaving([&] {
        try {
            both.retire_worker(0);
        } catch (const std::system_error&) {}
    });
    const time_point began = shim::now();
    both.shutdown();
    require(shim::now() == began, "nobody waits until somebody looks again");
    leaving.join();
    require_end(both);
    its.require_ended(0, 1);
}

CHIME_SCENARIO(metronome, does_not_keep_anybody_from_ending, .share = 16) {
    tally ran;
    runtime_config config = small_runtime(2);
    config.metronome = true;
    runtime both(config);
    both.block_on(count(ran));
    require_end(both);
    require_equal(static_cast<std::uint64_t>(ran.count()), 1, "tasks");
}

}  // namespace
