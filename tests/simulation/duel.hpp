// SPDX-License-Identifier: MIT
#pragma once

#include "support/random.hpp"
#include "worker/crew.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/testing.hpp>
#include <chime/timer_cell.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace chime::test {

/// A simulated runtime and a dumb model of it, which both are told the same, by a thread outside, by callbacks and by
/// tasks; whatever the runtime answers or does must be what the model says.
///
/// The model knows for every timer whether it is pending and until when. Everything runs on one thread, so there is one
/// right answer to every question, whichever worker has the timer.
class duel {
 public:
    explicit duel(std::uint64_t seed)
        : random_(seed), simulation_(seed, drawn_config()), runtime_(simulation_.get_runtime()) {
        for (worker_id id = 0; id < runtime_.stats().workers.size(); ++id) workers_.push_back(id);
    }
    duel(const duel&) = delete;
    duel& operator=(const duel&) = delete;

    /// Empty: all was right.
    [[nodiscard]] std::string fight() {
        const std::uint64_t rounds = 20 + random_.below(120);
        for (std::uint64_t round = 0; round < rounds && problem_.empty(); ++round) {
            act_outside();
            move_on();
        }
        if (problem_.empty()) finish();
        return problem_;
    }

    [[nodiscard]] std::uint64_t trace() const { return simulation_.trace(); }
    [[nodiscard]] const timer_stats& sums() const { return sums_; }

 private:
    static constexpr std::size_t nobody = ~std::size_t{0};

    struct timer {
        timer_handle handle;
        time_point deadline{};  ///< In force; the earliest moment at which it may run.
        std::uint64_t order = 0;
        std::uint32_t origin = 0;  ///< Which worker has armed it; or a thread outside.
        bool is_pending = false;
        bool is_sleep = false;
        int closures = 0;  ///< Alive.
        int runs = 0;
        duration period{};
        std::uint64_t retirements = 0;  ///< As of when it was armed.
        std::uint64_t moved_after = 0;  ///< How many callbacks had begun when it was postponed last.
    };
    static constexpr std::uint32_t outside = 5000;

    /// Lives as long as the closure does.
    class closure_mark {
     public:
        closure_mark(duel& home, std::size_t number) : home_(&home), number_(number) { ++mark(); }
        closure_mark(const closure_mark&) = delete;
        closure_mark& operator=(const closure_mark&) = delete;
        closure_mark(closure_mark&& other) noexcept
            : home_(std::exchange(other.home_, nullptr)), number_(other.number_) {}
        closure_mark& operator=(closure_mark&&) = delete;
        ~closure_mark() {
            if (home_ != nullptr) --mark();
        }

     private:
        [[nodiscard]] int& mark() const { return home_->timers_[number_].closures; }
        duel* home_;
        std::size_t number_;
    };

    runtime_config drawn_config() {
        static constexpr std::int64_t resolutions[] = {1, 1 << 10, 1 << 18, 1 << 24};
        runtime_config config;
        config.workers = static_cast<unsigned>(1 + random_.below(5));
        config.resolution = std::chrono::nanoseconds{resolutions[random_.below(4)]};
        config.timer_budget = 1 + random_.below(8);
        config.task_budget = 1 + random_.below(8);
        config.inline_budget = random_.below(4);
        config.inline_resumption = !random_.one_in(4);
        config.stale_slack = 64;
        config.max_timers = 1 << 12;
        config.max_tasks = 1 << 12;
        config.huge_pages = false;
        config.metronome = random_.one_in(4);
        return config;
    }

    void fail(const std::string& what, std::size_t number = nobody) {
        if (!problem_.empty()) return;
        std::ostringstream text;
        text << what;
        if (number != nobody) {
            text << "; timer " << number << (timers_[number].is_sleep ? " (a sleep)" : "") << ", deadline "
                 << timers_[number].deadline.time_since_epoch().count();
        }
        text << ", at " << simulation_.now().time_since_epoch().count() << " ns";
        problem_ = text.str();
    }
    void expect(bool holds, const char* what, std::size_t number = nobody) {
        if (!holds) fail(what, number);
    }

