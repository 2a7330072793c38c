// SPDX-License-Identifier: MIT
#pragma once

#include <chime/stats.hpp>
#include <chime/testing.hpp>
#include <chime/timers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <sstream>
#include <string>
#include <utility>

namespace chime::test {

/// What a simulated runtime has to do, in the simplest words: which timers are pending, and until when. It is told what
/// is asked of the runtime, what the runtime answers and what it runs, and finds out what is wrong with that.
///
/// Everything runs on one thread, so there is one right answer to every question, whichever worker has the timer. And time
/// stands while anybody has something to do, so whatever runs does so exactly when it is due. Belongs to a duel.
class timer_model {
 public:
    static constexpr std::size_t nobody = ~std::size_t{0};
    static constexpr std::uint32_t outside = 5000;

    /// One turn of the worker in one seat; what is done outside of all turns has one of its own.
    struct turn_of {
        std::uint32_t seat = outside;
        std::uint64_t turn = 0;
        bool operator==(const turn_of&) const = default;
    };

    struct timer {
        timer_handle handle;
        time_point deadline{};  ///< In force; the earliest moment at which it may run.
        time_point due{};       ///< And when it must: then, or at once if that is over, or as soon as it is cancelled.
        std::uint64_t order = 0;
        turn_of armed_in;
        bool is_pending = false;
        bool is_sleep = false;
        bool is_marked = false;  ///< Its closure tells when it goes.
        int closures = 0;        ///< Alive.
        int runs = 0;
        duration period{};
        missed_ticks policy = missed_ticks::skip;
        std::uint64_t retirements = 0;  ///< As of when it was armed.
        std::uint64_t moved_after = 0;  ///< How many callbacks had begun when it was postponed last.
    };

    /// Lives as long as the closure does.
    class closure_mark {
     public:
        closure_mark(timer_model& home, std::size_t number) : home_(&home), number_(number) {
            home_->at(number_).is_marked = true;
            ++home_->at(number_).closures;
        }
        closure_mark(const closure_mark&) = delete;
        closure_mark& operator=(const closure_mark&) = delete;
        closure_mark(closure_mark&& other) noexcept
            : home_(std::exchange(other.home_, nullptr)), number_(other.number_) {}
        closure_mark& operator=(closure_mark&&) = delete;
        ~closure_mark() {
            if (home_ != nullptr) home_->end_closure(number_);
        }

     private:
        timer_model* home_;
        std::size_t number_;
    };

    timer_model() = default;
    timer_model(const timer_model&) = delete;
    timer_model& operator=(const timer_model&) = delete;

    /// Whose time it is. The model outlives it, because closures tell when they go.
    void follow(const testing::simulation& simulated) { simulation_ = &simulated; }

    /// Empty: all was right so far.
    [[nodiscard]] const std::string& problem() const { return problem_; }
    void expect(bool holds, const char* what, std::size_t number = nobody) {
        if (!holds) fail(what, number);
    }

    [[nodiscard]] timer& at(std::size_t number) { return timers_[number]; }
    [[nodiscard]] std::size_t size() const { return timers_.size(); }
    [[nodiscard]] bool is_stopped() const { return is_stopped_; }

    // --- What is asked.

    std::size_t arm(bool is_sleep, time_point deadline, const turn_of& where) {
        timer& added = timers_.emplace_back();
        added.order = timers_.size();
        added.armed_in = where;
        added.retirements = retirements_;
        added.is_sleep = is_sleep;
        arm_again(added, deadline);
        return timers_.size() - 1;
    }

    /// It was armed, or not; that is up to whether everything has been stopped.
    void arm_answered(std::size_t number, bool is_armed) {
        expect(is_armed == !is_stopped_, is_armed ? "it was armed after the end" : "arming was refused", number);
        if (is_armed) return;
        --armed_;
        ++refused_;
        timers_[number].is_pending = false;
    }

    void spawn_answered(bool is_spawned) {
        expect(is_spawned == !is_stopped_, is_spawned ? "a task began after the end" : "a task was refused");
        if (is_spawned) {
            ++alive_;
        } else {
            ++refused_;
        }
    }
    void end_task() { --alive_; }

