// SPDX-License-Identifier: MIT
#include "worker/crew.hpp"
#include "worker/giving_way.hpp"
#include "worker/hot_paths.hpp"
#include "worker/worker.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <utility>

// How a worker leaves: all that it has goes to where anybody takes it from. That cannot fail, because everything is linked
// through itself (models/retire.pml).

namespace chime::inline v0::detail {

namespace {

/// What is due before we are through is given away in order: whoever takes the first of them finds them due, and fires them.
constexpr ordinal meanwhile_ns = 100'000'000;

/// So many are due that somebody shall begin with them while we go on.
constexpr std::size_t worth_a_call = 64;

/// After so many steps others get the processor.
constexpr std::size_t steps_at_a_time = 1024;

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
    settle_notes();  // What closures have asked for when they were destroyed, with no user code around them.
    // What is due before somebody can have adopted all of it must not wait for its turn among a million others.
    const ordinal until_adopted = meanwhile_ns + 2 * adopted_within_ns * (callbacks_.size() + slots_.size());
    adopt_until(to_ordinal(now()) + until_adopted);
    now_ = std::max(now_, to_ordinal(now()));  // It may have slept since its last turn.
    const ordinal soon = now_ + until_adopted;
    load_what_is_due_meanwhile();
    const unit_index commands = turned_round(units_, std::exchange(taken_, no_unit), std::exchange(ordered_, no_unit));
    number_chain(commands);
    // From here on whoever wants something of us turns to everybody; and what he arms has a higher number than all that we
    // have, whoever gets to which first.
    const unit_index last_commands = inbox_.close([this](std::uint32_t count) {
        assume_owner(this);  // As we are.
        crew_.raise_left_number(next_number_ + count * timed::next_number);
    });
    // What we have not obeyed yet, in its order [retire: leave commands].
    give_away_chain(commands, crew_.merged_);
    const unit_index last_in_order = turned_round(units_, last_commands, no_unit);
    number_chain(last_in_order);
    give_away_chain(last_in_order, crew_.merged_);
    is_ordering_ = false;

    // Those that are due soon first, and somebody called for them: with a million timers the rest takes a while.
    for (std::size_t given = 1; const std::optional<unit_index> index = wheel_.take_loaded(); ++given) {
        give_away_timer(*index, crew_.merged_);
        if (given == worth_a_call) call_heir();
    }
    call_heir();
    giving_way way;
    std::size_t steps = 0;
    const auto count_step = [&] {
        if (++steps % steps_at_a_time == 0) way.give();
    };
    wheel_.visit_until(soon, [&](unit_index index) {
        assume_owner(this);  // As we are.
        give_away_timer(index, crew_.merged_);
        count_step();
    });
    call_heir();
    // What was left to us, and we have not got to [retire: leave later].
    give_away_chain(std::exchange(inherited_, no_unit), crew_.merged_later_);
    for (std::size_t position = 0; position < callbacks_.size(); ++position) {
        give_away_timer(callback_pool::index_of(position), crew_.merged_later_);
        count_step();
    }
    for (std::size_t position = 0; position < slots_.size(); ++position) {
        give_away_timer(slot_pool::index_of(position), crew_.merged_later_);
        count_step();
    }
    wheel_.clear();
    wheel_.begin_anew(now_);  // For whoever has this seat next.
    wheel_.count_all_ends();
    publish_wheel_counters();

    // Who steals meanwhile has it [steal: empty ring].
    for (unit_index ready = ring_.pop(); ready != no_unit; ready = ring_.pop()) crew_.injection_.push(units_, ready);
    share_callbacks(free_callbacks_.count());
    share_slots(free_slots_.count());
    owed_callbacks_ = owed_slots_ = 0;

    call_heir();
}

/// Of what somebody has left to us, and we have not got to yet: what is due by then, so that it is given away in order with
/// all the rest.
void worker::adopt_until(ordinal horizon) noexcept {
    unit_index kept = no_unit;
    for (unit_index index = inherited_; index != no_unit;) {
        timed& its = units_.at(index);
        const unit_index next = its.link.load(base::memory_order_relaxed);
        if (its.deadline_now() > horizon || !try_obey_one(index)) {
            its.link.store(kept, base::memory_order_relaxed);
            kept = index;
        }
        index = next;
    }
    inherited_ = kept;
}

/// While the inbox is open: afterwards others may adopt a timer of ours, and its ticket is theirs to change.
void worker::load_what_is_due_meanwhile() noexcept {
    try {
        wheel_.load_until(units_, now_ + meanwhile_ns);
    } catch (const std::bad_alloc&) {
        return;  // There is no memory to sort them in. They go away in the order in which they lie there.
    }
}

/// Somebody for what we have left [retire: call heir].
void worker::call_heir() noexcept {
    pass_on_call();
    crew_.call_somebody();
}

/// We were called to help; somebody else has to [steal: pass call on].
void worker::pass_on_call() noexcept {
    if (!take_call()) return;
    is_searching_ = true;
    end_search();
}

/// Units that are linked already, first first. Timers among them that were not accepted yet are numbered here, behind those
/// that were: they keep their order wherever they go.
void worker::number_chain(unit_index chain) noexcept {
    for (; chain != no_unit; chain = units_.at(chain).link.load(base::memory_order_relaxed)) {
        timed& its = units_.at(chain);
        if ((chain & slot_bit) == 0 && !its.is_numbered()) {
            its.set_number((take_number() & ~timed::owner_mask) | its.owner());
        }
    }
}

void worker::give_away_chain(unit_index chain, inbox& to) noexcept {
    while (chain != no_unit) {
        const unit_index next = units_.at(chain).link.load(base::memory_order_relaxed);
        give_away(chain, to);
        chain = next;
    }
}

void worker::give_away(unit_index index, inbox& to) noexcept {
    timed& its = units_.at(index);
    // Otherwise it comes from there, and was counted before [retire: give away].
    if (its.owner() == seat_) counters_.migrated.add();
    its.set_owner(timed::nobody);
    static_cast<void>(to.push(units_, index));  // Is never closed.
}

/// If it is ours and pending. What somebody else has linked already he takes to the merge queue himself, because our inbox
/// is closed.
void worker::give_away_timer(unit_index index, inbox& to) noexcept {
    timed& its = units_.at(index);
    state_word value = its.state.load(base::memory_order_relaxed);  // What is ours says so because we have written it.
    for (;;) {
        const bool is_pending =
            crew::is_waiting(index, value) && (value & linked_flag) == 0 && its.owner() == seat_ && its.is_numbered();
        if (!is_pending) return;
        // In the step that finds it pending [retire: link].
        // Acquire: pairs with the release of who has adopted it meanwhile; see below. The push that follows releases.
        if (its.state.compare_exchange_weak(value, value | linked_flag, base::memory_order_acquire)) break;
    }
    // Somebody may have postponed it, found our inbox closed, and another worker have adopted it, all since we looked whose
    // it is: then the word is what it was, and we have linked a timer of his. He gets it, and will find nothing to
    // do [retire: not ours any more].
    if (its.owner() != seat_) {
        crew_.send(index, its, end_of_time);
        return;
    }
    give_away(index, to);
}

}  // namespace chime::inline v0::detail
