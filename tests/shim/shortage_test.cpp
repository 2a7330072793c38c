// SPDX-License-Identifier: MIT
#include "shim/engine/explore.hpp"
#include "shim/small_crew.hpp"
#include "shim/small_loops.hpp"

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <system_error>
#include <vector>

// No memory in the middle of a race. Whoever asked for it is told, and nothing else has happened: what was pending fires at its
// deadline, what was cancelled is cancelled, and the books are right. A closure comes to its end once, refused or not.

namespace {

using namespace chime;
using namespace std::chrono_literals;
using shim::require;
using shim::require_equal;
using shim::scarce_memory;
using shim::tally;
using shim::thread;
using test::account;
using test::any_callback;
using test::crew_threads;
using test::exact_callback;
using test::small_crew;
using test::small_loop;
using test::small_runtime;

/// True: it was done. False: there was no memory.
template <class Attempt>
bool was_done(const Attempt& attempt) {
    try {
        attempt();
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

/// A turn that needs memory for what others have sent says so, and the next one goes on from there.
void run_to_end(small_loop& loop) {
    while (!was_done([&] { loop->run(); })) {}
}

/// Workers that are short of memory tell who has asked to be told, and go on.
runtime_config short_runtime(unsigned workers) {
    runtime_config config = small_runtime(workers);
    config.on_exception = [](const std::exception_ptr& thrown) {
        require(!was_done([&] { std::rethrow_exception(thrown); }), "it tells of memory and of nothing else");
    };
    return config;
}

void require_end(runtime& ended) {
    ended.shutdown();
    const runtime_stats all = ended.stats();
    test::require_ledger(all.timers);
    require(all.workers.empty(), "L9: a thread is left");
}

/// As many timers as the first piece of a wheel has places for, and each somewhere else: the next one needs another piece.
template <class Arm>
void fill_wheel(const Arm& arm) {
    constexpr int places = 64;
    for (int place = 0; place < places; ++place) arm(shim::now() + 1min + place * 20s);
}

[[nodiscard]] std::uint64_t unsigned_count(const tally& counted) noexcept {
    return static_cast<std::uint64_t>(counted.count());
}

// --- A loop.

/// A callback arms more than there is room for, while another thread cancels what is due, and arms.
CHIME_SCENARIO(shortage, on_a_loop_refuses_who_arms_in_a_callback_and_nobody_else, .share = 4) {
    small_loop loop;
    account cancelled;
    account inner;
    account outer;
    tally accepted;
    const time_point due = shim::now() + 1ms;
    loop->timers().at(due, [&] {
        for (const std::chrono::milliseconds delay : {1ms, 300ms, 1000ms}) {
            const time_point later = due + delay;
            if (was_done([&] { loop->timers().at(later, exact_callback(inner, later)); })) accepted.add();
        }
    });
    const timer_handle which = loop->timers().at(due, exact_callback(cancelled, due));
    thread driver([&] { run_to_end(loop); }, "loop");
    std::uint64_t armed = 0;
    {
        const scarce_memory fault(3);
        shim::sleep_until(due);
        armed = was_done([&] { loop->timers().at(due + 2ms, exact_callback(outer, due + 2ms)); }) ? 1 : 0;
        const bool was_cancelled = loop->timers().cancel(which) == cancel_result::cancelled;
        driver.join();
        cancelled.require_ended(was_cancelled ? 0 : 1, 1);
    }
    run_to_end(loop);
    inner.require_ended(unsigned_count(accepted), 3);
    outer.require_ended(armed, 1);
    loop.require_rest();
}

/// Its wheel has no room for one more ticket in a new place, so what others send waits in the inbox until there is some.
CHIME_SCENARIO(shortage, on_a_loop_whose_wheel_is_full_delays_nobody_and_loses_nothing, .share = 8) {
    small_loop loop;
    account fired;
    account cancelled;
    const time_point began = shim::now();
    const time_point due = began + 1ms;
    fill_wheel([&](time_point deadline) { loop->timers().at(deadline, [] {}); });
    loop->poll();
    std::optional<io_context::work_guard> guard(*loop);
    thread driver([&] { run_to_end(loop); }, "loop");
    std::uint64_t armed = 0;
    {
        const scarce_memory fault(4);
        const auto try_arm = [&](account& notes, timer_handle& made) {
            return was_done([&] { made = loop->timers().at(due, exact_callback(notes, due)); });
        };
        timer_handle kept;
        timer_handle which;
        armed = try_arm(fired, kept) ? 1 : 0;
        if (try_arm(cancelled, which)) {
            require(loop->timers().cancel(which) == cancel_result::cancelled, "it is pending");
        }
        shim::sleep_until(due + 1ms);
    }
    loop->timers().stop();
    guard.reset();
    driver.join();
    fired.require_ended(armed, 1);
    cancelled.require_ended(0, 1);
    loop.require_rest();
}

/// A token or a period takes memory of its own, and so does a large function.
CHIME_SCENARIO(shortage, refuses_a_timer_with_a_token_while_that_is_cancelled, .share = 4) {
    small_loop loop;
    account watched;
    account periodic;
    cancel_source source;
    const time_point due = shim::now() + 1ms;
    thread driver([&] { run_to_end(loop); }, "loop");
    thread canceller([&] { source.request_cancel(); }, "canceller");
    std::uint64_t made = 2;
    {
        const scarce_memory fault(2);
        const bool is_watched = was_done([&] { loop->timers().at(due, exact_callback(watched, due), source.token()); });
        const bool is_periodic = was_done([&] {
            const timer_handle ticks = loop->timers().every(1h, missed_ticks::skip, any_callback(periodic));
            require(loop->timers().cancel(ticks) == cancel_result::cancelled, "it is pending");
        });
        made = (is_watched ? 1U : 0U) + (is_periodic ? 1U : 0U);
        canceller.join();
        driver.join();
    }
    run_to_end(loop);
    require_equal(static_cast<std::uint64_t>(watched.destroyed() + periodic.destroyed()), 2,
                  "closures that have ended");
    require_equal(loop->timers().stats().armed, made, "timers that were accepted");
    loop.require_rest();
}

/// The owner postpones to before what it waits for, and has no memory for the ticket: the old deadline stays in force. Others
/// postpone it, too, which takes none.
CHIME_SCENARIO(shortage, leaves_a_timer_that_is_not_postponed_with_its_deadline, .share = 4) {
    small_loop loop;
    account first;
    account second;
    const time_point began = shim::now();
    const timer_handle one = loop->timers().at(began + 8ms, test::callback_at(first, {began + 2ms, began + 8ms}));
    const timer_handle two = loop->timers().at(began + 9ms, test::callback_at(second, {began + 3ms, began + 9ms}));
    bool was_postponed = false;
    loop->timers().at(began + 1ms, [&] {
        was_done([&] { loop->timers().at(began + 4ms, [] {}); });
        was_postponed = was_done([&] { loop->timers().postpone_until(one, began + 2ms); });
        was_done([&] { loop->timers().postpone_until(two, began + 4ms); });
    });
    thread driver([&] { run_to_end(loop); }, "loop");
    {
        const scarce_memory fault(3);
        shim::sleep_until(began + 1ms);
        require(was_done([&] { loop->timers().postpone_until(two, began + 3ms); }),
                "it takes no memory from elsewhere");
        driver.join();
    }
    run_to_end(loop);
    first.require_ended(1, 1);
    second.require_ended(1, 1);
    require(first.last_run() == began + (was_postponed ? 2ms : 8ms), "it fires at the deadline that is in force");
    require(second.last_run() != began + 9ms, "somebody has postponed it");
    loop.require_rest();
}

// --- Workers that come and go.

/// What one leaves behind needs room in the wheel of the other, which has none for the moment.
CHIME_SCENARIO(shortage, delays_nobody_whose_worker_retires, .share = 16) {
    account fired;
    account cancelled;
    runtime both(short_runtime(2));
    const time_point due = shim::now() + 1ms;
    both.timers().at(due, exact_callback(fired, due));
    both.timers().at(due + 1s, exact_callback(fired, due + 1s));
    const timer_handle which = both.timers().at(due + 1h, exact_callback(cancelled, due + 1h));
    std::uint64_t armed = 2;
    thread leaving([&] { both.retire_worker(0); }, "leaving");
    {
        const scarce_memory fault(3);
        armed += was_done([&] { both.timers().at(due + 1ms, exact_callback(fired, due + 1ms)); }) ? 1U : 0U;
        require(both.timers().cancel(which) == cancel_result::cancelled, "it is pending");
        leaving.join();
        shim::sleep_until(due + 500ms);
    }
    shim::sleep_until(due + 2s);
    require_end(both);
    fired.require_ended(armed, 3);
    cancelled.require_ended(0, 1);
}

/// The same, and the wheel of the other is full. If there is something that is due soon, or that nobody has accepted yet, the
/// room that is made for it is enough for the rest as well.
void leave_to_full_wheel(bool has_soon) {
    test::take_an_odd_number();
    detail::worker_settings settings = small_crew::small();
    settings.max_timers = 128;
    small_crew both(2, has_soon ? 3 : 1, settings);
    const time_point due = shim::now() + 1ms;
    const auto expected_at = [&both](time_point deadline) {
        return [&both, deadline] {
            require(shim::now() == deadline, "it fires at its deadline, neither earlier nor later");
            both.note_end();
        };
    };
    std::vector<timer_handle> filling;
    fill_wheel([&](time_point deadline) { filling.push_back(both.arm(deadline, [] {})); });
    both.settle(1);
    timer_handle which;
    thread first(
        [&] {
            if (has_soon) both.arm(due, expected_at(due));
            both.arm(due + 30s, expected_at(due + 30s));
            which = both.arm(due + 1h, [] { require(false, "it was cancelled"); });
        },
        "first");
    first.join();
    both.settle(0);
    thread second(
        [&] {
            if (has_soon) both.arm(due + 1ms, expected_at(due + 1ms));
        },
        "second");
    second.join();
    both.tell_to_retire(0);
    crew_threads workers(both, {&small_crew::drive_on, &small_crew::drive_on});
    {
        const scarce_memory fault(4);
        require(both->cancel(which) == cancel_result::cancelled, "it is pending");
        shim::sleep_until(due + 2ms);
    }
    for (const timer_handle each : filling) require(both->cancel(each) == cancel_result::cancelled, "it is pending");
    workers.finish();
    shim::require_equal(both->stats().adopted, both->stats().migrated, "L7: adopted");
}

CHIME_SCENARIO(shortage, delays_nobody_whose_heir_has_a_full_wheel, .share = 8) {
    leave_to_full_wheel(true);
}

CHIME_SCENARIO(shortage, loses_nothing_that_is_adopted_later, .share = 8) {
    leave_to_full_wheel(false);
}

/// Whoever joins needs memory in many places; without it nobody has joined, and what was sent to him meanwhile is somebody
/// else's.
CHIME_SCENARIO(shortage, refuses_a_worker_while_others_arm_and_retire, .share = 16) {
    account fired;
    runtime both(short_runtime(2));
    const time_point due = shim::now() + 1ms;
    tally armed;
    thread arming(
        [&] {
            if (was_done([&] { both.timers().at(due, exact_callback(fired, due)); })) armed.add();
            if (was_done([&] { both.timers().at(due + 1ms, exact_callback(fired, due + 1ms)); })) armed.add();
        },
        "arming");
    thread leaving([&] { both.retire_worker(1); }, "leaving");
    std::uint64_t added = 0;
    {
        const scarce_memory fault(2);
        added = was_done([&] { both.add_worker(); }) ? 1 : 0;
        arming.join();
        leaving.join();
    }
    require_equal(both.stats().workers.size(), 1 + added, "workers that are there");
    shim::sleep_until(due + 2ms);
    require_end(both);
    fired.require_ended(unsigned_count(armed), 2);
}

// --- The end.

task<> sleep_long(tally& ended, time_point due) {
    // Refused the sleep, it ends at once.
    try {
        auto pause = sleep_until(due);
        co_await pause;
    } catch (const std::bad_alloc&) {}
    ended.add();
}

CHIME_SCENARIO(shortage, does_not_keep_a_runtime_from_its_end_while_others_arm_and_spawn, .share = 16) {
    account its;
    tally ended;
    tally accepted;
    tally spawned;
    {
        runtime both(short_runtime(2));
        const time_point due = shim::now() + 1h;
        both.timers().at(due, any_callback(its));
        const auto is_accepted = [](const auto& attempt) {
            try {
                return was_done(attempt);
            } catch (const std::system_error&) {
                return false;  // It was too late.
            }
        };
        thread armer(
            [&] {
                if (is_accepted([&] { both.timers().at(due, any_callback(its)); })) accepted.add();
                if (is_accepted([&] { both.timers().every(1h, missed_ticks::skip, any_callback(its)); }))
                    accepted.add();
            },
            "armer");
        thread spawner(
            [&] {
                if (is_accepted([&] { spawn_detached(both, sleep_long(ended, due)); })) spawned.add();
            },
            "spawner");
        {
            const scarce_memory fault(3);
            both.shutdown();
            armer.join();
            spawner.join();
        }
        require_end(both);
        require(shim::now() < due, "nobody waits");
        const std::uint64_t sleeps = both.stats().timers.armed - 1 - unsigned_count(accepted);
        require(sleeps <= unsigned_count(spawned), "what was refused does not count as armed");
    }
    its.require_ended(0, 3);
    require(ended.count() <= spawned.count(), "a task that was refused does not run");
}

/// Who waits for the end of a callback needs a place to wait in; without one nothing was cancelled.
CHIME_SCENARIO(shortage, refuses_to_wait_for_a_callback_and_then_has_not_cancelled, .share = 4) {
    small_loop home;
    small_loop other;
    account ticks;
    const time_point began = shim::now();
    const timer_handle periodic = home->timers().every(1ms, missed_ticks::skip, any_callback(ticks));
    std::uint64_t ran = 0;
    const auto join_it = [&]() -> task<> {
        auto first = sleep_until(began + 1ms);
        co_await first;
        bool is_refused = false;
        try {
            const scarce_memory fault;
            auto joined = home->timers().cancel_and_join(periodic);
            co_await joined;
            ran = static_cast<std::uint64_t>(ticks.ran());
        } catch (const std::bad_alloc&) {
            is_refused = true;
        }
        if (!is_refused) co_return;
        auto second = sleep_until(began + 3ms);
        co_await second;
        require(ticks.ran() >= 2, "it goes on");
        require(home->timers().cancel_and_wait(periodic) != cancel_result::gone, "it is still there");
        ran = static_cast<std::uint64_t>(ticks.ran());
    };
    spawn_detached(*other, join_it());
    thread driver([&] { run_to_end(home); }, "home");
    thread joiner([&] { run_to_end(other); }, "other");
    joiner.join();
    driver.join();
    ticks.require_ended(ran, 1);
    home.require_rest();
    other.require_rest();
}

}  // namespace
