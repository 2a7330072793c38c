// SPDX-License-Identifier: MIT
#pragma once

#include "base/atomic.hpp"
#include "base/futex.hpp"
#include "base/thread_number.hpp"
#include "shim/engine/sync.hpp"
#include "worker/crew.hpp"
#include "worker/worker.hpp"

#include <chime/detail/arming.hpp>
#include <chime/detail/closure.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/time.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <utility>

// A crew whose workers are driven by the threads of a scenario. No runtime begins and none is shut down, so there are few
// steps, and most of them are those that matter.

namespace chime::test {

/// Who comes before it is open waits, and keeps its thread.
class gate {
 public:
    void open() noexcept {
        is_open_.store(1, base::memory_order_release);
        base::futex_wake_all(is_open_);
    }
    void pass() const noexcept {
        while (is_open_.load(base::memory_order_acquire) == 0) static_cast<void>(base::futex_wait(is_open_, 0));
    }

 private:
    base::futex_word is_open_{0};
};

class small_crew {
 public:
    static constexpr std::uint32_t most_workers = 3;

    /// Ends when so many pieces of user code have said that they are through.
    small_crew(std::uint32_t workers, std::int64_t pieces, const detail::worker_settings& settings = small())
        : crew_(settings, most_workers) {
        left_.add(pieces);
        for (std::uint32_t seat = 1; seat < workers; ++seat) {
            shim::require(crew_.add_worker() != nullptr, "there is a seat");
        }
    }

    [[nodiscard]] static detail::worker_settings small() {
        detail::worker_settings settings;
        settings.max_timers = settings.max_tasks = 64;
        return settings;
    }

    [[nodiscard]] detail::crew& operator*() noexcept { return crew_; }
    [[nodiscard]] detail::crew* operator->() noexcept { return &crew_; }

    /// Until all is over, or until it is told to leave.
    void drive(std::uint32_t seat) {
        shim::require(crew_.at(seat).try_begin_drive(), "nobody else drives it");
        drive_on(seat);
    }

    // Before there is more than one thread: brings a worker to where others shall meet it.

    /// It has had a turn, and found nothing to do.
    void settle(std::uint32_t seat) {
        detail::worker& its = crew_.at(seat);
        shim::require(its.try_begin_drive(), "nobody else drives it");
        shim::require(!its.turn({.is_leaving = is_leaving_[seat], .most = 1}).is_busy, "there is nothing to do");
    }
    /// After that: one more, whatever there is to do.
    void turn(std::uint32_t seat) { static_cast<void>(crew_.at(seat).turn({.is_leaving = is_leaving_[seat]})); }
    /// And it has gone to sleep.
    void lay_down(std::uint32_t seat) {
        settle(seat);
        shim::require(crew_.at(seat).begin_park(detail::end_of_time, is_leaving_[seat]), "there is nothing to do");
    }

    // Then on a thread of its own:

    /// It is about to sleep.
    void park_and_drive(std::uint32_t seat) {
        crew_.at(seat).park(detail::end_of_time, never, is_leaving_[seat]);
        drive_on(seat);
    }
    /// It sleeps, and wakes up for no reason.
    void wake_up_and_drive(std::uint32_t seat) {
        crew_.at(seat).end_park();
        drive_on(seat);
    }
    /// It sleeps, wakes up for no reason, leaves, and another one takes its seat.
    void give_up_the_seat_and_drive(std::uint32_t seat) {
        detail::worker& mine = crew_.at(seat);
        mine.end_park();
        mine.retire();
        mine.end_drive();
        shim::require(crew_.add_worker() == &mine, "the seat is free again");
        drive(seat);
    }
    /// Another one joins, in whatever seat is free, and drives it.
    void join_and_drive() {
        detail::worker* const mine = crew_.add_worker();
        shim::require(mine != nullptr, "there is a seat");
        // Who had it was told to leave. Nobody else looks at these before the end.
        is_leaving_[mine->seat()].store(false, base::memory_order_relaxed);
        retires_[mine->seat()].store(false, base::memory_order_relaxed);
        drive(mine->seat());
    }
    void drive_on(std::uint32_t seat) {
        detail::worker& mine = crew_.at(seat);
        while (!is_leaving_[seat].load(base::memory_order_acquire)) {
            detail::turn_answer last;
            try {
                last = mine.turn({.is_leaving = is_leaving_[seat]});
            } catch (const std::bad_alloc&) {
                continue;  // As in a runtime: the next turn goes on from there.
            }
            if (!last.is_busy) mine.park(last.wake_at, never, is_leaving_[seat]);
        }
        if (retires_[seat].load(base::memory_order_relaxed)) mine.retire();
        mine.end_drive();
    }

