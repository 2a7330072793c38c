// SPDX-License-Identifier: MIT
#include "base/atomic.hpp"
#include "shim/engine/explore.hpp"
#include "shim/small_crew.hpp"
#include "shim/small_loops.hpp"
#include "support/eager.hpp"

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/timer_cell.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

// Waits of an unusual kind: tasks that only let others run, tasks deep inside of others, and coroutines that wait in the place
// of a task that has started them beside itself.

namespace {

using namespace chime;
using namespace std::chrono_literals;
using shim::require;
using shim::require_equal;
using shim::thread;
using test::account;
using test::crew_threads;
using test::eager;
using test::small_crew;
using test::small_loop;

// --- Yielding.

task<> yield_and_sleep(time_point due, shim::tally& cancelled) {
    auto others = yield();
    co_await others;
    const wake_reason why = co_await sleep_until(due);
    cancelled.add(why == wake_reason::cancelled);
}

/// The mark may come before it yields, while it does, or afterwards: it stays.
CHIME_SCENARIO(task, that_is_cancelled_while_it_yields_sleeps_no_more, .share = 2, .is_small = true,
               .stale_values = 0) {
    small_loop loop;
    shim::tally cancelled;
    const time_point began = shim::now();
    auto joined = spawn(*loop, yield_and_sleep(began + 1h, cancelled));
    thread driver([&] { loop->run(); }, "loop");
    joined.cancel();
    driver.join();
    require(shim::now() == began && cancelled.count() == 1, "it is told, and does not wait for its time");
    loop.require_rest();
}

task<> yield_twice(small_crew& on) {
    int turns = 0;  // Plain: whoever goes on with it knows of who has had it before.
    for (; turns < 2; ++turns) {
        auto others = yield();
        co_await others;
    }
    require(turns == 2, "each turn comes after the other");
    on.note_end();
}

/// Another worker may go on with it before the first one has let go of it.
CHIME_SCENARIO(task, that_yields_goes_on_at_once_wherever_somebody_takes_it, .share = 4) {
    small_crew both(2, 2);
    both.spawn(yield_twice(both));
    crew_threads workers(both, {&small_crew::drive, &small_crew::drive});
    both.spawn(yield_twice(both));
    workers.finish();
}

task<> yield_until(const account& fired) {
    while (fired.ran() == 0) {
        auto others = yield();
        co_await others;
    }
}

/// There is always something ready, and a timer is due all the same.
CHIME_SCENARIO(task, that_yields_until_a_timer_has_fired_comes_to_its_end, .share = 4) {
    small_loop loop;
    account fired;
    const time_point due = shim::now();
    spawn_detached(*loop, yield_until(fired));
    thread other([&] { loop->timers().at(due, test::exact_callback(fired, due)); }, "other");
    loop->run();
    other.join();
    loop->run();
    fired.require_ended(1, 1);
    loop.require_rest();
}

// --- Woken by what others have done.

/// Waits until somebody who is told of it has left a word.
struct word_from_outside {
    base::atomic<bool> is_told{false};
    detail::wake_key key;
    int word = 0;

    [[nodiscard]] static bool await_ready() noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> frame) {
        const detail::wake_key mine = detail::begin_suspension(nullptr, frame, detail::promise_of(frame));
        key = mine;
        is_told.store(true, base::memory_order_release);
        return detail::commit_suspension(mine);
    }
    [[nodiscard]] int await_resume() const noexcept { return word; }

    /// By this thread, while another one runs the loop.
    void wake_from_outside(small_loop& loop) {
        thread driver([&] { loop->run(); }, "loop");
        while (!is_told.load(base::memory_order_acquire)) shim::yield();
        word = 1;
        detail::wake_task(key, wake_reason::elapsed);
        driver.join();
        loop.require_rest();
    }
};

task<> read_word(word_from_outside& its) {
    const int word = co_await its;
    require(word == 1, "it goes on after what it was woken for");
}

/// Whether it has suspended by then or not.
CHIME_SCENARIO(task, that_is_woken_while_it_suspends_knows_what_for, .share = 2, .is_small = true) {
    small_loop loop;
    word_from_outside waited;
    spawn_detached(*loop, read_word(waited));
    waited.wake_from_outside(loop);
}

/// Begins to wait and finds that there is no need to.
struct second_thoughts {
    [[nodiscard]] static bool await_ready() noexcept { return false; }
    template <class Promise>
    static bool await_suspend(std::coroutine_handle<Promise> frame) {
        detail::abandon_suspension(detail::begin_suspension(nullptr, frame, detail::promise_of(frame)));
        return false;
    }
    static void await_resume() noexcept {}
};

task<> think_and_read_word(word_from_outside& its) {
    co_await second_thoughts{};
    auto reading = read_word(its);
    co_await std::move(reading);
}

/// The next wait is another one, which somebody may end while it begins.
CHIME_SCENARIO(task, that_has_given_up_a_wait_is_woken_while_it_begins_the_next, .share = 2, .is_small = true,
               .stale_values = 0) {
    small_loop loop;
    word_from_outside waited;
    spawn_detached(*loop, think_and_read_word(waited));
    waited.wake_from_outside(loop);
}

// --- Deep inside.

