// SPDX-License-Identifier: MIT
#pragma once

#include <chime/wheel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "support/virtual_time.hpp"

namespace chime::test {

/// What a timer wheel promises, in the dumbest form: a map sorted by (deadline, arming number).
///
/// Timers are named by their arming number, which counts from 0. A turn is one call of `advance`, or several if the first
/// ones found no time to fire anything: what is armed during a turn is put aside and joins the others when it ends.
/// One thread, no limits, no tricks.
class sorted_model {
 public:
    struct due_timer {
        time_point deadline;
        std::uint64_t number = 0;
        timer_id id;
    };

    explicit sorted_model(time_point start) : now_(start) {}

    /// The number that the next `arm` will give.
    std::uint64_t next_number() const { return timers_.size(); }

    std::uint64_t arm(time_point deadline, timer_id id) {
        const std::uint64_t number = next_number();
        timers_.push_back({deadline, id, in_turn_ ? state::waiting : state::armed});
        home_of(number).emplace(key{deadline, number}, id);
        return number;
    }

    bool cancel(std::uint64_t number) {
        if (!pending(number)) {
            return false;
        }
        take_out(number);
        ++cancelled_;
        disturbed_ = true;
        return true;
    }

    bool postpone(std::uint64_t number, time_point deadline) {
        if (!pending(number)) {
            return false;
        }
        auto& home = home_of(number);
        auto node = home.extract(key{timers_[number].deadline, number});
        if (node.empty()) {
            return false;
        }
        node.key() = key{deadline, number};
        home.insert(std::move(node));
        timers_[number].deadline = deadline;
        ++postponed_;
        disturbed_ = true;
        return true;
    }

    void clear() {
        for (auto* home : {&armed_, &waiting_}) {
            for (const auto& [where, id] : *home) {
                timers_[where.second].now_is = state::gone;
            }
            cancelled_ += home->size();
            home->clear();
        }
        disturbed_ = false;
    }

    /// Time never runs back: an earlier `now` counts as the latest one.
    void begin_turn(time_point now) {
        now_ = std::max(now_, now);
        in_turn_ = in_call_ = true;
    }

    /// The timer that must fire next in this turn.
    std::optional<due_timer> next_due() const {
        if (armed_.empty() || armed_.begin()->first.first > now_) {
            return std::nullopt;
        }
        const auto& [where, id] = *armed_.begin();
        return due_timer{where.first, where.second, id};
    }

    void fire(std::uint64_t number) {
        take_out(number);
        ++fired_;
    }

    /// The call is over, but it has not finished looking: the next one belongs to the same turn.
    void interrupt_turn() { in_call_ = false; }

    void end_turn() {
        for (const auto& [where, id] : waiting_) {
            timers_[where.second].now_is = state::armed;
        }
        armed_.merge(waiting_);
        in_turn_ = in_call_ = false;
    }

    /// A whole turn at once: `on_due(due_timer)` for at most `budget` timers, in order.
    template <class OnDue>
    std::size_t advance(time_point now, OnDue&& on_due, std::size_t budget) {
        begin_turn(now);
        std::size_t count = 0;
        while (count < budget) {
            const auto due = next_due();
            if (!due) {
                break;
            }
            fire(due->number);
            ++count;
            on_due(*due);
        }
        end_turn();
        return count;
    }

    bool pending(std::uint64_t number) const {
        return number < timers_.size() && timers_[number].now_is != state::gone;
    }
    std::optional<time_point> deadline_of(std::uint64_t number) const {
        return pending(number) ? std::optional(timers_[number].deadline) : std::nullopt;
    }
    timer_id id_of(std::uint64_t number) const { return timers_[number].id; }

    /// The truth that `timer_wheel::next_deadline` may understate but never overstate.
    std::optional<time_point> next_deadline() const {
        std::optional<time_point> earliest;
        for (const auto* home : {&armed_, &waiting_}) {
            if (!home->empty() && (!earliest || home->begin()->first.first < *earliest)) {
                earliest = home->begin()->first.first;
            }
        }
        return earliest;
    }

    /// True once anything was cancelled or postponed: from then on the wheel's next deadline may be too early.
    bool disturbed() const { return disturbed_; }
    bool in_turn() const { return in_turn_; }
    bool in_call() const { return in_call_; }
    time_point now() const { return now_; }
    std::size_t size() const { return armed_.size() + waiting_.size(); }
    std::uint64_t armed() const { return timers_.size(); }
    std::uint64_t fired() const { return fired_; }
    std::uint64_t cancelled() const { return cancelled_; }
    std::uint64_t postponed() const { return postponed_; }

 private:
    using key = std::pair<time_point, std::uint64_t>;
    using ordered = std::map<key, timer_id>;
    enum class state : std::uint8_t { armed, waiting, gone };
    struct timer {
        time_point deadline;
        timer_id id;
        state now_is;
    };

    ordered& home_of(std::uint64_t number) { return timers_[number].now_is == state::waiting ? waiting_ : armed_; }
    void take_out(std::uint64_t number) {
        home_of(number).erase(key{timers_[number].deadline, number});
        timers_[number].now_is = state::gone;
    }

    ordered armed_;
    ordered waiting_;            // armed during this turn
    std::vector<timer> timers_;  // by arming number, all that ever were
    time_point now_;
    bool in_turn_ = false;
    bool in_call_ = false;
    bool disturbed_ = false;
    std::uint64_t fired_ = 0;
    std::uint64_t cancelled_ = 0;
    std::uint64_t postponed_ = 0;
};

}  // namespace chime::test
