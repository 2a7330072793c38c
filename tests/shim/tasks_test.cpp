// SPDX-License-Identifier: MIT
#include "base/atomic.hpp"
#include "shim/engine/explore.hpp"
#include "shim/small_loops.hpp"

#include <chime/cpu_pool.hpp>
#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/timer_cell.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <optional>

// Tasks of one loop, and other threads that wake and cancel them in all their phases.

namespace {

using namespace chime;
using namespace std::chrono_literals;
using shim::require;
using shim::require_equal;
using shim::tally;
using shim::thread;
using test::small_loop;

/// What has become of some sleeps.
struct sleeps {
    tally elapsed;
    tally cancelled;
    tally ended;

    void note(wake_reason why) { (why == wake_reason::elapsed ? elapsed : cancelled).add(); }
    void require_sum(std::uint64_t expected) const {
        require_equal(static_cast<std::uint64_t>(elapsed.count() + cancelled.count()), expected, "sleeps that ended");
    }
};

task<> sleep_once(sleeps& notes, time_point due) {
    const wake_reason why = co_await sleep_until(due);
    if (why == wake_reason::elapsed) require(shim::now() == due, "it wakes at its deadline");
    notes.note(why);
    notes.ended.add();
}

CHIME_SCENARIO(task, is_woken_once_by_its_time_or_by_who_cancels_it, .share = 2, .is_small = true, .stale_values = 0) {
    small_loop loop;
    sleeps notes;
    const time_point due = shim::now() + 1ms;
    auto joined = spawn(*loop, sleep_once(notes, due));
    thread driver([&] { loop->run(); }, "loop");
    thread other([&] {
        shim::sleep_until(due);
        joined.cancel();
    });
    shim::sleep_until(due);
    joined.cancel();
    other.join();
    driver.join();
    notes.require_sum(1);
    require_equal(static_cast<std::uint64_t>(notes.ended.count()), 1, "tasks that ended");
    loop.require_rest();
}

CHIME_SCENARIO(task, is_cancelled_while_it_begins_to_sleep, .share = 2, .is_small = true, .stale_values = 0) {
    small_loop loop;
    sleeps notes;
    const time_point began = shim::now();
    auto joined = spawn(*loop, sleep_once(notes, began + 1h));
    thread driver([&] { loop->run(); }, "loop");
    joined.cancel();
    driver.join();
    require(shim::now() == began, "it does not wait for its time");
    require_equal(static_cast<std::uint64_t>(notes.cancelled.count()), 1, "cancelled");
    loop.require_rest();
}

task<> read_when_cancelled(const int& said) {
    const wake_reason why = co_await sleep_for(1h);
    if (why == wake_reason::cancelled) require(said == 1, "it knows what was said before");
}

CHIME_SCENARIO(task, that_is_cancelled_knows_what_was_done_before, .share = 2, .is_small = true) {
    small_loop loop;
    int said = 0;
    auto joined = spawn(*loop, read_when_cancelled(said));
    thread driver([&] { loop->run(); }, "loop");
    said = 1;
    joined.cancel();
    driver.join();
    loop.require_rest();
}

task<> sleep_twice(sleeps& notes, time_point due) {
    const wake_reason first = co_await sleep_until(due);
    notes.note(first);
    const wake_reason second = co_await sleep_until(due + 1h);
    notes.note(second);
}

/// Whether its first sleep has ended in time or not, what was asked of the task holds for the second one.
CHIME_SCENARIO(task, that_is_cancelled_when_it_wakes_sleeps_no_more, .share = 2) {
    small_loop loop;
    sleeps notes;
    const time_point due = shim::now() + 1ms;
    auto joined = spawn(*loop, sleep_twice(notes, due));
    thread driver([&] { loop->run(); }, "loop");
    shim::sleep_until(due);
    const bool was_asked = joined.cancel();
    driver.join();
    require(was_asked && shim::now() == due, "it does not wait for its time");
    require(notes.cancelled.count() >= 1, "it is told");
    notes.require_sum(2);
    loop.require_rest();
}

/// As many times as it takes until somebody else has had a turn.
task<> sleep_until_open(const base::atomic<bool>& is_open) {
    while (!is_open.load(base::memory_order_acquire)) {
        auto no_time = sleep_for(0ms);
        co_await no_time;
    }
}

CHIME_SCENARIO(task, that_sleeps_for_no_time_lets_others_run, .share = 4) {
    small_loop loop;
    base::atomic<bool> is_open{false};
    spawn_detached(*loop, sleep_until_open(is_open));
    thread driver([&] { loop->run(); }, "loop");
    loop->post([&is_open] { is_open.store(true, base::memory_order_release); });
    driver.join();
    loop.require_rest();
}

CHIME_SCENARIO(task, in_the_slot_of_another_is_not_cancelled_in_its_place, .share = 2) {
    small_loop loop;
    sleeps first;
    sleeps second;
    const time_point due = shim::now() + 1ms;
    std::optional<io_context::work_guard> guard(*loop);
    auto one = spawn(*loop, sleep_once(first, due));
    thread driver([&] { loop->run(); }, "loop");
    thread other([&] {
        shim::sleep_until(due);
        one.cancel();
        one.cancel();
    });
    shim::sleep_until(due);
    auto two = spawn(*loop, sleep_once(second, due + 1ms));
    other.join();
    guard.reset();
    driver.join();
    first.require_sum(1);
    require_equal(static_cast<std::uint64_t>(second.elapsed.count()), 1, "the second one sleeps to its end");
    loop.require_rest();
}

/// A wait of its own making, whose name other threads get.
struct door {
    base::atomic<std::uint32_t> index{~0U};
    timer_handle name;  ///< Plain: published by the index.
};

class waiting {
 public:
    waiting(door& told, time_point due) : told_(told), due_(due) {}

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> frame) {
        told_.name = cell_.prepare(frame, due_);
        told_.index.store(told_.name.index, base::memory_order_release);
        return cell_.commit();
    }
    wake_reason await_resume() { return cell_.reason(); }

