// SPDX-License-Identifier: MIT
#include "base/atomic.hpp"
#include "shim/engine/explore.hpp"
#include "shim/small_crew.hpp"
#include "shim/small_loops.hpp"

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <stdexcept>

// How a crew comes to its end, and what is refused, lost or told to somebody when it does.

namespace {

using namespace chime;
using namespace std::chrono_literals;
using shim::require;
using shim::require_equal;
using shim::tally;
using shim::thread;
using test::account;
using test::crew_threads;
using test::small_crew;
using test::small_loop;

// --- Coming to rest.

task<> yield_for_ever(tally& ended) {
    struct note {
        ~note() { its.add(); }
        tally& its;
    } const at_the_end{ended};
    for (;;) {
        auto others = yield();
        co_await others;
    }
}

/// As a runtime does when it is shut down: nobody is awake then, and everything that runs has been told.
void stop_and_wait_for_rest(small_crew& closed) {
    closed->stop_timers();
    closed->begin_closing();
    closed->wait_for_rest();
}

/// It is told once that everything ends, and would go on all the same.
CHIME_SCENARIO(shutdown, destroys_a_task_that_yields_for_ever, .share = 4) {
    small_crew both(2, 1);
    tally ended;
    both.spawn(yield_for_ever(ended));
    crew_threads workers(both, {&small_crew::drive, &small_crew::drive});
    stop_and_wait_for_rest(both);
    require_equal(static_cast<std::uint64_t>(ended.count()), 1, "tasks that have ended");
    both.note_end();
    workers.finish();
}

task<> sleep_and_note(tally& told) {
    const wake_reason why = co_await sleep_for(1h);
    require(why == wake_reason::cancelled, "nobody waits for an hour");
    told.add();
}

/// Each worker tells those who sleep with it, and whoever is free runs them. Who waits looks at one after the other.
CHIME_SCENARIO(shutdown, is_at_rest_when_all_who_slept_were_told_and_have_gone_on, .share = 4) {
    small_crew both(2, 1);
    const time_point began = shim::now();
    tally told;
    both.spawn(sleep_and_note(told));
    both.settle(1);
    both.settle(0);
    crew_threads workers(both, {&small_crew::park_and_drive, &small_crew::park_and_drive});
    stop_and_wait_for_rest(both);
    require_equal(static_cast<std::uint64_t>(told.count()), 1, "sleepers that were told");
    require(shim::now() == began, "nobody waits until somebody looks again");
    both.note_end();
    workers.finish();
}

// --- Refused or ended.

/// So few records that whoever sends anything wakes who is to clean up, and looks at nothing else.
CHIME_SCENARIO(crew, that_ends_and_has_few_records_refuses_a_timer_or_ends_it_at_once, .is_small = true) {
    detail::worker_settings settings = small_crew::small();
    settings.max_timers = 4;
    account its;
    std::uint64_t accepted = 0;
    small_crew ending(1, 0, settings);
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
    its.require_ended(0, accepted);
}

/// Who waits for the end of a timer goes on when its closure has ended, also if who ends everything has ended that.
CHIME_SCENARIO(crew, that_ends_lets_go_on_who_waits_for_the_end_of_a_timer) {
    small_crew ending(1, 0);
    int shared = 0;  // Plain: whoever has waited may use it.
    const timer_handle which = ending.arm(shim::now() + 1h, test::slow_end(shared));
    thread other(
        [&] {
            ending->cancel_and_wait(which);
            require(shared == 2, "nothing of it is left");
            shared = 7;
        },
        "other");
    ending->destroy_pending();
    other.join();
    require(shared == 7, "it has ended once");
}

// --- Told to the right one.

task<> end_at_once() {
    co_return;
}

/// It has had a turn of this loop itself, or has tidied up there; that is over.
void wait_for_task_of(small_loop& loop) {
    auto joined = spawn(*loop, end_at_once());
    thread driver([&] { loop->run(); }, "loop");
    joined.wait();
    driver.join();
    loop.require_rest();
}

CHIME_SCENARIO(task, is_waited_for_by_a_thread_that_has_run_its_loop_before, .share = 2) {
    small_loop loop;
    loop->poll();
    wait_for_task_of(loop);
}

CHIME_SCENARIO(task, is_waited_for_by_a_thread_that_has_tidied_up_its_loop_before, .share = 2) {
    io_context_config config = small_loop::small();
    config.max_timers = 1;
    small_loop loop(config);
    const timer_handle which = loop->timers().after(1h, [] {});
    loop->timers().cancel(which);
    loop->timers().cancel(loop->timers().after(1h, [] {}));  // In the place of the first, which was on its way back.
    wait_for_task_of(loop);
}

task<> fail(const base::atomic<bool>& is_detached) {
    while (!is_detached.load(base::memory_order_acquire)) {
        auto others = yield();
        co_await others;
    }
    throw std::runtime_error("nobody asks for it");
}

CHIME_SCENARIO(task, that_fails_when_its_handle_was_dropped_tells_who_runs_the_loop, .share = 2) {
    small_loop loop;
    base::atomic<bool> is_detached{false};
    std::optional<join_handle<>> joined(spawn(*loop, fail(is_detached)));
    thread other(
        [&] {
            joined.reset();
            is_detached.store(true, base::memory_order_release);
        },
        "other");
    bool was_told = false;
    try {
        loop->run();
    } catch (const std::runtime_error&) {
        was_told = true;
    }
    other.join();
    require(was_told, "an exception that nobody asks for leaves the loop");
    loop->run();
    loop.require_rest();
}

/// A callback drives another loop, and a callback of that one waits for the end of the first: it would wait for itself.
CHIME_SCENARIO(timer, whose_end_is_waited_for_by_who_runs_inside_of_it_keeps_nobody_waiting, .is_alone = true) {
    small_loop outer;
    small_loop inner;
    tally answered;
    timer_handle which;
    which = outer->timers().after(0ms, [&] { inner->run(); });
    inner->timers().after(0ms, [&] {
        require(outer->timers().cancel_and_wait(which) == cancel_result::running, "it runs below");
        answered.add();
    });
    outer->run();
    require_equal(static_cast<std::uint64_t>(answered.count()), 1, "answers");
    outer.require_rest();
    inner.require_rest();
}

}  // namespace
