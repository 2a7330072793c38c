// SPDX-License-Identifier: MIT
#include "base/old_bug.hpp"
#include "worker/callback_extra.hpp"
#include "worker/crew.hpp"
#include "worker/hot_paths.hpp"
#include "worker/scopes.hpp"

#include <utility>

// Callbacks, as their owner sees them: the records, arming, running.

namespace chime::inline v0::detail {

// --- Records.

void worker::free_callback(unit_index index) noexcept {
    timed& its = callbacks_.at(index);
    free_callback(index, its, life_of(its.state.load(base::memory_order_relaxed)));
}

/// Other threads take what the owner has too many of.
[[gnu::noinline]] void worker::share_callbacks() noexcept {
    if (!callbacks_.shared_is_empty()) return;
    settle_notes();
    free_callbacks_.donate(donated_at_once, [this](timed& its) { part_with(its); });
}

// --- Arming.

/// With something to get first.
[[gnu::noinline]] arming worker::begin_arming_slowly() {
    unit_index index = no_unit;
    if (!crew_.is_stopped()) {
        reserve_tickets();
        if (!free_callbacks_.is_empty() || free_callbacks_.refill(carved_at_once)) index = free_callbacks_.pop();
    }
    if (index == no_unit) [[unlikely]] {
        if (!is_alone_) crew_.ask_for_free_units();
        crew_.outside_.add(outside_count::refused, 1);
        return {};
    }
    callbacks_.unseal(index);
    return {callbacks_.at(index).closure, index, settings_.records_locations};
}

/// Room for one more timer of the user's code that is running, so that nothing fails when its deadline is known; and for
/// the next tick of the periodic timer whose callback it may be. Throws std::bad_alloc; nothing has changed.
void worker::reserve_tickets() {
    if (!has_tickets()) wheel_.reserve(most_unstamped + 2);
    if (wheel_.is_advancing()) wheel_.reserve_near(unstamped_count_ + 1);
}

/// The rest of arm(), if it is more than to note the delay.
[[gnu::noinline]] timer_handle worker::set_first_deadline(timer_handle made, wait_limit limit) noexcept {
    if (limit.is_absolute == 0) {
        stamp_later(made.index, made.timer_id(), limit.count, true);
    } else {
        settle_notes();
        callback& its = callbacks_.at(made.index);
        its.set_deadline(crew_.deadline_of(limit));
        place(made.index, its, its.deadline_now());
    }
    return made;
}

// --- Running.

void worker::run_callback(unit_index index, ordinal now) {
    callback& its = callbacks_.at(index);
    its.set_ticket_word(its.ticket_word() | timed::gone_ticket);
    leave_wheel(its);
    count_end(true);
    counters_.add_lateness(now, its.deadline_now());
    struct end_of_run {
        ~end_of_run() { mine.end_run(index); }
        worker& mine;
        unit_index index;
    } const at_the_end{*this, index};
    offer_work();
    const user_code running(*this);
    its.its_operations().run(its.closure);
}

/// The callback has returned or thrown. The word says so before those who wait are told (models/run_waiters.pml); a record
/// that is in an inbox is not given back here (models/record_word.pml).
void worker::end_run(unit_index index) noexcept {
    callback& its = callbacks_.at(index);
    state_word value = its.state.load(base::memory_order_relaxed);
    const std::uint64_t life = life_of(value);
    const bool has_extra = (value & extra_flag) != 0;
    if (has_extra && its.extra()->period_ns != 0 && !crew_.is_stopped()) {
        while ((value & last_run_flag) == 0) {
            const ordinal next = its.extra()->next(its.deadline_now(), to_ordinal(now()));
            its.set_deadline(next);
            // Release: pairs with the acquire of whoever cancels it from now on, and destroys the closure. The marks that others
            // have set meanwhile say nothing else [record_word: arm again].
            const state_word armed = with_state(value, timer_state::armed) & ~waited_flag;
            its.set_number(take_number());
            count_arm();
            place(index, its, next);
            if (its.state.compare_exchange_strong(value, armed, base::memory_order_release)) {
                if ((value & waited_flag) != 0) crew_.notify_waiters(index, life);
                return;
            }
            leave_wheel(its);
            counters_.armed.subtract();
            counters_.pending.subtract();
        }
        if (base::has(base::old_bug::counts_out_twice) && wheel_.live() != 0) wheel_.count_end();
    }
    {
        const user_code destructors(*this);
        crew::destroy_closure(its, has_extra);
    }
    // Nobody else changes what is vacant, but while it was running somebody may have begun to
    // wait [run_waiters: end run].
    // Who has linked it leaves it to the drain to give it back [record_word: end run].
    const state_word kept = value & linked_flag;
    state_word before = its.state.load(base::memory_order_relaxed);
    // Release: pairs with the acquire of whoever waits for the end.
    while (!its.state.compare_exchange_weak(before, ((life + 1) << life_shift) | kept, base::memory_order_release)) {}
    if ((before & waited_flag) != 0) crew_.notify_waiters(index, life);
    if (kept == 0) free_callback(index);
}

void worker::run_posted(unit_index index) {
    callback& its = callbacks_.at(index);
    struct end_of_run {
        ~end_of_run() {
            {
                const user_code destructors(mine);
                crew::destroy_closure(its, false);
            }
            --mine.posted_;
            // Nobody else changes it [record_word: end posted].
            its.state.store(with_state(its.state.load(base::memory_order_relaxed), timer_state::vacant) + one_life,
                            base::memory_order_relaxed);
            mine.free_callback(index);
        }
        worker& mine;
        callback& its;
        unit_index index;
    } const at_the_end{*this, its, index};
    const user_code running(*this);
    its.its_operations().run(its.closure);
}

}  // namespace chime::inline v0::detail