/// Some of the frames own a timer. In this build a task that begins inside of another one is called by it, and takes stack;
/// one that goes on later is not.
task<> sink(io_context& on, account& owned, int depth) {
    constexpr int some = 100;
    std::optional<scoped_timer> mine;
    if (depth % some == 0) {
        mine.emplace(on.timers(), on.timers().after(1h, test::any_callback(owned)));
        auto others = yield();
        co_await others;
    }
    if (depth == 0) {
        auto pause = sleep_for(1h);
        co_await pause;
    } else {
        auto below = sink(on, owned, depth - 1);
        co_await std::move(below);
    }
}

/// It ends with its loop from the inside out; from the outside in, it would take more stack than there is.
CHIME_SCENARIO(task, that_sleeps_deep_inside_of_others_ends_with_its_loop, .is_alone = true) {
    account owned;
    {
        small_loop loop;
        spawn_detached(*loop, sink(*loop, owned, 3'000));
        while (loop->poll() != 0) {}
        require_equal(loop->timers().stats().pending, 32, "timers of frames, and a sleep");
    }
    owned.require_ended(0, 31);
}

// --- Telling the time.

task<> see_time(small_crew& on, time_point shown) {
    const time_point seen = this_task::coarse_now();
    require(seen == shown, "what it was shown is later than its turn");
    on.note_end();
    co_return;
}

CHIME_SCENARIO(coarse_time, is_what_a_worker_was_shown_if_that_is_later, .share = 16) {
    small_crew one(1, 1);
    const time_point shown = shim::now() + 1h;
    one->at(0).show_time(shown);
    one.spawn(see_time(one, shown));
    crew_threads workers(one, {&small_crew::drive});
    workers.finish();
}

// --- In the place of another.

eager wait_eagerly(detail::completion& awaited) {
    detail::completion_awaiter waiting(awaited);
    co_await waiting;
    require(false, "nobody resumes it when its task has ended");
}

/// Lives as long as the frame that it is a parameter of.
class completes_at_the_end {
 public:
    explicit completes_at_the_end(detail::completion& completed) noexcept : completed_(&completed) {}
    completes_at_the_end(completes_at_the_end&& other) noexcept
        : completed_(std::exchange(other.completed_, nullptr)) {}
    completes_at_the_end& operator=(completes_at_the_end&&) = delete;
    ~completes_at_the_end() {
        if (completed_ != nullptr) completed_->complete();
    }

 private:
    detail::completion* completed_;
};

task<> lend_wait_and_end(std::optional<eager>& started, detail::completion& awaited, completes_at_the_end) {
    started.emplace(wait_eagerly(awaited));
    co_return;
}

/// What it has waited for comes when the frame of the task goes, and finds nobody who waits.
CHIME_SCENARIO(task, that_has_ended_is_not_woken_for_a_coroutine_that_has_waited_in_its_place, .share = 2,
               .is_small = true, .stale_values = 0) {
    detail::completion awaited;
    std::optional<eager> started;
    small_loop loop;
    spawn_detached(*loop, lend_wait_and_end(started, awaited, completes_at_the_end(awaited)));
    thread driver([&] { loop->run(); }, "loop");
    driver.join();
    loop.require_rest();
}

/// Whose wait it is, and whether that has a name yet.
struct lent_wait {
    timer_delay delay;
    std::optional<eager> started;
    timer_handle name;  ///< Plain: published by the flag.
    base::atomic<bool> is_named{false};
};

eager sleep_eagerly(timer_delay& delay) {
    co_await delay;
    require(false, "nobody resumes it when its task has ended");
}

task<> lend_sleep_and_end(lent_wait& lent) {
    lent.started.emplace(sleep_eagerly(lent.delay));
    lent.name = lent.delay.handle();
    lent.is_named.store(true, base::memory_order_release);
    co_return;
}

/// Somebody holds on to the word of the task while that ends.
CHIME_SCENARIO(task, that_ends_takes_a_sleep_in_its_place_along_though_somebody_postpones_that, .share = 2,
               .is_small = true, .stale_values = 0) {
    small_loop loop;
    const time_point began = shim::now();
    lent_wait lent{.delay = timer_delay(loop->timers(), began + 2h), .started = {}, .name = {}};
    spawn_detached(*loop, lend_sleep_and_end(lent));
    thread driver([&] { loop->run(); }, "loop");
    while (!lent.is_named.load(base::memory_order_acquire)) shim::yield();
    loop->timers().postpone_until(lent.name, began + 1h);
    driver.join();
    require(!loop->timers().postpone_until(lent.name, began + 1h), "it has ended with the task");
    require(shim::now() == began, "nobody waits for it");
    loop.require_rest();
}

task<> sleep_exactly(time_point due) {
    auto sleep = sleep_until(due);
    co_await sleep;
    require(shim::now() == due, "it wakes at its deadline");
}

/// The next one in this slot sleeps for its own time, and not for that which the last wait there was moved to.
CHIME_SCENARIO(task, in_the_slot_of_one_whose_wait_was_moved_when_it_ended_sleeps_for_its_own_time, .share = 2) {
    small_loop loop;
    const time_point began = shim::now();
    lent_wait lent{.delay = timer_delay(loop->timers(), began + 2h), .started = {}, .name = {}};
    spawn_detached(*loop, lend_sleep_and_end(lent));
    loop->timers().at(began + 1ms, [&loop, began] { spawn_detached(*loop, sleep_exactly(began + 1h)); });
    thread driver([&] { loop->run(); }, "loop");
    while (!lent.is_named.load(base::memory_order_acquire)) shim::yield();
    loop->timers().postpone_until(lent.name, began + 3h);
    driver.join();
    require(shim::now() == began + 1h, "nobody waits for longer");
    loop.require_rest();
}

}  // namespace
