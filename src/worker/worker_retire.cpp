// SPDX-License-Identifier: MIT
#include "base/thread.hpp"
#include "worker/crew.hpp"
#include "worker/hot_paths.hpp"
#include "worker/worker.hpp"

#include <algorithm>
#include <cstddef>
#include <new>
#include <optional>
#include <utility>

// How a worker leaves: all that it has goes to where anybody takes it from. That cannot fail, because everything is linked
// through itself (models/retire.pml).

namespace chime::inline v0::detail {

namespace {

/// What is due before we are through is given away in order: whoever takes the first of them finds them due, and fires them.
constexpr ordinal meanwhile_ns = 100'000'000;

/// And what may be due before somebody has adopted all of a million must not wait for its turn among them: a look at a record
/// and the way into another wheel take less than this.
constexpr ordinal adopted_within_ns = 200;

/// So many are due that somebody shall begin with them while we go on.
constexpr std::size_t worth_a_call = 64;

/// Gives way every now and then. All processors may be busy, and those who fire what is due must not wait for who leaves.
class giving_way {
 public:
    void count() noexcept {
        if (++steps_ % 1024 == 0) base::yield_this_thread();
    }

 private:
    std::size_t steps_ = 0;
};

/// A chain that was last first, first first.
unit_index turned_round(const units& all, unit_index chain, unit_index behind) noexcept {
    while (chain != no_unit) {
        const unit_index next = all.at(chain).link.load(base::memory_order_relaxed);
        all.at(chain).link.store(behind, base::memory_order_relaxed);
        behind = std::exchange(chain, next);
    }
    return behind;
}

}  // namespace

void worker::retire() noexcept {
    now_ = std::max(now_, to_ordinal(now()));  // It may have slept since its last turn.
    load_what_is_due_meanwhile();
    crew_.raise_left_number(next_number_);
    // From here on whoever wants something of us turns to everybody.
    const unit_index last_commands = inbox_.close();
    give_away_chain(turned_round(units_, std::exchange(taken_, no_unit), std::exchange(ordered_, no_unit)),
                    crew_.merged_);
    give_away_chain(turned_round(units_, last_commands, no_unit), crew_.merged_);
    is_ordering_ = false;

    // Those that are due soon first, and somebody called for them: with a million timers the rest takes a while.
    for (std::size_t given = 1; const std::optional<unit_index> index = wheel_.take_loaded(); ++given) {
        give_away_timer(*index, crew_.merged_);
        if (given == worth_a_call) call_heir();
    }
    call_heir();
    giving_way way;
    const ordinal soon = now_ + meanwhile_ns + adopted_within_ns * (callbacks_.size() + slots_.size());
    wheel_.visit_until(soon, [&](unit_index index) {
        assume_owner(this);  // As we are.
        give_away_timer(index, crew_.merged_);
        way.count();
    });
    call_heir();
    give_away_chain(std::exchange(adopted_later_, no_unit), crew_.merged_later_);
    for (std::size_t position = 0; position < callbacks_.size(); ++position) {
        give_away_timer(callback_pool::index_of(position), crew_.merged_later_);
        way.count();
    }
    for (std::size_t position = 0; position < slots_.size(); ++position) {
        give_away_timer(slot_pool::index_of(position), crew_.merged_later_);
        way.count();
    }
    wheel_.clear(wheel_live_);
    wheel_.begin_anew(now_);  // For whoever has this seat next.
    for (; wheel_live_ != 0; --wheel_live_) wheel_.count_end();
    publish_wheel_counters();

    for (unit_index ready = ring_.pop(); ready != no_unit; ready = ring_.pop()) crew_.injection_.push(units_, ready);
    share_callbacks(free_callbacks_.count());
    share_slots(free_slots_.count());
    owed_callbacks_ = owed_slots_ = 0;

    first_deadline_.store(end_of_time, base::memory_order_relaxed);
    call_heir();
}

/// While the inbox is open: afterwards others may adopt a timer of ours, and its ticket is theirs to change.
void worker::load_what_is_due_meanwhile() noexcept {
    try {
        wheel_.load_until(units_, wheel_live_, now_ + meanwhile_ns);
    } catch (const std::bad_alloc&) {
        return;  // There is no memory to sort them in. They go away in the order in which they lie there.
    }
}

/// Somebody for what we have left.
void worker::call_heir() noexcept {
    pass_on_call();
    crew_.call_somebody();
}

/// We were called to help; somebody else has to.
void worker::pass_on_call() noexcept {
    if (!is_called_.exchange(false, base::memory_order_seq_cst)) return;
    is_searching_ = true;
    end_search();
}

/// Units that are linked already, first first. Timers among them that were not accepted yet are numbered here, behind those
/// that were: they keep their order wherever they go.
void worker::give_away_chain(unit_index chain, inbox& to) noexcept {
    while (chain != no_unit) {
        timed& its = units_.at(chain);
        const unit_index next = its.link.load(base::memory_order_relaxed);
        if ((chain & slot_bit) == 0 && !its.is_numbered()) {
            its.set_number((take_number() & ~timed::owner_mask) | its.owner());
        }
        give_away(chain, to);
        chain = next;
    }
}

void worker::give_away(unit_index index, inbox& to) noexcept {
    timed& its = units_.at(index);
    if (its.owner() == seat_) counters_.migrated.add();  // Otherwise it comes from there, and was counted before.
    its.set_owner(timed::nobody);
    static_cast<void>(to.push(units_, index));  // Is never closed.
}

/// If it is ours and pending. What somebody else has linked already he takes to the merge queue himself, because our inbox
/// is closed.
void worker::give_away_timer(unit_index index, inbox& to) noexcept {
    timed& its = units_.at(index);
    state_word value = its.state.load(base::memory_order_acquire);
    for (;;) {
        const bool is_pending =
            crew::is_waiting(index, value) && (value & linked_flag) == 0 && its.owner() == seat_ && its.is_numbered();
        if (!is_pending) return;
        if (its.state.compare_exchange_weak(value, value | linked_flag, base::memory_order_acq_rel)) break;
    }
    // Somebody may have postponed it, found our inbox closed, and another worker have adopted it, all since we looked whose
    // it is: then the word is what it was, and we have linked a timer of his. He gets it, and will find nothing to do.
    if (its.owner() != seat_) {
        crew_.send(index, its, end_of_time);
        return;
    }
    give_away(index, to);
}

}  // namespace chime::inline v0::detail