    [[nodiscard]] static std::uint32_t here() {
        return detail::worker::current != nullptr ? detail::worker::current->seat() : outside;
    }

    // --- What is done.

    void act_outside() {
        switch (random_.below(12)) {
        case 0:
        case 1:
        case 2:
        case 3: spawn_one(); break;
        case 4:
            if (workers_.size() < 8) workers_.push_back(runtime_.add_worker());
            break;
        case 5:
        case 6: retire_one(); break;
        default: act(); break;
        }
    }

    void move_on() {
        switch (random_.below(5)) {
        case 0: break;
        case 1:
            for (std::uint64_t left = random_.below(6); left != 0 && simulation_.step(); --left) {}
            break;
        case 2: simulation_.settle(); break;
        case 3: simulation_.advance(std::chrono::nanoseconds{random_.below(3'000'000)}); break;
        default: simulation_.advance(drawn_delay()); break;
        }
    }

    /// What anybody may do, wherever he is.
    void act() {
        if (!problem_.empty()) return;
        switch (random_.below(8)) {
        case 0:
        case 1:
        case 2: arm_one(); break;
        case 3:
        case 4: cancel_one(); break;
        case 5: postpone_one(); break;
        case 6:
            if (random_.one_in(3)) arm_periodic();
            break;
        default:
            if (!joins_.empty()) cancel_task(random_.below(joins_.size()));
            break;
        }
    }