 private:
    timer_cell cell_;
    door& told_;
    time_point due_;
};

task<> wait_twice(sleeps& notes, door& first, time_point due) {
    waiting one(first, due);
    const wake_reason why = co_await one;
    notes.note(why);
    const wake_reason again = co_await sleep_until(due + 1ms);
    require(again == wake_reason::elapsed, "an old name does not end the next wait");
    notes.note(again);
}

CHIME_SCENARIO(task, is_woken_between_preparing_and_committing_or_later_and_never_through_an_old_name, .share = 2) {
    small_loop loop;
    sleeps notes;
    door first;
    const time_point began = shim::now();
    spawn_detached(*loop, wait_twice(notes, first, began + 1ms));
    thread driver([&] { loop->run(); }, "loop");
    while (first.index.load(base::memory_order_acquire) == ~0U) shim::yield();
    const timer_handle name = first.name;
    thread other([&] { loop->timers().cancel(name); });
    const cancel_result answer = loop->timers().cancel(name);
    loop->timers().postpone_until(name, began + 1h);
    require(answer != cancel_result::running, "a sleep has no callback");
    other.join();
    loop->timers().cancel(name);
    driver.join();
    notes.require_sum(2);
    require_equal(static_cast<std::uint64_t>(notes.cancelled.count()), 1, "cancelled once");
    loop.require_rest();
}

task<> read_message(door& told, time_point due, const int& message) {
    waiting one(told, due);
    const wake_reason why = co_await one;
    require(why == wake_reason::cancelled && message == 42, "who is woken knows what was done before");
}

CHIME_SCENARIO(task, knows_what_was_done_before_it_was_woken_however_early, .share = 2, .is_small = true,
               .stale_values = 0) {
    small_loop loop;
    door told;
    int message = 0;  // Plain: published by whoever wakes.
    spawn_detached(*loop, read_message(told, never, message));
    thread driver([&] { loop->run(); }, "loop");
    while (told.index.load(base::memory_order_acquire) == ~0U) shim::yield();
    message = 42;
    require(loop->timers().cancel(told.name) == cancel_result::cancelled, "it waits");
    driver.join();
    loop.require_rest();
}

/// The loop that a task goes to may end, and be destroyed, before the thread that it comes from has let go of it.
task<> hop_and_end(io_context& there, std::optional<io_context::work_guard>& guard) {
    co_await there.get_scheduler().schedule();
    guard.reset();
}

CHIME_SCENARIO(task, that_ends_elsewhere_does_not_leave_its_sender_with_a_loop_that_is_gone, .share = 2) {
    small_loop from;
    std::optional<thread> sender;
    {
        small_loop to;
        std::optional<io_context::work_guard> guard(*to);
        spawn_detached(*from, hop_and_end(*to, guard));
        sender.emplace([&] { from->run(); }, "from");
        to->run();
        to.require_rest();
    }
    sender->join();
    from.require_rest();
}

