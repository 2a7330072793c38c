// SPDX-License-Identifier: MIT
#pragma once

#include <chime/wheel.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/sorted_model.hpp"
#include "support/virtual_time.hpp"
#include "support/wheel_audit.hpp"

namespace chime::test {

/// Thrown when the wheel and the model part ways; says what each of them thinks.
struct disagreement : std::logic_error {
    using std::logic_error::logic_error;
};

/// A wheel and its model, driven side by side: each operation goes to both and every answer is compared.
///
/// Knows nothing of the test framework, so the fuzzer uses it too. Operations may also be called from `inside`,
/// that is from on_due. An exception from the wheel (no memory) leaves the model as it was.
template <unsigned GenerationBits = 32>
class wheel_duel {
 public:
    /// Carries the arming number; a moved-from one is recognisable, so a value fired twice cannot hide.
    struct payload {
        static constexpr std::uint64_t moved_from = ~std::uint64_t{0};
        explicit payload(std::uint64_t n) noexcept : number(n) {}
        payload(payload&& other) noexcept : number(std::exchange(other.number, moved_from)) {}
        payload& operator=(payload&& other) noexcept {
            number = std::exchange(other.number, moved_from);
            return *this;
        }
        std::uint64_t number;
    };
    using wheel_type = timer_wheel<payload, GenerationBits>;
    static constexpr std::size_t unlimited = wheel_type::unlimited;

    enum class audit { off, after_each_operation };

    explicit wheel_duel(const wheel_config& config, audit when = audit::off)
        : wheel_(config), model_(config.start), stale_slack_(config.stale_slack), audit_(when) {
        agree("construction");
    }

    std::uint64_t arm(time_point deadline) {
        const std::uint64_t number = model_.next_number();
        const timer_id id = wheel_.arm(deadline, payload(number));
        require(static_cast<bool>(id), "arm gave an id that names no timer");
        model_.arm(deadline, id);
        place_.push_back(live_.size());
        live_.push_back(number);
        require(wheel_.deadline_of(id) == deadline, "deadline_of differs right after arm");
        agree("arm");
        return number;
    }

    /// Any number that was ever armed; a stale one must be refused by the wheel as by the model.
    bool cancel(std::uint64_t number) {
        const timer_id id = model_.id_of(number);
        const std::optional<payload> value = wheel_.cancel(id);
        const bool expected = model_.cancel(number);
        require(value.has_value() == expected, "cancel answered wrongly");
        if (value) {
            if (value->number != number) {
                fail("cancel of #" + std::to_string(number) + " returned the value of #" +
                     std::to_string(value->number));
            }
            bury(number);
        }
        require(!wheel_.deadline_of(id), "a cancelled id still has a deadline");
        agree("cancel");
        return expected;
    }

    bool postpone(std::uint64_t number, time_point deadline) {
        const timer_id id = model_.id_of(number);
        const bool answer = wheel_.postpone(id, deadline);
        const bool expected = model_.postpone(number, deadline);
        require(answer == expected, "postpone answered wrongly");
        require(wheel_.deadline_of(id) == model_.deadline_of(number), "deadline_of differs after postpone");
        agree("postpone");
        return expected;
    }

    /// An id that names no timer here must change nothing.
    void try_forged(timer_id id, time_point deadline) {
        require(!wheel_.deadline_of(id), "a forged id has a deadline");
        require(!wheel_.postpone(id, deadline), "a forged id was postponed");
        require(!wheel_.cancel(id), "a forged id was cancelled");
        agree("a forged id");
    }

    void clear() {
        wheel_.clear();
        model_.clear();
        if (!model_.in_call()) {
            model_.end_turn();
        }
        live_.clear();
        agree("clear");
    }

    /// One call of `advance`; `inside(*this)` runs in on_due after each comparison.
    template <class Inside>
    std::size_t advance(time_point now, std::size_t budget, Inside&& inside) {
        const turn_guard turn(*this, now, budget);
        const std::uint64_t changes_before = changes();
        std::size_t fired = 0;
        const auto on_due = [&](payload&& value, time_point deadline) {
            const auto expected = model_.next_due();
            require(fired < budget, "fired more than the budget");
            if (!expected || value.number != expected->number || deadline != expected->deadline) {
                fail("fired #" + std::to_string(value.number) + " of " + text(deadline) + " instead of " +
                     (expected ? "#" + std::to_string(expected->number) + " of " + text(expected->deadline)
                               : "nothing"));
            }
            model_.fire(expected->number);
            bury(expected->number);
            ++fired;
            require(!wheel_.deadline_of(expected->id), "the id of the firing timer is still alive");
            require(wheel_.size() == model_.size(), "size differs inside on_due");
            require(wheel_.now() == model_.now(), "now differs inside on_due");
            inside(*this);
        };
        const std::size_t answer = wheel_.advance(now, on_due, budget);
        require(answer == fired, "advance returned another number than it fired");
        require(!model_.next_due() || budget != unlimited, "an unlimited advance left something due");
        turn.end();
        // What on_due armed or moved and cancelled again may be asked for once more, but nothing else.
        const bool undisturbed = changes() == changes_before + fired;
        const auto truth = model_.next_deadline();
        if (budget == unlimited && undisturbed && (!truth || *truth > model_.now())) {
            const auto next = wheel_.next_deadline();
            require(!next || *next > model_.now(), "nothing is due, but next_deadline asks to call again");
        }
        agree("advance");
        return fired;
    }
    std::size_t advance(time_point now, std::size_t budget = unlimited) {
        return advance(now, budget, [](wheel_duel&) {});
    }

