// SPDX-License-Identifier: MIT
#include "base/thread.hpp"
#include "worker/crew.hpp"
#include "worker/hot_paths.hpp"

// Postponing, from any thread.

namespace chime::inline v0::detail {

namespace {

/// A task that waits, but not for a time: a made-up handle may name it.
bool waits_without_timer(unit_index index, const timed& its) noexcept {
    return (index & slot_bit) != 0 && !its.is_numbered();
}

}  // namespace

/// The usual case, in few instructions, as in cancel(): a worker postpones a callback of its own, counted from now.
bool crew::postpone_by(timer_handle which, duration delay) {
    worker* const mine = here();
    worker::assume_owner(mine);
    if (mine == nullptr || !is_own_callback(*mine, which)) [[unlikely]]
        return postpone_whatever(which, wait_limit::after(delay));
    const timed& its = callbacks_.at(which.index);
    const state_word armed = with_state(which.life << life_shift, timer_state::armed);  // Leaves out the worker.
    // Acquire: pairs with the release that armed it, so that the owner is that of this life.
    const state_word value = its.state.load(base::memory_order_acquire);
    const bool is_plain = ((value ^ armed) & ~owning_flag) == 0 && is_owner(*mine, its);
    // While timers fire, there must also be room among those that fire next.
    if (!is_plain || mine->wheel_.is_advancing() || !mine->has_tickets() ||
        !mine->try_stamp_later(which.index, value, delay.count(), false)) [[unlikely]]
        return postpone_whatever(which, wait_limit::after(delay));
    mine->counters_.postponed.add();
    return true;
}

bool crew::postpone(timer_handle which, wait_limit limit) {
    return limit.is_absolute == 0 ? postpone_by(which, duration{limit.count}) : postpone_whatever(which, limit);
}

[[gnu::noinline]] bool crew::postpone_whatever(timer_handle which, wait_limit limit) {
    if (which.runtime != identity_) return false;
    if (which.is_sleep() ? !slots_.contains(which.index) : !callbacks_.contains(which.index)) return false;
    timed& its = units_.at(which.index);
    // Before the look at whose it is. Acquire: as in postpone(); who has only heard of the handle may see the owner of an
    // earlier life, and that be us.
    const state_word value = its.state.load(base::memory_order_acquire);
    if (life_of(value) != which.timer_id() || !is_waiting(which.index, value)) return false;
    if (worker* const mine = owner_here(its)) {
        worker::assume_owner(mine);
        return mine->postpone_here(which.index, its, value, limit);
    }
    return postpone_from_elsewhere(which.index, its, which.timer_id(), deadline_of(limit));
}

/// Is the owner of what we have locked giving out deadlines, perhaps to this one? See worker::stamp_at().
bool crew::is_stamped_now(const timed& its) const noexcept {
    const std::uint32_t seat = its.owner();
    return seat != timed::nobody && await(seat).is_stamping_.load(base::memory_order_seq_cst);
}

/// Locks the record for one store: a deadline that is written without would end up in whatever the record is used for
/// next (models/record_word.pml, for a sleep models/slot_word.pml).
bool crew::postpone_from_elsewhere(unit_index index, timed& its, std::uint64_t life, ordinal target) noexcept {
    const visit visiting(*this);
    // From the lock on it may be cancelled, but not fired or used again [record_word: lock] [slot_word: lock].
    // Relaxed: that of this life who has a timer was acquired before, in postpone_whatever(); whose it is now is acquired by
    // who locks it.
    state_word value = its.state.load(base::memory_order_relaxed);
    for (;;) {
        if (life_of(value) != life || !is_waiting(index, value) || waits_without_timer(index, its)) return false;
        if ((value & locked_flag) != 0) {  // Somebody else is postponing it.
            base::yield_this_thread();
            value = its.state.load(base::memory_order_relaxed);
        } else if (its.state.compare_exchange_weak(value, value | locked_flag, base::memory_order_seq_cst)) {
            break;
        }
    }

    // See stamp_at() [record_word: await stamp].
    while (is_stamped_now(its)) base::yield_this_thread();
    // In one step: the owner may postpone it at the same time, and move the ticket to where it wants it. Relaxed: it is
    // released by who unlocks it below [record_word: write deadline].
    const bool is_earlier = target < its.deadline.exchange(target, base::memory_order_relaxed);
    value = its.state.load(base::memory_order_relaxed);  // Whoever unlocks it acquires.
    for (;;) {
        const bool is_pending = life_of(value) == life && is_waiting(index, value);
        const bool is_vacant = (value & state_mask) == 0;  // Cancelled meanwhile, and nobody has given it back.
        const bool needs_owner = (is_pending && is_earlier) || is_vacant;
        const bool pushes = needs_owner && (value & linked_flag) == 0;
        // Whoever unlocks last gives it back, too [record_word: unlock] [slot_word: unlock].
        const state_word unlocked = (value & ~locked_flag) | (is_pending ? moved_flag : 0) | (pushes ? linked_flag : 0);
        if (!its.state.compare_exchange_weak(value, unlocked, base::memory_order_seq_cst)) continue;
        if (pushes) {
            worker& owner = owner_of(its);
            const std::uint32_t undrained = owner.inbox_.push(units_, index);
            if (undrained == 0) {
                send_to_all(index, its);
            } else {
                // Whoever has seen our mark and counted on our push has woken the owner in vain: it is on us to do it
                // again [park: overtaken].
                const bool is_overtaken =
                    its.state.load(base::memory_order_seq_cst) != unlocked || its.deadline_now() != target;
                owner.ring_for(is_overtaken ? 0 : is_pending ? target : end_of_time, undrained);
            }
        } else if (needs_owner && is_pending) {
            ring_owner(its, target);
        }
        if (is_pending) outside_.add(outside_count::postponed, 1);
        return is_pending;
    }
}

}  // namespace chime::inline v0::detail