    /// It leaves, and gives away what it has.
    void tell_to_retire(std::uint32_t seat) {
        retires_[seat].store(true, base::memory_order_relaxed);  // Published with the next line.
        leave(seat);
    }

    void spawn(task<> spawned) { detail::spawn_task(crew_, std::move(spawned), nullptr, nullptr); }

    template <class Function>
    timer_handle arm(time_point deadline, Function run) {
        static_assert(sizeof(Function) <= detail::closure_bytes);
        const detail::arming begun = crew_.begin_arming();
        shim::require(begun.closure != nullptr, "there is a record");
        new (begun.closure) Function(std::move(run));
        return crew_.arm(begun.index, detail::closure_in_place<Function>::operations, detail::wait_limit::at(deadline));
    }

    /// One piece of user code is through.
    void note_end() {
        left_.add(-1);
        if (left_.count() != 0) return;
        for (std::uint32_t seat = 0; seat < crew_.seat_count(); ++seat) leave(seat);
    }

    void require_all_ran() const {
        shim::require_equal(static_cast<std::uint64_t>(left_.count()), 0, "pieces that have not run");
    }

    /// Nobody drives it any more. Those who stay obey what has come since.
    void require_rest() {
        for (std::uint32_t seat = 0; seat < crew_.seat_count(); ++seat) {
            if (retires_[seat].load(base::memory_order_relaxed)) continue;
            settle(seat);
            shim::require(crew_.at(seat).next_deadline() == detail::end_of_time, "L6: nobody waits for anything");
            crew_.at(seat).end_drive();
        }
        const timer_stats sums = crew_.stats();
        require_all_ran();
        shim::require_equal(sums.fired + sums.cancelled + sums.pending, sums.armed, "L1: fired, cancelled and pending");
        shim::require_equal(sums.pending, 0, "pending in the end");
        shim::require_equal(sums.tasks, 0, "tasks in the end");
    }

 private:
    void leave(std::uint32_t seat) {
        is_leaving_[seat].store(true, base::memory_order_seq_cst);
        crew_.at(seat).wake_up();
    }

    detail::crew crew_;
    shim::tally left_;
    std::array<base::atomic<bool>, most_workers> is_leaving_{};
    std::array<base::atomic<bool>, most_workers> retires_{};
};

/// Of two workers, a thread outside gives what it arms to the one that its number names: from here on to the second.
inline void take_an_odd_number() {
    std::uint32_t last = 0;
    const auto take_one = [&last] { shim::thread([&last] { last = base::thread_number(); }, "before").join(); };
    take_one();
    if (last % 2 != 0) take_one();
    shim::require(base::thread_number() % 2 != 0, "nobody has taken the next number");
}

/// The threads of the workers, from the first seat on, each in its own way.
class crew_threads {
 public:
    using way = void (small_crew::*)(std::uint32_t);

    crew_threads(small_crew& driven, std::initializer_list<way> ways) : driven_(driven) {
        static constexpr std::array<const char*, small_crew::most_workers> names{"zero", "one", "two"};
        std::uint32_t seat = 0;
        for (const way drives : ways) {
            threads_[seat] = shim::thread([&driven, drives, seat] { (driven.*drives)(seat); }, names[seat]);
            ++seat;
        }
    }

    /// When all is over, nothing is left.
    void finish() {
        for (shim::thread& each : threads_) {
            if (each.joinable()) each.join();
        }
        driven_.require_rest();
    }

 private:
    small_crew& driven_;
    std::array<shim::thread, small_crew::most_workers> threads_;
};

/// A task that says when it is through.
inline task<> note_end(small_crew& of) {
    of.note_end();
    co_return;
}
/// It waits, and keeps its worker.
inline task<> pass(small_crew& of, const gate& before) {
    before.pass();
    of.note_end();
    co_return;
}
inline task<> open(small_crew& of, gate& opened) {
    opened.open();
    of.note_end();
    co_return;
}

}  // namespace chime::test