    /// `was_pending`: before it was asked. While everything stops, the closure is gone when the answer comes, and has told.
    void cancel_answered(std::size_t number, bool was_pending, cancel_result answer) {
        timer& its = timers_[number];
        if (number == running_) {
            expect(answer == cancel_result::running, "cancel of itself answers wrongly", number);
            is_last_run_ = true;
            return;
        }
        if (may_be_gone(its) && answer == cancel_result::gone) return;
        expect(answer == (was_pending ? cancel_result::cancelled : cancel_result::gone), "cancel answers wrongly",
               number);
        if (answer != cancel_result::cancelled) return;
        end_pending(its);
        expect(its.closures == 0, "the closure outlives the cancel", number);
    }

    void postpone_answered(std::size_t number, time_point deadline, bool answer) {
        timer& its = timers_[number];
        if (may_be_gone(its) && !answer) return;
        expect(answer == its.is_pending, "postpone answers wrongly", number);
        if (!answer) return;
        ++postponed_;
        its.deadline = deadline;
        its.due = std::max(deadline, now());
        its.moved_after = begun_;
    }

    /// The task that sleeps in it was cancelled.
    void cancel_sleeper(std::size_t number) {
        if (!may_be_awake(timers_[number])) end_pending(timers_[number]);
    }

    /// One of the workers has left.
    void note_retirement() { ++retirements_; }

    /// From now on nothing is armed, and all that is pending is over before time moves on.
    void stop() {
        if (!is_stopped_) stopped_at_ = now();
        is_stopped_ = true;
    }

    // --- What happens.

    void begin_run(std::size_t number, const turn_of& where) {
        timer& its = timers_[number];
        expect(its.is_pending, "it ran after it was cancelled, or twice", number);
        expect(where.seat != outside, "it ran outside of a worker", number);
        expect(where != its.armed_in, "it ran in the turn that it was armed in", number);
        check_time(number);
        check_order(number, where);
        note_fired(number);
        ++begun_;
        its.is_pending = false;
        ++its.runs;
        running_ = number;
        is_last_run_ = false;
    }

    void end_run(const turn_of& where) {
        timer& its = timers_[std::exchange(running_, nobody)];
        if (its.period == duration{} || is_last_run_ || is_stopped_) return;
        const duration late = now() - its.deadline;
        its.armed_in = where;
        switch (its.policy) {
        case missed_ticks::skip: arm_again(its, its.deadline + (late / its.period + 1) * its.period); break;
        case missed_ticks::burst: arm_again(its, its.deadline + its.period); break;
        case missed_ticks::delay: arm_again(its, now() + its.period); break;
        }
    }

    /// A task that is cancelled, or told to stop, does not sleep; it only yields.
    void begin_sleep(std::size_t number, bool is_cancelled) {
        if (is_cancelled) end_pending(timers_[number]);
    }

    /// True: it was the end of everything that woke it.
    bool end_sleep(std::size_t number, wake_reason reason, bool is_cancelled) {
        timer& its = timers_[number];
        const bool was_pending = std::exchange(its.is_pending, false);
        const bool was_due = its.deadline <= now();
        expect(its.runs == 0, "a sleeper woke twice", number);
        check_time(number);
        if (reason == wake_reason::elapsed) {
            expect(was_pending, "a sleeper woke that was cancelled", number);
            note_fired(number);
        } else if (was_pending) {
            expect(is_cancelled || is_stopped_, "a sleep was cancelled by nobody", number);
        }
        ++its.runs;
        return is_stopped_ && was_pending && !was_due;
    }

    // --- What holds.

    /// Nothing is left to do before time moves on.
    void check_settled(const timer_stats& sums) {
        std::uint64_t pending = 0;
        for (std::size_t number = 0; number < timers_.size(); ++number) {
            timer& its = timers_[number];
            // Nobody tells when it was cancelled; the runtime's own count does, below.
            if (is_stopped_ && !its.is_sleep && !its.is_marked) its.is_pending = false;
            expect(!its.is_pending || its.deadline > now(), "L5: its time has come, and nothing happens", number);
            expect(!its.is_pending || !is_stopped_, "it is pending after the end", number);
            expect(!its.is_marked || (its.closures == 1) == its.is_pending, "its closure is gone or left", number);
            if (its.is_pending) ++pending;
        }
        expect(sums.pending == pending, "L5: other timers are pending than should be");
        expect(sums.tasks == static_cast<std::uint64_t>(alive_), "other tasks live than should");
        expect(!is_stopped_ || alive_ == 0, "a task goes on after the end");
        expect(sums.armed == armed_, "L1: armed");
        expect(sums.fired == fired_, "L1: fired");
        expect(sums.postponed == postponed_, "L1: postponed");
        expect(sums.refused == refused_, "L1: refused");
        expect(sums.lateness.max == latest_, "L3: the latest was late by something else");
    }

