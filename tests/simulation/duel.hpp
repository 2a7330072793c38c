// SPDX-License-Identifier: MIT
#pragma once

#include "simulation/draws.hpp"
#include "simulation/timer_model.hpp"
#include "simulation/worker_model.hpp"
#include "support/random.hpp"
#include "support/runtime_ledger.hpp"
#include "worker/crew.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/testing.hpp>
#include <chime/timer_cell.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace chime::test {

/// A simulated runtime and a dumb model of it, which both are told the same, by a thread outside, by callbacks and by
/// tasks; whatever the runtime answers or does must be what the model says.
class duel {
 public:
    explicit duel(std::uint64_t seed)
        : random_(seed), simulation_(seed, draw_config(random_)), runtime_(simulation_.get_runtime()) {
        model_.follow(simulation_);
        for (const worker_stats& each : runtime_.stats().workers) seat(each.worker);
    }
    duel(const duel&) = delete;
    duel& operator=(const duel&) = delete;

    /// Empty: all was right.
    [[nodiscard]] std::string fight() {
        const std::uint64_t rounds = 20 + random_.below(120);
        for (std::uint64_t round = 0; round < rounds && model_.problem().empty(); ++round) {
            act_outside();
            if (move_on()) check_settled();
        }
        if (model_.problem().empty()) finish();
        return model_.problem();
    }

    [[nodiscard]] std::uint64_t trace() const { return simulation_.trace(); }
    [[nodiscard]] const timer_stats& sums() const { return sums_; }
    /// How often it came to what comes seldom.
    struct rarities {
        std::uint64_t stops = 0;         ///< Of everything, before the end.
        std::uint64_t retired = 0;       ///< Workers that a callback or a task has sent away.
        std::uint64_t not_oneself = 0;   ///< Refused, because it was the one that this ran on.
        std::uint64_t missed_ticks = 0;  ///< Of periodic timers.
    };
    [[nodiscard]] const rarities& seen() const { return seen_; }

 private:
    static constexpr std::size_t nobody = timer_model::nobody;

    /// Which turn of which worker this is.
    [[nodiscard]] static timer_model::turn_of here() {
        const detail::worker* const mine = detail::worker::current();
        if (mine == nullptr) return {};
        timer_stats counted;
        mine->add_stats(counted);
        return {mine->seat(), counted.turns};
    }

    [[nodiscard]] timer_handle name_of(std::size_t number) { return model_.at(number).handle; }

    // --- What is done.

    void act_outside() {
        switch (random_.below(12)) {
        case 0:
        case 1:
        case 2:
        case 3: spawn_one(); break;
        case 4: add_worker(); break;
        case 5:
        case 6: retire_one(); break;
        default: act(); break;
        }
    }

    /// True: nothing is left to do before time moves on.
    bool move_on() {
        switch (random_.below(5)) {
        case 0: return false;
        case 1:
            for (std::uint64_t left = random_.below(6); left != 0; --left) {
                if (!simulation_.step()) return true;
            }
            return false;
        case 2: simulation_.settle(); return true;
        case 3: simulation_.advance(std::chrono::nanoseconds{random_.below(3'000'000)}); return true;
        default: simulation_.advance(drawn_delay()); return true;
        }
    }

    /// What anybody may do, wherever he is.
    void act() {
        if (!model_.problem().empty()) return;
        switch (random_.below(9)) {
        case 0:
        case 1:
        case 2: arm_one(); break;
        case 3:
        case 4: cancel_one(); break;
        case 5: postpone_one(); break;
        case 6:
            if (random_.one_in(3)) arm_periodic();
            break;
        case 7: act_seldom(); break;
        default:
            if (!joins_.empty()) cancel_task(random_.below(joins_.size()));
            break;
        }
    }

    void act_seldom() {
        const std::uint64_t drawn = random_.below(120);
        if (drawn == 0) {
            stop_all();
        } else if (drawn == 1) {
            arm_crowd();
        } else if (drawn < 7) {
            add_worker();
        } else if (drawn < 14) {
            retire_one();
        }
    }

    [[nodiscard]] std::chrono::nanoseconds drawn_delay() { return draw_delay(random_); }
    [[nodiscard]] time_point drawn_deadline() { return draw_deadline(random_, simulation_.now()); }

    // --- Timers.

    /// What a refused request throws must say that everything was stopped.
    template <class Request>
    std::optional<timer_handle> answer_of(const Request& request) {
        try {
            return request();
        } catch (const std::system_error& refused) {
            model_.expect(refused.code() == errc::stopped, "arming is refused for a wrong reason");
            return std::nullopt;
        }
    }

