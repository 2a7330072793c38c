// SPDX-License-Identifier: MIT
#include "base/atomic.hpp"
#include "shim/engine/explore.hpp"
#include "shim/small_crew.hpp"
#include "shim/small_loops.hpp"

#include <chime/sleep.hpp>
#include <chime/task.hpp>
#include <chime/timer_cell.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <cstdint>

// Waits that others know by name, and wake or move at once; or whose name they have only heard, with nothing else.

namespace {

using namespace chime;
using namespace std::chrono_literals;
using shim::require;
using shim::thread;
using test::crew_threads;
using test::small_crew;

// --- Woken and moved at once.

/// A wait that has a name.
class named_wait {
 public:
    named_wait(timer_handle& name, time_point due) noexcept : name_(name), due_(due) {}

    [[nodiscard]] static bool await_ready() noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> frame) {
        name_ = cell_.prepare(frame, due_);
        return cell_.commit();
    }
    wake_reason await_resume() { return cell_.reason(); }

 private:
    timer_cell cell_;
    timer_handle& name_;
    time_point due_;
};

task<> wait_to_be_cancelled(small_crew& on, timer_handle& name, time_point due, time_point woken) {
    named_wait waiting(name, due);
    const wake_reason why = co_await waiting;
    require(why == wake_reason::cancelled && shim::now() == woken, "it is woken at once");
    on.note_end();
}

/// Its worker sleeps for a timer that comes before. Who moves it has linked it, and who cancels it relies on that.
CHIME_SCENARIO(task, that_is_cancelled_while_somebody_moves_its_deadline_is_woken_at_once, .share = 2) {
    small_crew one(1, 2);
    const time_point began = shim::now();
    timer_handle name;
    one.arm(began + 1ms, [&one] { one.note_end(); });
    one.spawn(wait_to_be_cancelled(one, name, began + 3ms, began));
    one.settle(0);
    crew_threads workers(one, {&small_crew::drive_on});
    thread other([&] { one->postpone(name, detail::wait_limit::at(began + 2ms)); }, "other");
    require(one->cancel(name) == cancel_result::cancelled, "it waits");
    other.join();
    workers.finish();
}

// --- Heard of.

/// The name of a wait, by numbers that carry nothing else along.
struct rumour {
    base::atomic<std::uint32_t> slot{0};
    base::atomic<std::uint64_t> epoch{0};
};

class rumoured_wait {
 public:
    rumoured_wait(rumour& told, time_point due) noexcept : told_(told), due_(due) {}

    [[nodiscard]] static bool await_ready() noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> frame) {
        const detail::wake_key key = detail::begin_suspension(nullptr, frame, detail::promise_of(frame));
        told_.slot.store(key.slot, base::memory_order_relaxed);
        told_.epoch.store(key.epoch, base::memory_order_relaxed);
        static_cast<void>(detail::limit_suspension(key, detail::wait_limit::at(due_)));
        return detail::commit_suspension(key);
    }
    static wake_reason await_resume() { return detail::reason_of_wake(); }

 private:
    rumour& told_;
    time_point due_;
};

/// Without a timer between two waits with one.
task<> wait_three_times(small_crew& on, rumour& told, time_point due) {
    auto first = sleep_until(due);
    co_await first;
    auto others = yield();
    co_await others;
    rumoured_wait last(told, due + 1h);
    co_await last;
    on.note_end();
}

/// Who wakes it has to find out whether it has a timer, and whose.
CHIME_SCENARIO(task, that_is_woken_by_who_has_only_heard_of_it_takes_its_timer_along, .share = 2) {
    small_crew both(2, 1);
    rumour told;
    const time_point due = shim::now() + 1ms;
    both.spawn(wait_three_times(both, told, due));
    both.settle(0);
    both.settle(1);
    crew_threads workers(both, {&small_crew::drive_on, &small_crew::drive_on});
    shim::sleep_until(due);
    std::uint64_t epoch = 0;
    while ((epoch = told.epoch.load(base::memory_order_relaxed)) == 0) shim::yield();
    std::uint32_t slot = 0;
    while ((slot = told.slot.load(base::memory_order_relaxed)) == 0) shim::yield();
    // Its word may not have come along, either.
    while (!both->wake(slot, epoch, detail::wake_cause::cancelled)) shim::yield();
    workers.finish();
    require(shim::now() == due, "it is woken at once");
}

// --- Accepted and moved at once.

/// The loop takes it out of its inbox, and its deadline is moved a moment later.
CHIME_SCENARIO(timer, that_is_made_later_when_it_has_just_arrived_fires_at_the_last_word, .is_small = true,
               .stale_values = 2) {
    small_crew one(1, 1);
    const time_point due = shim::now() + 1ms;
    const timer_handle which = one.arm(due, [&one, due] {
        require(shim::now() == due + 1ms, "it fires at its deadline");
        one.note_end();
    });
    thread zero([&] { one.drive(0); }, "zero");
    require(one->postpone(which, detail::wait_limit::at(due + 1ms)), "it is pending");
    zero.join();
    one.require_rest();
}

}  // namespace
