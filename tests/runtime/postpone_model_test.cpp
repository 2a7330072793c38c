// SPDX-License-Identifier: MIT
//
// A context and the dumbest model of it, side by side: a map sorted by (deadline, arming number).
#include "support/ledger.hpp"
#include "support/random.hpp"
#include "support/virtual_time.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>
#include <chime/timer_cell.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// Arms, cancels, postpones and advances at random, outside and inside of the loop, callbacks and sleeps, and compares
/// every answer and every firing with the model. The first disagreement ends the run.
class context_duel {
 public:
    context_duel(std::uint64_t seed, std::chrono::nanoseconds resolution)
        : random_(seed), context_({.resolution = resolution, .stale_slack = 64}) {
        for (int count = 0; count < sleepers; ++count) spawn_detached(*context_, sleep_again_and_again(*this));
    }

    void run(std::uint64_t operations) {
        for (std::uint64_t done = 0; done < operations && !has_failed(); ++done) {
            if (random_.one_in(4)) {
                advance();
            } else {
                interfere();
            }
        }
        if (!has_failed()) finish();
    }

 private:
    static constexpr int sleepers = 20;
    static constexpr std::size_t most_pending = 400;
    using key = std::pair<time_point, std::uint64_t>;

    struct timer {
        timer_handle handle;
        time_point deadline;
        bool is_pending = true;
        bool is_new = false;  ///< Armed in this turn: does not fire in it.
    };

    // --- The model.

    std::uint64_t note_armed(timer_handle handle, time_point deadline) {
        const std::uint64_t number = timers_.size();
        timers_.push_back({handle, deadline, true, is_in_turn_});
        (is_in_turn_ ? waiting_ : due_).insert({deadline, number});
        return number;
    }

    void forget(std::uint64_t number) {
        timer& its = timers_[number];
        (its.is_new ? waiting_ : due_).erase({its.deadline, number});
        its.is_pending = false;
    }

    void note_fired(std::uint64_t number) {
        if (due_.empty() || due_.begin()->first > context_.now()) {
            return fail("fired, but nothing is due", number);
        }
        if (due_.begin()->second != number) return fail("fired, but it is not its turn", number);
        forget(number);
        ++fired_;
    }

    // --- Operations.

    void interfere() {
        switch (random_.below(8)) {
        case 0:
        case 1:
        case 2: arm(); break;
        case 3:
        case 4: cancel(); break;
        default: postpone(); break;
        }
    }

    void arm() {
        if (due_.size() + waiting_.size() > most_pending) return cancel();
        const std::uint64_t number = timers_.size();
        const auto react = [this, number] { on_fired(number); };
        const time_point deadline = draw_deadline();
        if (random_.one_in(2)) {
            note_armed(context_->timers().at(deadline, react), deadline);
        } else {
            const auto delay = deadline - context_.now();  // Maybe negative: then it is due now.
            note_armed(context_->timers().after(delay, react), std::max(deadline, context_.now()));
        }
    }

    void cancel() {
        if (timers_.empty()) return;
        const std::uint64_t number = draw_timer();
        const bool is_pending = timers_[number].is_pending;
        const cancel_result answer = context_->timers().cancel(timers_[number].handle);
        if (number == running_)
            return expect(answer == cancel_result::running, "cancelling oneself is answered wrongly", number);
        expect(answer == (is_pending ? cancel_result::cancelled : cancel_result::gone), "cancel answers wrongly",
               number);
        if (!is_pending) return;
        forget(number);
        ++cancelled_;
    }

    void postpone() {
        if (timers_.empty()) return;
        const std::uint64_t number = draw_timer();
        timer& its = timers_[number];
        time_point deadline = draw_deadline();
        bool answer = false;
        if (random_.one_in(2)) {
            answer = context_->timers().postpone_until(its.handle, deadline);
        } else {
            answer = context_->timers().postpone(its.handle, deadline - context_.now());
            deadline = std::max(deadline, context_.now());
        }
        expect(answer == its.is_pending, "postpone answers wrongly", number);
        if (!its.is_pending) return;
        auto& home = its.is_new ? waiting_ : due_;
        home.erase({its.deadline, number});
        its.deadline = deadline;
        home.insert({deadline, number});
        ++postponed_;
    }

    /// One turn, at the same time or later.
    void advance() {
        switch (random_.below(4)) {
        case 0: break;
        case 1:
            if (!due_.empty()) context_.clock().advance_to(due_.begin()->first);
            break;
        case 2: context_.clock().advance(nanoseconds{random_.between(0, 1'000'000)}); break;
        default: context_.clock().advance(nanoseconds{random_.between(0, 100'000'000)}); break;
        }
        is_in_turn_ = true;
        context_->poll();
        is_in_turn_ = false;
        // What a task that was merely ready has moved into the past after the firing has to wait for the next turn.
        if (!std::exchange(has_run_ready_, false) && !due_.empty() && due_.begin()->first <= context_.now()) {
            return fail("due, but a whole turn has not fired it", due_.begin()->second);
        }
        for (const key& each : waiting_) timers_[each.second].is_new = false;
        due_.merge(waiting_);
        check_sums();
    }