    /// In every way in which it can be asked for.
    template <class Body>
    std::optional<timer_handle> arm_until(time_point deadline, Body& body) {
        timers& all = runtime_.timers();
        const duration delay = deadline - simulation_.now();
        const bool tries = random_.one_in(2);
        if (delay < duration{} || random_.one_in(2)) {
            return tries ? all.try_at(deadline, std::move(body))
                         : answer_of([&] { return all.at(deadline, std::move(body)); });
        }
        return tries ? all.try_after(delay, std::move(body))
                     : answer_of([&] { return all.after(delay, std::move(body)); });
    }

    void arm_one() {
        const time_point deadline = drawn_deadline();
        const std::size_t number = model_.arm(false, deadline, here());
        std::optional<timer_handle> made;
        if (random_.one_in(2)) {
            auto body = [this, number, mark = timer_model::closure_mark(model_, number)] { run(number); };
            made = arm_until(deadline, body);
            model_.expect(model_.at(number).closures == 1, "a closure was lost on its way", number);
        } else {
            auto body = [this, number] { run(number); };  // Nothing to destroy: these go a shorter way.
            made = arm_until(deadline, body);
        }
        take_answer(number, made);
    }

    /// More than may be stale at the same time, most of which are cancelled at once.
    void arm_crowd() {
        const std::size_t first = model_.size();
        for (std::uint64_t left = 100 + random_.below(100); left != 0; --left) arm_one();
        for (std::size_t number = first; number < model_.size(); ++number) {
            if (name_of(number) && !random_.one_in(16)) cancel(number);
        }
    }

