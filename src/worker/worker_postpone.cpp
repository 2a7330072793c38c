// SPDX-License-Identifier: MIT
#include "worker/crew.hpp"
#include "worker/hot_paths.hpp"

#include <span>
#include <utility>

// Deadlines: when they are written, by whom, and where in the wheel the ticket then is.

namespace chime::inline v0::detail {

// --- Tickets: the owner.

[[gnu::noinline]] void worker::put_ticket(unit_index index, timed& its, ordinal target) noexcept {
    const std::uint64_t tick = wheel_.tick_of(target);
    const std::uint16_t stamp = its.next_stamp();
    wheel_.put(wheel_.slot_for(tick), {target, index, stamp});
    its.set_ticket(stamp, wheel_.place_of(tick));
}

void worker::place_sleep(unit_index index, timed& its, ordinal target) noexcept {
    its.set_deadline(target);
    place(index, its, target);
}

/// Makes sure that the ticket of a timer is met by `target`. Needs room that was reserved.
void worker::move_ticket(unit_index index, timed& its, ordinal target) noexcept {
    if (wheel_.reach_now().is_met_before(its.place(), target)) return;  // The ticket will find out and move on.
    const std::uint64_t tick = wheel_.tick_of(target);
    const std::uint16_t stamp = its.next_stamp();
    if (wheel_.is_near(its.arming_number(), tick)) {
        wheel_.put_near({target, its.arming_number(), index, stamp});  // In time for this very turn.
    } else {
        wheel_.put(wheel_.slot_for(tick), {target, index, stamp});
    }
    its.set_ticket(stamp, wheel_.place_of(tick));
    wheel_.limit_stale(units_);
}

/// The owner gives a timer another deadline. `value` is what its word said. Needs room that was reserved.
void worker::move_to(unit_index index, timed& its, state_word value, ordinal target) noexcept {
    if ((value & linked_flag) == 0) {
        set_and_move(index, its, target, wheel_.reach_now());
    } else {
        its.set_deadline(target);  // In an inbox: the drain looks at whatever the deadline is then.
    }
}

/// The ticket is not later than the deadline in force: if that grows, there is nothing to do but to write it down. Nor if the
/// ticket is met before the new one; that is asked first, because where deadlines go back and forth it is the answer that can
/// be guessed [record_word: move].
inline void worker::set_and_move(unit_index index, timed& its, ordinal target, ticket_wheel::reach reach) noexcept {
    const ordinal before = its.deadline_now();
    its.set_deadline(target);
    if (reach.is_met_before(its.place(), target)) [[likely]]
        return;
    if (target < before) move_ticket(index, its, target);
}

/// Another thread has armed it, or given it an earlier deadline. The owner does not write that deadline: the other may be
/// writing the next one (models/record_word.pml).
void worker::accept(unit_index index, timed& its) {
    // Before the deadline is read, so that a later change is not taken for this one. Acquire: pairs with the release
    // of whoever wrote it [record_word: accept].
    its.state.fetch_and(~moved_flag, base::memory_order_acquire);
    if (its.has_timer()) {
        move_ticket(index, its, its.deadline_now());
        return;
    }
    // It comes behind all that was accepted before [retire: number].
    if (!its.is_numbered()) its.set_number(take_number());
    place(index, its, its.deadline_now());
    if (!crew_.is_stopped()) [[likely]]
        return;
    // It came too late: it ends like the others [park: accept late arm].
    const state_word value = its.state.load(base::memory_order_relaxed);
    if ((index & slot_bit) != 0) {
        crew_.wake(index, life_of(value), wake_cause::shutdown);
    } else {
        crew_.cancel(name_of(index, life_of(value)));
    }
}

/// One look at the clock for all that was armed by a delay since the last one: never early, because the delay counts
/// from now, and late by less than what the user's code did in between.
void worker::stamp() noexcept {
    stamp_at(to_ordinal(now()));
}

/// These deadlines are written some time after they were asked for, and another thread may have been told of the timer
/// meanwhile, and postpone it: it must not be overwritten. Either we see its lock, or it sees that we are at it, and
/// waits; so both announce themselves before they look, in the one order of all seq_cst steps (models/record_word.pml).
void worker::stamp_at(ordinal now) noexcept {
    if (unstamped_count_ == 0) return;
    // Before we look at any word [record_word: announce stamp].
    is_stamping_.store(true, base::memory_order_seq_cst);
    const std::span noted(unstamped_.data(), std::exchange(unstamped_count_, 0));
    const ticket_wheel::reach reach = wheel_.reach_now();
    for (const unstamped entry : noted) stamp_one(entry, now, reach);
    // Pairs with the acquire of whoever waits [record_word: end stamp].
    is_stamping_.store(false, base::memory_order_release);
}

inline void worker::stamp_one(unstamped entry, ordinal now, ticket_wheel::reach reach) noexcept {
    const unit_index index = entry.index();
    timed& its = units_.callback_at(index);
    // After we have announced it [record_word: stamp].
    const state_word value = its.state.load(base::memory_order_seq_cst);
    if (!entry.is_unchanged(value)) [[unlikely]]
        return stamp_changed(entry, its, value, now);
    const ordinal target = ordinal_after(now, entry.delay_ns());
    if (entry.is_new()) {
        its.set_deadline(target);
        place(index, its, target, reach);
    } else {
        set_and_move(index, its, target, reach);
    }
}

/// Something has happened to it since it was noted, or was going on already.
[[gnu::noinline]] void worker::stamp_changed(unstamped entry, timed& its, state_word value, ordinal now) noexcept {
    const unit_index index = entry.index();
    if (!entry.is_of_life_in(value) || state_of(value) != timer_state::armed) return;  // Cancelled, perhaps used again.
    const bool is_overtaken = (value & (moved_flag | locked_flag)) != 0;  // Somebody else has the last word.
    const ordinal target = is_overtaken ? its.deadline_now() : ordinal_after(now, entry.delay_ns());
    if (entry.is_new()) {
        if (!is_overtaken) its.set_deadline(target);
        place(index, its, target);
    } else if (!is_overtaken && its.has_timer()) {
        move_to(index, its, value, target);
    }
}

// --- Postponing.

/// The owner alone moves tickets and fires, so all it has to know is that the timer is pending, as `value` says. The mark of
/// others is taken off before the deadline is written (models/record_word.pml).
bool worker::postpone_here(unit_index index, timed& its, state_word value, wait_limit limit) {
    const std::uint64_t life = life_of(value);
    const bool is_sleep = (index & slot_bit) != 0;     // No note of it: whoever is woken may go to another worker.
    if (is_sleep && !its.is_numbered()) return false;  // It waits for something else.
    reserve_tickets();
    while ((value & moved_flag) != 0) {
        // What others have asked for before is overtaken; if the mark is there again later, we are. Relaxed: who looked at the
        // word before has acquired it, so our deadline comes after those. Whoever has moved it since, and left the same word or
        // made us look again, postpones at the same time as we do: the two deadlines come in any order, and the ticket is not
        // later than either. For if his is the earlier one, he links it, and so do we find it; or it was linked before, and
        // whoever obeys looks at whatever the deadline is then [record_word: take mark off].
        if (its.state.compare_exchange_weak(value, value & ~moved_flag, base::memory_order_relaxed)) break;
        if (life_of(value) != life || !crew::is_waiting(index, value)) return false;
    }
    if (!is_sleep && limit.is_absolute == 0 && its.is_numbered()) {
        stamp_later(index, life, limit.count, false);
    } else {
        settle_notes();  // Its own deadline may be among those.
        const ordinal target = crew_.deadline_of(limit);
        if (its.has_timer()) {
            move_to(index, its, value, target);
        } else {
            its.set_deadline(target);  // Still in the inbox.
        }
    }
    counters_.postponed.add();
    return true;
}

}  // namespace chime::inline v0::detail