CHIME_SCENARIO(task, whose_sleep_is_postponed_sleeps_until_the_last_word, .share = 2) {
    small_loop loop;
    sleeps notes;
    door first;
    const time_point began = shim::now();
    std::optional<time_point> woke;
    const auto sleeper = [](door& told, time_point due, std::optional<time_point>& at) -> task<> {
        waiting one(told, due);
        const wake_reason why = co_await one;
        require(why == wake_reason::elapsed, "nobody cancels it");
        at = shim::now();
    };
    spawn_detached(*loop, sleeper(first, began + 2ms, woke));
    thread driver([&] { loop->run(); }, "loop");
    while (first.index.load(base::memory_order_acquire) == ~0U) shim::yield();
    const timer_handle name = first.name;
    const bool earlier = loop->timers().postpone_until(name, began + 1ms);
    shim::sleep_until(began + 1ms);
    const bool later = loop->timers().postpone_until(name, began + 3ms);
    driver.join();
    const time_point expected = later ? began + 3ms : earlier ? began + 1ms : began + 2ms;
    require(woke && *woke == expected, "the last word counts");
    loop.require_rest();
}

task<> run_job(io_context& on, tally& done) {
    int shared = 0;  // Plain: written by the pool's thread, read here.
    auto job = on.cpu_pool().submit([&shared] {
        shared = 41;
        return 1;
    });
    const int answer = co_await job;
    require(shared + answer == 42, "what the job did is known to who awaited it");
    done.add();
}

CHIME_SCENARIO(task, is_woken_by_a_job_whenever_that_ends, .share = 4) {
    tally done;
    {
        io_context_config config = small_loop::small();
        config.pool_threads = 1;
        small_loop loop(config);
        spawn_detached(*loop, run_job(*loop, done));
        spawn_detached(*loop, run_job(*loop, done));
        thread driver([&] { loop->run(); }, "loop");
        driver.join();
        loop.require_rest();
    }
    require_equal(static_cast<std::uint64_t>(done.count()), 2, "jobs");
}

task<> hop(io_context& there, sleeps& notes, time_point due) {
    co_await there.get_scheduler().schedule();
    const wake_reason why = co_await sleep_until(due);
    notes.note(why);
}

CHIME_SCENARIO(task, goes_to_another_loop_and_can_be_cancelled_on_the_way, .share = 4) {
    small_loop from;
    small_loop to;
    sleeps notes;
    const time_point due = shim::now() + 1ms;
    std::optional<io_context::work_guard> guard(*to);
    auto joined = spawn(*from, hop(*to, notes, due));
    thread one([&] { from->run(); }, "from");
    thread two([&] { to->run(); }, "to");
    joined.cancel();
    one.join();
    guard.reset();
    two.join();
    require_equal(static_cast<std::uint64_t>(notes.cancelled.count()), 1, "the mark comes along");
    require(joined.is_done(), "and so does who waits for it");
    from.require_rest();
    to.require_rest();
}

CHIME_SCENARIO(task, can_be_spawned_from_any_thread_in_any_phase_of_the_loop, .share = 2) {
    small_loop loop;
    sleeps notes;
    const time_point due = shim::now() + 1ms;
    std::optional<io_context::work_guard> guard(*loop);
    thread driver([&] { loop->run(); }, "loop");
    thread other([&] { spawn_detached(*loop, sleep_once(notes, due)); });
    spawn_detached(*loop, sleep_once(notes, due));
    other.join();
    guard.reset();
    driver.join();
    require_equal(static_cast<std::uint64_t>(notes.elapsed.count()), 2, "sleeps");
    loop.require_rest();
}

// --- Stopping.

task<> sleep_on(sleeps& notes, time_point due) {
    const wake_reason why = co_await sleep_until(due);
    notes.note(why);
    const wake_reason again = co_await sleep_until(due + 1h);
    notes.note(again);
    notes.ended.add();
}

CHIME_SCENARIO(stop, tells_every_sleeper_once_and_destroys_who_sleeps_again, .share = 2, .is_small = true,
               .stale_values = 0) {
    small_loop loop;
    sleeps notes;
    const time_point began = shim::now();
    std::optional<io_context::work_guard> guard(*loop);
    auto joined = spawn(*loop, sleep_on(notes, began + 1h));
    thread driver([&] { loop->run(); }, "loop");
    thread other([&] { joined.cancel(); });
    loop->timers().stop();
    other.join();
    guard.reset();
    driver.join();
    require(shim::now() == began, "nobody waits");
    require_equal(static_cast<std::uint64_t>(notes.elapsed.count()), 0, "elapsed");
    require(notes.cancelled.count() >= 1, "it is told");
    loop.require_rest();
}

}  // namespace