    void arm_periodic() {
        static constexpr missed_ticks policies[] = {missed_ticks::skip, missed_ticks::burst, missed_ticks::delay};
        const duration period = std::chrono::microseconds{1 + random_.below(100'000)};
        const std::size_t number = model_.arm(false, simulation_.now() + period, here());
        const missed_ticks policy = policies[random_.below(3)];
        model_.at(number).period = period;
        model_.at(number).policy = policy;
        auto body = [this, number, mark = timer_model::closure_mark(model_, number)] { run(number); };
        timers& all = runtime_.timers();
        take_answer(number, random_.one_in(2) ? all.try_every(period, policy, std::move(body))
                                              : answer_of([&] { return all.every(period, policy, std::move(body)); }));
        if (random_.one_in(4)) postpone_to(number, drawn_deadline());
    }

    void take_answer(std::size_t number, const std::optional<timer_handle>& made) {
        if (made) model_.at(number).handle = *made;
        model_.arm_answered(number, made.has_value());
    }

    [[nodiscard]] std::size_t draw_timer() {
        if (model_.size() == 0) return nobody;
        // Mostly a young one, which is pending more often.
        const std::size_t young = random_.one_in(4) ? model_.size() : std::min<std::size_t>(model_.size(), 16);
        const std::size_t drawn = model_.size() - 1 - random_.below(young);
        return name_of(drawn) ? drawn : nobody;
    }

    void cancel_one() {
        const std::size_t number = draw_timer();
        if (number != nobody) cancel(number);
    }

    /// Nothing runs at the same time, so there is nothing to wait for.
    void cancel(std::size_t number) {
        const bool was_pending = model_.at(number).is_pending;
        timers& all = runtime_.timers();
        model_.cancel_answered(number, was_pending,
                               random_.one_in(4) ? all.cancel_and_wait(name_of(number)) : all.cancel(name_of(number)));
    }

    void postpone_one() {
        const std::size_t number = draw_timer();
        if (number == nobody) return;
        if (random_.one_in(2)) {
            postpone_to(number, drawn_deadline());
        } else {
            const std::chrono::nanoseconds delay = drawn_delay();
            const bool answer = runtime_.timers().postpone(name_of(number), delay);
            model_.postpone_answered(number, simulation_.now() + delay, answer);
        }
    }

    void postpone_to(std::size_t number, time_point deadline) {
        model_.postpone_answered(number, deadline, runtime_.timers().postpone_until(name_of(number), deadline));
    }

    /// A callback.
    void run(std::size_t number) {
        model_.begin_run(number, here());
        const timer_model::timer& its = model_.at(number);
        const bool is_periodic = its.period != duration{};
        if (is_periodic && simulation_.now() - its.deadline >= its.period) ++seen_.missed_ticks;
        if (random_.one_in(2)) act();
        if (random_.one_in(8)) spawn_one();
        if (is_periodic && its.runs == 5) {
            model_.cancel_answered(number, false, runtime_.timers().cancel(name_of(number)));
        }
        model_.end_run(here());
    }

    // --- Tasks.

    void cancel_task(std::size_t which) {
        joins_[which].cancel();
        if (sleeps_[which] != nobody) model_.cancel_sleeper(sleeps_[which]);
    }

    void spawn_one() {
        std::optional<join_handle<void>> joined = runtime_.try_spawn(sleepy(sleeps_.size(), 1 + random_.below(4)));
        model_.spawn_answered(joined.has_value());
        if (!joined) return;
        sleeps_.push_back(nobody);
        joins_.push_back(std::move(*joined));
    }

    task<> sleepy(std::size_t self, std::uint64_t sleeps) {
        struct end_of_life {
            ~end_of_life() { model.end_task(); }
            timer_model& model;
        } const at_the_end{model_};
        bool was_told = false;
        for (; sleeps != 0; --sleeps) {
            const std::chrono::nanoseconds delay = drawn_delay();
            const std::size_t number = model_.arm(true, simulation_.now() + delay, here());
            const bool is_end = model_.is_stopped();
            const bool was_doomed = this_task::is_cancelled();
            model_.begin_sleep(number, was_doomed);
            timer_cell cell(runtime_.timers());
            auto nap = sleep_of{*this, number, cell, delay};
            if (!was_doomed) sleeps_[self] = number;
            const wake_reason reason = co_await nap;
            sleeps_[self] = nobody;
            model_.expect(!was_told, "a task slept after it was told that this is the end", number);
            was_told = model_.end_sleep(number, reason, this_task::is_cancelled()) || is_end;
            if (reason == wake_reason::cancelled && random_.one_in(2)) co_return;
            act();
            const std::size_t other = random_.one_in(8) ? draw_timer() : nobody;
            if (other != nobody) {
                const bool was_pending = model_.at(other).is_pending;
                auto joining = runtime_.timers().cancel_and_join(name_of(other));
                const cancel_result answer = co_await joining;
                model_.cancel_answered(other, was_pending, answer);
            }
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
            home.model_.at(number).handle = cell.prepare(frame, delay);
            return cell.commit();
        }
        [[nodiscard]] wake_reason await_resume() noexcept { return cell.reason(); }
    };

    // --- Workers, and the end.

    void add_worker() {
        if (workers_.count() >= 8) return;
        const std::optional<worker_id> added = runtime_.try_add_worker();
        model_.expect(added.has_value() == !workers_.is_closed(), "adding a worker answers wrongly");
        if (added) seat(*added);
    }

    void seat(worker_id added) {
        model_.expect(workers_.add(added, detail::context_access::home_of(runtime_)), "a new worker sits nowhere");
    }

    /// Any of them, from anywhere: also the last one, the one that this is, or one that there is not.
    void retire_one() {
        const worker_id id = random_.one_in(8) ? random_.below(16) : workers_.at(random_.below(workers_.count()));
        const std::optional<errc> expected = workers_.refusal_of(id, here().seat);
        std::optional<errc> refused;
        try {
            runtime_.retire_worker(id);
        } catch (const std::system_error& why) {
            refused = static_cast<errc>(why.code().value());
        }
        model_.expect(refused == expected, "retiring a worker answers wrongly");
        if (refused == errc::on_a_worker) ++seen_.not_oneself;
        if (refused) return;
        if (runtime_.is_on_a_worker()) ++seen_.retired;
        model_.note_retirement();
        workers_.retire(id);
    }

    void stop_all() {
        runtime_.timers().stop();
        if (!model_.is_stopped()) ++seen_.stops;
        model_.stop();
    }

    void check_settled() {
        const timer_stats sums = runtime_.stats().timers;
        model_.check_settled(sums);
        model_.expect(sums.stale_tickets <= sums.pending + workers_.count() * duel_stale_slack,
                      "L6: stale tickets pile up");
        if (random_.one_in(8)) check_ledger_at_rest(runtime_);
    }

    void finish() {
        if (random_.one_in(2)) {
            simulation_.run();
            check_settled();
            model_.check_over();
        }
        workers_.close();
        model_.stop();
        check_ledger_after_shutdown(runtime_);
        joins_.clear();
        sums_ = runtime_.stats().timers;
        model_.check_settled(sums_);
        model_.check_over();
        model_.expect(!::testing::Test::HasFailure(), "the ledger, see above");
    }

    random_source random_;
    timer_model model_;
    worker_model workers_;
    std::vector<join_handle<void>> joins_;
    std::vector<std::size_t> sleeps_;  ///< What each of them sleeps in.
    rarities seen_;
    timer_stats sums_;
    testing::simulation simulation_;
    runtime& runtime_;
};

}  // namespace chime::test