    /// From inside on_due: an advance within an advance answers 0 and does nothing.
    void advance_again(time_point now) {
        const auto never_called = [this](payload&&) { fail("an advance inside on_due fired something"); };
        require(wheel_.advance(now, never_called) == 0, "an advance inside on_due did not answer 0");
        agree("an advance inside on_due");
    }

    /// Calls `advance` as a user's loop does, until `next_deadline` says that nothing more is due.
    /// Calls that fire nothing are allowed only as far as there are tickets to move with that budget.
    std::size_t drain(time_point now, std::size_t budget) {
        const std::uint64_t patience = 16 * wheel_.stats().tickets / budget + 256;
        std::uint64_t fruitless = 0;
        std::size_t total = 0;
        do {
            const std::size_t fired = advance(now, budget);
            total += fired;
            fruitless += fired == 0 ? 1 : 0;
            require(fruitless <= patience, "advance makes no progress");
        } while (wheel_.next_deadline() && *wheel_.next_deadline() <= model_.now());
        return total;
    }

    /// Compares everything that can be compared at this moment.
    void agree(const char* after) {
        last_ = after;
        const auto truth = model_.next_deadline();
        const auto said = wheel_.next_deadline();
        require(said.has_value() == truth.has_value(), "next_deadline is empty on one side only");
        if (truth && *said != *truth) {
            if (*said > *truth) {
                fail("next_deadline " + text(*said) + " is later than the truth " + text(*truth));
            }
            if (!model_.disturbed()) {
                fail("next_deadline " + text(*said) + " is not the exact " + text(*truth) +
                     " though nothing was cancelled or moved");
            }
        }
        require(wheel_.size() == model_.size(), "size differs");
        require(wheel_.empty() == (model_.size() == 0), "empty() and size() contradict each other");
        require(wheel_.now() == model_.now(), "now differs");
        if (!model_.in_call()) {
            check_ledger();
            if (audit_ == audit::after_each_operation) {
                check_invariants();
            }
        }
    }

    /// Looks at the whole inside of the wheel; not from inside on_due.
    void check_invariants() const {
        const std::string complaint = detail::wheel_audit::check(wheel_);
        if (!complaint.empty()) {
            fail("audit: " + complaint);
        }
    }

    wheel_type& wheel() { return wheel_; }
    const sorted_model& model() const { return model_; }
    /// Numbers of the pending timers, in no order.
    const std::vector<std::uint64_t>& live() const { return live_; }

 private:
    /// Ends the model's turn also when on_due or the wheel throws.
    class turn_guard {
     public:
        turn_guard(wheel_duel& duel, time_point now, std::size_t budget) : duel_(duel) {
            if (duel_.model_.in_turn() && budget == unlimited) duel_.model_.end_turn();
            duel_.model_.begin_turn(now);
        }
        ~turn_guard() { end(); }
        turn_guard(const turn_guard&) = delete;
        turn_guard& operator=(const turn_guard&) = delete;
        void end() const {
            if (!duel_.model_.in_call()) {
                return;
            }
            if (detail::wheel_audit::is_interrupted(duel_.wheel_)) {
                duel_.model_.interrupt_turn();
            } else {
                duel_.model_.end_turn();
            }
        }

     private:
        wheel_duel& duel_;
    };

    /// How much has happened to the timers so far.
    std::uint64_t changes() const { return model_.armed() + model_.fired() + model_.cancelled() + model_.postponed(); }

    void check_ledger() const {
        const wheel_stats stats = wheel_.stats();
        require(stats.armed == model_.armed(), "stats().armed differs");
        require(stats.fired == model_.fired(), "stats().fired differs");
        require(stats.cancelled == model_.cancelled(), "stats().cancelled differs");
        require(stats.postponed == model_.postponed(), "stats().postponed differs");
        require(stats.pending == model_.size(), "stats().pending differs");
        require(stats.armed == stats.fired + stats.cancelled + stats.pending, "the ledger does not balance");
        require(stats.tickets >= stats.pending, "fewer tickets than timers");
        if (stats.tickets > 2 * stats.pending + stale_slack_ + 512) {
            fail(std::to_string(stats.tickets) + " tickets for " + std::to_string(stats.pending) + " timers");
        }
    }

    void bury(std::uint64_t number) {
        live_[place_[number]] = live_.back();
        place_[live_.back()] = place_[number];
        live_.pop_back();
    }

    static std::string text(time_point when) { return std::to_string(to_ns(when)) + " ns"; }
    void require(bool holds, const char* otherwise) const {
        if (!holds) [[unlikely]] {
            fail(otherwise);
        }
    }
    [[noreturn]] void fail(const std::string& what) const {
        throw disagreement(what + " (after " + last_ + ", " + std::to_string(model_.armed()) + " armed, " +
                           std::to_string(model_.fired()) + " fired, " + std::to_string(model_.size()) +
                           " pending, now " + text(model_.now()) + ")");
    }

    wheel_type wheel_;
    sorted_model model_;
    std::vector<std::uint64_t> live_;
    std::vector<std::size_t> place_;  // by arming number: where in live_
    std::size_t stale_slack_;
    audit audit_;
    const char* last_ = "construction";
};

}  // namespace chime::test
