// SPDX-License-Identifier: MIT
#include "worker/crew.hpp"
#include "worker/hot_paths.hpp"
#include "worker/worker.hpp"

#include <algorithm>
#include <new>

// What other threads have asked for, and what retired workers have left: out of the inbox and the merge queue, into the
// wheel and the ready queue.

namespace chime::inline v0::detail {

/// Takes what other threads want into the wheel and the queue, in the order in which they asked. Without a budget: all
/// that is there when it begins; otherwise somebody who keeps sending would keep us here for ever.
void worker::obey(std::size_t budget) {
    bool may_take = true;
    while (budget != 0) {
        if (ordered_ != no_unit && !is_ordering_) {
            const unit_index index = ordered_;
            reserve_for_one();  // The only step that may fail; what is not obeyed yet waits for the next turn.
            ordered_ = units_.at(index).link.load(base::memory_order_relaxed);
            obey_one(index);
            counters_.commands.add();
        } else if (taken_ != no_unit) {
            // A stack gives the last first; turned round, one piece at a time, it is a queue.
            const unit_index index = taken_;
            timed& its = units_.at(index);
            taken_ = its.link.load(base::memory_order_relaxed);
            if ((its.state.load(base::memory_order_relaxed) & state_mask) == 0) {
                // It is only given back, for which any order will do. See given_back in crew_cancel.cpp.
                units_.prefetch_to_write(static_cast<unit_index>(its.deadline_now()));
                obey_one(index);
                counters_.commands.add();
            } else {
                its.link.store(ordered_, base::memory_order_relaxed);
                ordered_ = index;
            }
            is_ordering_ = taken_ != no_unit;
        } else {
            if (!may_take) return;
            may_take = budget != unlimited_commands;
            taken_ = take_commands();
            if (taken_ == no_unit) return;
            is_ordering_ = true;
        }
        if (budget != unlimited_commands) --budget;
    }
}

/// What is in the inbox and in the merge queue, last first. Taken in this order and put behind, what is in the merge queue
/// is obeyed first: a thread whose first timer has ended up there, because its worker retired, and whose second one was
/// sent to us, armed them in that order.
unit_index worker::take_commands() noexcept {
    // First what was sent to us [retire: take inbox].
    const unit_index own = inbox_.take_all();
    if (is_alone_) return own;
    // Then what is nobody's: the other way round, an older one might come there in between [retire: take merged].
    const unit_index orphaned = crew_.merged_.take_all();
    // The same for what we have not got to yet: what is left for later, or is still in the hands of who leaves. Relaxed, and
    // after both: who has found an inbox closed, and turned to us or to everybody, has made us see
    // it [retire: look at left number].
    const std::uint64_t left = crew_.left_number_.load(base::memory_order_relaxed);
    next_number_ = std::max(next_number_, (left & ~timed::owner_mask) | seat_);
    if (own == no_unit || orphaned == no_unit) return own == no_unit ? orphaned : own;
    unit_index first = own;
    for (;;) {
        const unit_index next = units_.at(first).link.load(base::memory_order_relaxed);
        if (next == no_unit) break;
        first = next;
    }
    units_.at(first).link.store(orphaned, base::memory_order_relaxed);
    return own;
}

/// Room for whatever ticket comes of a command. Throws std::bad_alloc; nothing has changed.
void worker::reserve_for_one() {
    wheel_.reserve(1);
    if (wheel_.is_advancing()) wheel_.reserve_near(1);
}

/// The link goes first; what the word says then is what there is to do (models/record_word.pml, models/slot_word.pml).
void worker::obey_one(unit_index index) {
    timed& its = units_.at(index);
    if (its.owner() != seat_) adopt(index, its);
    if (!its.is_numbered() && (index & slot_bit) == 0) ++owed_callbacks_;
    // Release: the link is free to be used by whoever sees this. Acquire: what was written before it was pushed
    // [record_word: unlink] [slot_word: unlink] [retire: unlink].
    const state_word value = its.state.fetch_and(~linked_flag, base::memory_order_acq_rel) & ~linked_flag;
    if ((index & slot_bit) != 0) {
        switch (phase_of(value)) {
        case task_phase::scheduled: make_ready(index); break;
        case task_phase::idle:
            // Whether it was moved or not: the owner may have overtaken that, and left the ticket to
            // us [slot_word: accept].
            if (its.is_numbered()) accept(index, its);
            break;
        case task_phase::vacant:
            if ((value & locked_flag) == 0) free_slot(index);  // As below [slot_word: give back].
            break;
        default: break;
        }
        return;
    }
    switch (state_of(value)) {
    case timer_state::armed: accept(index, its); break;
    case timer_state::posted: push_ready(index); break;
    case timer_state::vacant:
        // Otherwise whoever holds the lock pushes it once more [record_word: give back].
        if ((value & locked_flag) == 0) free_callback(index);
        break;
    default: break;
    }
}

/// Timers that somebody has left behind and that are not due for a while: some at a time, in any order, behind all that is
/// asked of us. If turns are long it is more, so that it takes no longer than twice what it takes at a stretch: otherwise
/// they would come due meanwhile.
void worker::adopt_some() noexcept {
    if (inherited_ == no_unit) {
        // Behind the rest, and in any order [retire: take later].
        inherited_ = crew_.merged_later_.take_all();
        if (inherited_ == no_unit) return;
        adopting_since_ = to_ordinal(now());
    }
    const ordinal other_work = std::max(adopting_since_, to_ordinal(now())) - adopting_since_;
    for (std::size_t left =
             std::max(settings_.adoption_budget, static_cast<std::size_t>(other_work / adopted_within_ns));
         left != 0 && inherited_ != no_unit; --left) {
        const unit_index index = inherited_;
        const unit_index next = units_.at(index).link.load(base::memory_order_relaxed);
        if (next != no_unit) units_.prefetch_to_write(next);
        if (!try_obey_one(index)) break;
        inherited_ = next;
    }
    adopting_since_ = to_ordinal(now());
}

/// False: there is no memory for it now, and nothing was done.
bool worker::try_obey_one(unit_index index) noexcept {
    try {
        reserve_for_one();
    } catch (const std::bad_alloc&) {
        return false;
    }
    obey_one(index);
    counters_.commands.add();
    return true;
}

/// It has come through the merge queue: its owner has retired, or was about to. Before anybody may link it
/// again [retire: adopt].
void worker::adopt(unit_index, timed& its) noexcept {
    counters_.adopted.add();
    if (wheel_.tick_of(its.deadline_now()) <= wheel_.current_tick())
        wheel_.abandon_advance();  // Others of its origin may be in there.
    its.disown_ticket();           // Wherever that is, it is in no wheel that anybody turns.
    its.set_owner(seat_);
    // It keeps its number, so that those of one origin stay in order; and it counts as armed before this turn.
    if (its.is_numbered()) next_number_ = std::max(next_number_, its.arming_number() + timed::next_number);
}

}  // namespace chime::inline v0::detail