    [[nodiscard]] std::chrono::nanoseconds drawn_delay() {
        switch (random_.below(5)) {
        case 0: return std::chrono::nanoseconds{0};
        case 1: return std::chrono::nanoseconds{random_.below(1'000)};
        case 2: return std::chrono::microseconds{random_.below(50) * 100};  // Often the same.
        case 3: return std::chrono::milliseconds{random_.below(1'000)};
        default: return std::chrono::seconds{random_.below(10'000)};
        }
    }

    std::size_t add_timer(bool is_sleep, time_point deadline) {
        timer& added = timers_.emplace_back();
        added.deadline = deadline;
        added.order = timers_.size();
        added.origin = here();
        added.retirements = retirements_;
        added.is_pending = true;
        added.is_sleep = is_sleep;
        return timers_.size() - 1;
    }

    void arm_one() {
        const std::chrono::nanoseconds delay = drawn_delay();
        const std::size_t number = add_timer(false, simulation_.now() + delay);
        auto body = [this, number, mark = closure_mark(*this, number)] { run(number); };
        const timer_handle made = random_.one_in(2) ? runtime_.timers().after(delay, std::move(body))
                                                    : runtime_.timers().at(timers_[number].deadline, std::move(body));
        timers_[number].handle = made;
    }

    void arm_periodic() {
        const duration period = std::chrono::microseconds{1 + random_.below(100'000)};
        const std::size_t number = add_timer(false, simulation_.now() + period);
        timers_[number].period = period;
        timers_[number].handle = runtime_.timers().every(
            period, missed_ticks::skip, [this, number, mark = closure_mark(*this, number)] { run(number); });
    }

    [[nodiscard]] std::size_t draw_timer() {
        if (timers_.empty()) return nobody;
        // Mostly a young one, which is pending more often.
        const std::size_t young = std::min<std::size_t>(timers_.size(), 16);
        return random_.one_in(4) ? random_.below(timers_.size()) : timers_.size() - 1 - random_.below(young);
    }

    void cancel_one() {
        const std::size_t number = draw_timer();
        if (number == nobody || !timers_[number].handle) return;
        const cancel_result answer = runtime_.timers().cancel(timers_[number].handle);
        timer& its = timers_[number];
        if (number == running_) {
            expect(answer == cancel_result::running, "cancel of itself answers wrongly", number);
            is_last_run_ = true;
            return;
        }
        const bool is_running = std::find(running_stack_.begin(), running_stack_.end(), number) != running_stack_.end();
        if (is_running) return;
        if (may_be_gone(its) && answer == cancel_result::gone) return;
        expect(answer == (its.is_pending ? cancel_result::cancelled : cancel_result::gone), "cancel answers wrongly",
               number);
        if (answer != cancel_result::cancelled) return;
        its.is_pending = false;
        expect(its.is_sleep || its.closures == 0, "the closure outlives the cancel", number);
    }

    void postpone_one() {
        const std::size_t number = draw_timer();
        if (number == nobody || !timers_[number].handle || number == running_) return;
        const std::chrono::nanoseconds delay = drawn_delay();
        const bool answer = runtime_.timers().postpone(timers_[number].handle, delay);
        timer& its = timers_[number];
        if (may_be_gone(its) && !answer) return;
        expect(answer == its.is_pending, "postpone answers wrongly", number);
        if (!answer) return;
        its.deadline = simulation_.now() + delay;
        its.moved_after = begun_;
    }

    /// A sleeper whose time has come may have been woken, and wait for its turn.
    [[nodiscard]] bool may_be_awake(const timer& its) const {
        return its.is_sleep && its.is_pending && its.deadline <= simulation_.now();
    }

    /// The same; and while everything stops, whatever is pending may have been cancelled, and a task that was ready still
    /// asks.
    [[nodiscard]] bool may_be_gone(const timer& its) const { return is_stopping_ || may_be_awake(its); }

    void cancel_task(std::size_t which) {
        joins_[which].cancel();
        const std::size_t sleep = sleeps_[which];
        if (sleep != nobody && !may_be_awake(timers_[sleep])) timers_[sleep].is_pending = false;
    }

    void retire_one() {
        if (workers_.size() < 2) return;
        const std::size_t place = random_.below(workers_.size());
        runtime_.retire_worker(workers_[place]);
        ++retirements_;
        workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(place));
    }

    void spawn_one() {
        sleeps_.push_back(nobody);
        joins_.push_back(runtime_.spawn(sleepy(sleeps_.size() - 1, 1 + random_.below(4))));
        ++alive_;
    }

    task<> sleepy(std::size_t self, std::uint64_t sleeps) {
        struct end_of_life {
            ~end_of_life() { --home->alive_; }
            duel* home;
        } const at_the_end{this};
        for (; sleeps != 0; --sleeps) {
            const std::chrono::nanoseconds delay = drawn_delay();
            const std::size_t number = add_timer(true, simulation_.now() + delay);
            const bool was_doomed = this_task::is_cancelled();
            timers_[number].is_pending = !was_doomed;
            timer_cell cell(runtime_.timers());
            auto nap = sleep_of{*this, number, cell, delay};
            if (!was_doomed) sleeps_[self] = number;
            const wake_reason reason = co_await nap;
            sleeps_[self] = nobody;
            timer& its = timers_[number];
            if (reason == wake_reason::elapsed) {
                expect(its.is_pending, "a sleeper woke that was cancelled", number);
                expect(simulation_.now() >= its.deadline, "a sleeper woke early", number);
                expect(!was_doomed, "a sleep of a cancelled task elapsed", number);
            } else if (its.is_pending) {
                expect(this_task::is_cancelled() || is_stopping_, "a sleep was cancelled by nobody", number);
            }
            its.is_pending = false;
            ++its.runs;
            expect(its.runs == 1, "a sleeper woke twice", number);
            if (reason == wake_reason::cancelled && (is_stopping_ || random_.one_in(2))) co_return;
            act();
            if (random_.one_in(4)) co_await yield();
            if (random_.one_in(8)) spawn_one();
        }
    }

    /// A sleep whose handle others know before it begins.
    struct sleep_of {
        duel& home;
        std::size_t number;
        timer_cell& cell;
        std::chrono::nanoseconds delay;
        [[nodiscard]] static bool await_ready() noexcept { return false; }
        template <class Promise>
        bool await_suspend(std::coroutine_handle<Promise> frame) {
            home.timers_[number].handle = cell.prepare(frame, delay);
            return cell.commit();
        }
        [[nodiscard]] wake_reason await_resume() noexcept { return cell.reason(); }
    };

    /// A callback.
    void run(std::size_t number) {
        timer& its = timers_[number];
        expect(its.is_pending, "it ran after it was cancelled, or twice", number);
        expect(simulation_.now() >= its.deadline, "it ran early", number);
        expect(here() != outside, "it ran outside of a worker", number);
        check_order(number);
        ++begun_;
        its.is_pending = false;
        ++its.runs;
        running_stack_.push_back(number);
        running_ = number;
        is_last_run_ = false;
        if (random_.one_in(2)) act();
        if (random_.one_in(8)) spawn_one();
        running_ = nobody;
        running_stack_.pop_back();
        timer& after = timers_[number];  // The table may have moved.
        if (after.period != duration{} && !is_last_run_ && !is_stopping_) {
            if (after.runs >= 5) {
                runtime_.timers().cancel(after.handle);
                return;
            }
            const auto missed = (simulation_.now() - after.deadline) / after.period;
            after.deadline += (missed + 1) * after.period;
            after.is_pending = true;
        }
    }

    /// In one turn of one worker, what is due runs in order of its deadline; of one origin also in order of arming.
    void check_order(std::size_t number) {
        timer_stats counted;
        detail::worker::current->add_stats(counted);
        const std::pair<std::uint32_t, std::uint64_t> turn{here(), counted.turns};
        if (turn == last_turn_) {
            const timer& before = timers_[last_in_turn_];
            const timer& now = timers_[number];
            expect(last_deadline_ <= now.deadline, "it ran before one with an earlier deadline", number);
            // What threads outside have armed is numbered by whoever accepts it; so it has no order after one has left.
            const bool has_order =
                before.origin == now.origin && (now.origin != outside || before.retirements == retirements_);
            const bool came_later = now.moved_after == begun_;  // By the very one that ran before it, or in between.
            if (last_deadline_ == now.deadline && has_order && !came_later && before.period == duration{} &&
                now.period == duration{}) {
                expect(before.order < now.order, "it ran before one that was armed earlier", number);
            }
        }
        last_turn_ = turn;
        last_in_turn_ = number;
        last_deadline_ = timers_[number].deadline;
    }

    void finish() {
        if (random_.one_in(2)) {
            simulation_.run();
            for (std::size_t number = 0; number < timers_.size(); ++number) {
                expect(!timers_[number].is_pending, "it was lost", number);
            }
            expect(alive_ == 0, "a task was lost");
        }
        is_stopping_ = true;
        runtime_.shutdown();
        joins_.clear();
        for (std::size_t number = 0; number < timers_.size(); ++number) {
            expect(timers_[number].closures == 0, "a closure is left", number);
        }
        expect(alive_ == 0, "a task is left");
        sums_ = runtime_.stats().timers;
        expect(sums_.armed == sums_.fired + sums_.cancelled + sums_.pending, "L1: armed, fired, cancelled, pending");
        expect(sums_.pending == 0, "L9: something is pending");
        expect(sums_.tasks == 0 && sums_.waiting == 0, "L9: a task is left");
        expect(sums_.suspensions == sums_.resumed() + sums_.destroyed + sums_.waiting, "L2: suspensions, resumptions");
        expect(sums_.migrated == sums_.adopted, "L7: migrated, adopted");
    }

    random_source random_;
    std::string problem_;
    std::deque<timer> timers_;
    std::vector<worker_id> workers_;
    std::vector<join_handle<void>> joins_;
    std::vector<std::size_t> sleeps_;  ///< What each of them sleeps in.
    std::int64_t alive_ = 0;
    std::uint64_t retirements_ = 0;
    std::uint64_t begun_ = 1;
    bool is_stopping_ = false;
    std::size_t running_ = nobody;
    std::vector<std::size_t> running_stack_;
    bool is_last_run_ = false;
    std::pair<std::uint32_t, std::uint64_t> last_turn_{outside, 0};
    std::size_t last_in_turn_ = nobody;
    time_point last_deadline_{};
    timer_stats sums_;
    testing::simulation simulation_;
    runtime& runtime_;
};

}  // namespace chime::test