    void check_sums() {
        const timer_stats sums = context_->timers().stats();
        expect(sums.armed == timers_.size(), "stats().armed differs", sums.armed);
        expect(sums.fired == fired_, "stats().fired differs", sums.fired);
        expect(sums.cancelled == cancelled_, "stats().cancelled differs", sums.cancelled);
        expect(sums.postponed == postponed_, "stats().postponed differs", sums.postponed);
        expect(sums.pending == due_.size(), "stats().pending differs", sums.pending);
        expect(sums.tickets <= 2 * sums.pending + 64 + 1024, "too many tickets", sums.tickets);
    }

    void finish() {
        is_over_ = true;
        for (int turns = 0; turns < 10'000 && !has_failed() && !due_.empty(); ++turns) {
            context_.clock().advance_to(due_.begin()->first);
            advance();
        }
        expect(due_.empty(), "pending at the end", due_.size());
        context_.settle();
        if (!has_failed()) check_ledger_at_rest(*context_);
    }

    void on_fired(std::uint64_t number) {
        note_fired(number);
        running_ = number;
        interfere_inside();
        running_ = nobody;
    }

    void interfere_inside() {
        if (is_over_) return;
        for (std::uint64_t left = random_.below(3); left != 0 && !has_failed(); --left) interfere();
    }

    // --- Sleepers.

    struct modelled_sleep {
        modelled_sleep(context_duel& owner, time_point until) noexcept
            : duel(owner), deadline(until), cell(owner.context_->timers()) {}

        [[nodiscard]] bool await_ready() const noexcept { return false; }
        template <class Promise>
        bool await_suspend(std::coroutine_handle<Promise> frame) {
            number = duel.timers_.size();
            duel.note_armed(cell.prepare(frame, deadline), deadline);
            return cell.commit();
        }
        void await_resume() {
            const bool has_elapsed = cell.reason() == wake_reason::elapsed;
            if (has_elapsed) {
                duel.note_fired(number);
            } else {
                duel.has_run_ready_ = true;
                duel.expect(!duel.timers_[number].is_pending, "a sleeper was cancelled by nobody", number);
            }
        }

        context_duel& duel;
        time_point deadline;
        timer_cell cell;
        std::uint64_t number = 0;
    };

    static task<> sleep_again_and_again(context_duel& duel) {
        while (!duel.is_over_ && !duel.has_failed()) {
            modelled_sleep sleep(duel, duel.draw_deadline());
            co_await sleep;
            duel.interfere_inside();
        }
    }

    // --- Chance.

    time_point draw_deadline() {
        const time_point now = context_.now();
        switch (random_.below(8)) {
        case 0: return later(now, -random_.between(0, 1'000'000'000));
        case 1: return now;
        case 2: return later(now, random_.between(0, 1000));
        case 3: return later(now, random_.between(0, 1'000'000));
        case 4: return later(now, random_.between(0, 3'600'000'000'000));
        case 5:
            return due_.empty()
                       ? now
                       : std::next(due_.begin(),
                                   static_cast<std::ptrdiff_t>(random_.below(std::min<std::size_t>(due_.size(), 8))))
                             ->first;
        default: return later(now, random_.between(0, 200'000'000));
        }
    }

    /// Mostly one that is pending, sometimes one that is long gone or running.
    std::uint64_t draw_timer() {
        if (running_ != nobody && random_.one_in(20)) return running_;
        if (due_.empty() || random_.one_in(8)) return random_.below(timers_.size());
        if (!waiting_.empty() && random_.one_in(3)) return waiting_.begin()->second;
        const auto place = static_cast<std::ptrdiff_t>(random_.below(std::min<std::size_t>(due_.size(), 16)));
        return random_.one_in(2) ? std::next(due_.begin(), place)->second : std::prev(due_.end())->second;
    }

    void expect(bool holds, const char* what, std::uint64_t number) {
        if (!holds) fail(what, number);
    }
    void fail(const char* what, std::uint64_t number) {
        if (!has_failed()) {
            ADD_FAILURE() << what << ": " << number << ", at " << to_ns(context_.now()) << " ns, " << timers_.size()
                          << " armed, " << due_.size() << " pending; " << replay_hint();
        }
        is_over_ = true;
    }
    static bool has_failed() { return ::testing::Test::HasFailure(); }

    static constexpr std::uint64_t nobody = ~std::uint64_t{0};

    random_source random_;
    std::vector<timer> timers_;  ///< By arming number, all that ever were.
    std::set<key> due_;
    std::set<key> waiting_;
    std::uint64_t running_ = nobody;
    std::uint64_t fired_ = 0;
    std::uint64_t cancelled_ = 0;
    std::uint64_t postponed_ = 0;
    bool is_in_turn_ = false;
    bool has_run_ready_ = false;
    bool is_over_ = false;
    testing::virtual_context context_;
};

TEST(timers, agree_with_a_sorted_map_whatever_happens_to_them) {
    for (const nanoseconds resolution : {1ns, 1024ns, 262144ns, 1000000000ns}) {
        SCOPED_TRACE("resolution " + std::to_string(resolution.count()) + " ns");
        context_duel duel(process_seed() + static_cast<std::uint64_t>(resolution.count()), resolution);
        duel.run(scaled(200'000));
        if (HasFailure()) return;
    }
}

TEST(timers, agree_with_a_sorted_map_in_many_short_runs) {
    for (std::uint64_t round = 0; round < scaled(2000); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        context_duel duel(process_seed() + 1000 * (round + 1), 262144ns);
        duel.run(100);
        if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace chime::test