    /// And nothing will be.
    void check_over() {
        for (std::size_t number = 0; number < timers_.size(); ++number) {
            expect(!timers_[number].is_pending, "it was lost", number);
            expect(timers_[number].closures == 0, "a closure is left", number);
        }
        expect(alive_ == 0, "a task was lost");
    }

 private:
    [[nodiscard]] time_point now() const { return simulation_->now(); }

    void fail(const std::string& what, std::size_t number) {
        if (!problem_.empty()) return;
        std::ostringstream text;
        text << what;
        if (number != nobody) {
            const timer& its = timers_[number];
            text << "; timer " << number << (its.is_sleep ? " (a sleep)" : "") << ", deadline "
                 << its.deadline.time_since_epoch().count();
        }
        text << ", at " << now().time_since_epoch().count() << " ns";
        problem_ = text.str();
    }

    void arm_again(timer& its, time_point deadline) {
        its.deadline = deadline;
        its.due = std::max(deadline, now());
        its.is_pending = true;
        ++armed_;
    }

    /// A sleeper that is cancelled wakes up at once.
    void end_pending(timer& its) {
        its.is_pending = false;
        its.due = now();
    }

    void end_closure(std::size_t number) {
        timer& its = timers_[number];
        --its.closures;
        // Nobody says when the runtime gets to it; it is the closure that tells.
        if (is_stopped_) its.is_pending = false;
    }

    /// A sleeper whose time has come may have been woken, and wait for its turn.
    [[nodiscard]] bool may_be_awake(const timer& its) const {
        return its.is_sleep && its.is_pending && its.deadline <= now();
    }

    /// The same; and while everything stops, whatever is pending may have been cancelled, if it has no closure to tell.
    [[nodiscard]] bool may_be_gone(const timer& its) const {
        return may_be_awake(its) || (is_stopped_ && !its.is_marked);
    }

    void check_time(std::size_t number) {
        const timer& its = timers_[number];
        expect(now() == (is_stopped_ ? stopped_at_ : its.due), "L5: it did not run when it had to", number);
    }

    void note_fired(std::size_t number) {
        const timer& its = timers_[number];
        expect(now() >= its.deadline, "L3: it ran early", number);
        ++fired_;
        latest_ = std::max<std::chrono::nanoseconds>(latest_, now() - its.deadline);
    }

    /// In one turn of one worker, what is due runs in order of its deadline; of one origin also in order of arming.
    void check_order(std::size_t number, const turn_of& where) {
        const timer& its = timers_[number];
        const bool came_later = its.moved_after == begun_;  // By the very one that ran before it, or in between.
        if (where == last_turn_ && !came_later) {
            const timer& before = timers_[last_in_turn_];
            expect(last_deadline_ <= its.deadline, "it ran before one with an earlier deadline", number);
            // What threads outside have armed is numbered by whoever accepts it; so it has no order after one has left.
            const std::uint32_t origin = its.armed_in.seat;
            const bool has_order =
                before.armed_in.seat == origin && (origin != outside || before.retirements == retirements_);
            if (last_deadline_ == its.deadline && has_order && before.period == duration{} &&
                its.period == duration{}) {
                expect(before.order < its.order, "it ran before one that was armed earlier", number);
            }
        }
        last_turn_ = where;
        last_in_turn_ = number;
        last_deadline_ = its.deadline;
    }

    const testing::simulation* simulation_ = nullptr;
    std::string problem_;
    std::deque<timer> timers_;
    std::int64_t alive_ = 0;
    std::uint64_t retirements_ = 0;
    bool is_stopped_ = false;
    time_point stopped_at_{};

    // As the statistics have to be.
    std::uint64_t armed_ = 0;
    std::uint64_t fired_ = 0;
    std::uint64_t postponed_ = 0;
    std::uint64_t refused_ = 0;
    std::chrono::nanoseconds latest_{};

    // The callback that runs, and the one before it.
    std::uint64_t begun_ = 1;
    std::size_t running_ = nobody;
    bool is_last_run_ = false;
    turn_of last_turn_;
    std::size_t last_in_turn_ = nobody;
    time_point last_deadline_{};
};

}  // namespace chime::test
