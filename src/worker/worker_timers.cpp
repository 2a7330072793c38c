// SPDX-License-Identifier: MIT
#include "base/check.hpp"
#include "base/thread.hpp"
#include "worker/scopes.hpp"
#include "worker/worker.hpp"

#include <chime/detail/frame_memory.hpp>

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <utility>

// Arming, cancelling, postponing: what `timers` asks of a worker, from the owner's thread and from any other.

namespace chime::inline v0::detail {

namespace {

/// How many a thread takes when it has none left, and how many the owner keeps for itself.
constexpr std::size_t carved_at_once = 64;
constexpr std::size_t kept_in_reserve = 256;
constexpr std::size_t donated_at_once = 128;

/// What a token does when it is cancelled.
struct token_reaction {
    void operator()() const noexcept { home->cancel(which); }
    worker* home;
    timer_handle which;
};

/// The closures that this thread is destroying right now, because it has cancelled their timers.
struct closure_end {
    const worker* home;
    unit_index index;
    std::uint64_t life;
    const closure_end* before;
};
thread_local constinit const closure_end* closures_ending = nullptr;

/// A closure that owns its own timer asks about it while it is destroyed.
bool is_ending_here(const worker* home, unit_index index, std::uint64_t life) noexcept {
    for (const closure_end* each = closures_ending; each != nullptr; each = each->before) {
        if (each->home == home && each->index == index && each->life == life) return true;
    }
    return false;
}

ordinal after(ordinal now, std::int64_t delay_ns) noexcept {
    return to_ordinal(deadline_after(to_time_point(now), std::chrono::nanoseconds{delay_ns}));
}

}  // namespace

/// What few callbacks have.
struct callback_extra {
    std::int64_t period_ns = 0;
    missed_ticks policy = missed_ticks::skip;
    std::optional<std::stop_callback<token_reaction>> watch;

    static void* operator new(std::size_t bytes) { return take_frame(bytes); }
    static void operator delete(void* memory, std::size_t bytes) noexcept { give_frame(memory, bytes); }

    /// The deadline after the one that was met.
    [[nodiscard]] ordinal next(ordinal met, ordinal now) const noexcept {
        if (policy == missed_ticks::delay) return after(now, period_ns);
        ordinal from = met;
        if (policy == missed_ticks::skip && now > met) {
            const auto period = static_cast<ordinal>(period_ns);
            from = met + (now - met) / period * period;  // The last tick that has passed.
        }
        return after(from, period_ns);
    }
};

namespace {

/// A task that waits, but not for a time: a made-up handle may name it.
bool waits_without_timer(unit_index index, const timed& its) noexcept {
    return (index & slot_bit) != 0 && its.arming_number() == timed::unnumbered;
}

}  // namespace

bool worker::is_waiting(unit_index index, state_word value) noexcept {
    return (index & slot_bit) != 0 ? phase_of(value) == task_phase::idle : state_of(value) == timer_state::armed;
}

ordinal worker::deadline_of(wait_limit limit) const noexcept {
    if (limit.is_absolute != 0) return to_ordinal(time_point{duration{limit.count}});
    return after(to_ordinal(now()), limit.count);
}

void worker::count_end(bool has_fired) noexcept {
    (has_fired ? counters_.fired : counters_.cancelled).add();
    counters_.pending.subtract();
}

// --- Records.

unit_index worker::take_callback_elsewhere() {
    unit_index taken = callbacks_.pop_shared();
    if (taken == no_unit) [[unlikely]] {
        is_short_.store(true, base::memory_order_relaxed);  // The owner may have plenty; see its next turn.
        taken = callbacks_.carve(carved_at_once);
        if (taken == no_unit) return no_unit;
        const unit_index rest = callbacks_.at(taken).link.load(base::memory_order_relaxed);
        if (rest != no_unit) {
            unit_index last = rest;
            for (;;) {
                const unit_index next = callbacks_.at(last).link.load(base::memory_order_relaxed);
                if (next == no_unit) break;
                last = next;
            }
            callbacks_.push_shared(rest, last);
        }
    }
    return taken;
}

/// The owner gives a record back. Its word says vacant already.
inline void worker::free_callback(unit_index index, callback& its) noexcept {
    leave_wheel(its);
    if (life_of(its.state.load(base::memory_order_relaxed)) < settings_.life_limit) [[likely]] {
        free_callbacks_.push(index);
        if (free_callbacks_.count() >= kept_in_reserve) [[unlikely]]
            share_callbacks();
    }
    wheel_.limit_stale(units_);
}

void worker::free_callback(unit_index index) noexcept {
    free_callback(index, callbacks_.at(index));
}

/// Other threads take what the owner has too many of.
[[gnu::noinline]] void worker::share_callbacks() noexcept {
    if (callbacks_.shared_is_empty()) free_callbacks_.donate(donated_at_once);
}

/// Another thread is done with a record, which only the owner can give back.
void worker::give_back_elsewhere(unit_index index) noexcept {
    ring_for(end_of_time, inbox_.push(units_, index));
}

void worker::destroy_closure(callback& its, bool has_extra) noexcept {
    if (const auto destroy = its.its_operations().destroy) destroy(its.closure);
    // The token last: it may be its reaction that we are in.
    if (has_extra) [[unlikely]]
        delete its.extra();
}

// --- Arming.

base::atomic<const void*>& worker::place_of_arming(unit_index index) const noexcept {
    return reinterpret_cast<base::atomic<const void*>*>(places_.data())[index];
}

arming worker::begin_arming() {
    if (is_current() && !free_callbacks_.is_empty() && has_places() && !is_stopped()) [[likely]] {
        const unit_index index = free_callbacks_.pop();
        return {callbacks_.at(index).closure, index, settings_.records_places};
    }
    return begin_arming_slowly();
}

/// From another thread, or with something to get first.
[[gnu::noinline]] arming worker::begin_arming_slowly() {
    unit_index index = no_unit;
    if (is_stopped_.load(base::memory_order_relaxed)) {
        // Refused below.
    } else if (is_current()) {
        reserve_places();
        if (!free_callbacks_.is_empty() || free_callbacks_.refill(carved_at_once)) index = free_callbacks_.pop();
    } else {
        index = take_callback_elsewhere();
        if (index == no_unit && tidy_up_elsewhere()) index = take_callback_elsewhere();
    }
    if (index == no_unit) [[unlikely]] {
        refused_.add(1);
        return {};
    }
    return {callbacks_.at(index).closure, index, settings_.records_places};
}

/// Room for one more timer of the user's code that is running, so that nothing fails when its deadline is known; and for
/// the next tick of the periodic timer whose callback it may be. Throws std::bad_alloc; nothing has changed.
void worker::reserve_places() {
    if (!has_places()) wheel_.reserve(most_unstamped + 2);
    if (is_firing_) wheel_.reserve_near(unstamped_count_ + 1);
}

void worker::abandon_arming(const arming& begun) noexcept {
    if (is_current()) {
        free_callbacks_.push(begun.index);
    } else {
        callbacks_.push_shared(begun.index, begun.index);
    }
}

timer_handle worker::arm(unit_index index, const closure_operations& operations, wait_limit limit) noexcept {
    callback& its = callbacks_.at(index);
    its.operations.store(&operations, base::memory_order_relaxed);
    const state_word vacant = its.state.load(base::memory_order_relaxed);
    if (is_current()) [[likely]] {
        its.set_number(next_number_++);
        counters_.armed.add();
        counters_.pending.add();
        // Release: pairs with the acquire of whoever cancels it.
        its.state.store(with_state(vacant, timer_state::armed), base::memory_order_release);
        if (limit.is_absolute == 0) {
            its.set_deadline(end_of_time);
            stamp_later(index, life_of(vacant), limit.count, true);
        } else {
            its.set_deadline(deadline_of(limit));
            place(index, its, its.deadline_now());
        }
    } else {
        arm_elsewhere(index, its, limit, with_state(vacant, timer_state::armed));
    }
    return {.life = life_of(vacant), .index = index, .runtime = identity_};
}

[[gnu::noinline]] void worker::arm_elsewhere(unit_index index, callback& its, wait_limit limit,
                                             state_word armed) noexcept {
    const ordinal deadline = deadline_of(limit);
    its.set_deadline(deadline);
    its.set_number(timed::unnumbered);
    count_arm_elsewhere();
    // Release: pairs with the acquire of whoever cancels it, or drains the inbox.
    its.state.store(armed | linked_flag, base::memory_order_release);
    ring_for(deadline, inbox_.push(units_, index));
}

void worker::count_arm_elsewhere() noexcept {
    armed_elsewhere_.add(1);
    foreign_pending_.fetch_add(1, base::memory_order_relaxed);
    foreign_work_.fetch_add(1, base::memory_order_seq_cst);
}

timer_handle worker::arm_with_extra(const arming& begun, const arming_details& details) {
    const unit_index index = begun.index;
    callback& its = callbacks_.at(index);
    its.operations.store(details.operations, base::memory_order_relaxed);
    const state_word vacant = its.state.load(base::memory_order_relaxed);
    const timer_handle made{.life = life_of(vacant), .index = index, .runtime = identity_};
    const state_word preparing = with_state(vacant, timer_state::preparing) | extra_flag;
    try {
        its.set_extra(new callback_extra{.period_ns = details.period_ns, .policy = details.policy, .watch = {}});
    } catch (...) {
        destroy_closure(its, false);
        abandon_arming(begun);
        throw;
    }
    // Relaxed: it is only printed.
    if (settings_.records_places) place_of_arming(index).store(details.where, base::memory_order_relaxed);
    // From here on the token can cancel it; at once, if it is cancelled already.
    its.state.store(preparing, base::memory_order_release);
    if (details.token->can_be_cancelled()) {
        its.extra()->watch.emplace(details.token->stop_token(), token_reaction{this, made});
    }

    const bool is_here = is_current();
    const bool is_relative_here = is_here && details.limit.is_absolute == 0;
    const ordinal deadline = is_relative_here ? end_of_time : deadline_of(details.limit);
    its.set_deadline(deadline);
    if (is_here) {
        its.set_number(next_number_++);
        counters_.armed.add();
        counters_.pending.add();
    } else {
        its.set_number(timed::unnumbered);
        count_arm_elsewhere();
    }
    const state_word armed = with_state(preparing, timer_state::armed) | (is_here ? 0 : linked_flag);
    state_word expected = preparing;
    if (!its.state.compare_exchange_strong(expected, armed, base::memory_order_acq_rel)) {
        // Cancelled while it was prepared: it ends like any other that was cancelled.
        const state_word ending = with_state(preparing, timer_state::ending) + one_life;
        its.state.store(ending, base::memory_order_relaxed);
        end_cancelled(index, ending);
    } else if (!is_here) {
        ring_for(deadline, inbox_.push(units_, index));
    } else if (!is_relative_here) {
        place(index, its, deadline);
    } else {
        stamp_later(index, made.life, details.limit.count, true);
    }
    return made;
}

void worker::post(const arming& begun, const closure_operations& operations) noexcept {
    callback& its = callbacks_.at(begun.index);
    its.operations.store(&operations, base::memory_order_relaxed);
    const state_word vacant = its.state.load(base::memory_order_relaxed);
    if (is_current()) {
        ++posted_;
        its.state.store(with_state(vacant, timer_state::posted), base::memory_order_relaxed);
        ready_.push(units_, begun.index);
    } else {
        foreign_work_.fetch_add(1, base::memory_order_seq_cst);
        its.state.store(with_state(vacant, timer_state::posted) | linked_flag, base::memory_order_release);
        ring_for(0, inbox_.push(units_, begun.index));
    }
}

/// Puts a ticket for it into the wheel, or inherits the one that its predecessor in the record has left there. Does not
/// write the deadline: it may be somebody else's. Needs room that was reserved.
inline void worker::place(unit_index index, timed& its, ordinal target) noexcept {
    const std::uint64_t tick = wheel_.tick_of(target);
    const std::uint32_t left_behind = its.ticket_word();
    wheel_.count_arm();
    ++wheel_live_;
    if ((left_behind & timed::gone_ticket) == 0 && wheel_.is_met_before(its.place(), tick)) {
        its.set_ticket_word(left_behind & ~timed::vacant_ticket);
    } else {
        put_ticket(index, its, target);
    }
}

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
    const std::uint64_t tick = wheel_.tick_of(target);
    if (wheel_.is_met_before(its.place(), tick)) return;  // The ticket will find out and move on.
    const std::uint16_t stamp = its.next_stamp();
    if (is_firing_ && its.arming_number() < number_limit_ && tick <= wheel_.current_tick()) {
        wheel_.put_near({target, its.arming_number(), index, stamp});  // In time for this very turn.
    } else {
        wheel_.put(wheel_.slot_for(tick), {target, index, stamp});
    }
    its.set_ticket(stamp, wheel_.place_of(tick));
    wheel_.limit_stale(units_);
}

/// The owner gives a timer another deadline. `value` is what its word said. Needs room that was reserved.
void worker::move_to(unit_index index, timed& its, state_word value, ordinal target) noexcept {
    // In an inbox: the drain looks at whatever the deadline is then. Otherwise the ticket is not later than the deadline
    // in force; if that grows, there is nothing to do but to write it down.
    const bool is_later = target >= its.deadline_now();
    its.set_deadline(target);
    if ((value & linked_flag) == 0 && !is_later) move_ticket(index, its, target);
}

/// Another thread has armed it, or given it an earlier deadline. The owner does not write that deadline: the other may be
/// writing the next one.
void worker::accept(unit_index index, timed& its) {
    // Before the deadline is read, so that a later change is not taken for this one. Acquire: pairs with the release
    // of whoever wrote it.
    its.state.fetch_and(~moved_flag, base::memory_order_acquire);
    if (its.arming_number() == timed::unnumbered) {
        its.set_number(next_number_++);
        place(index, its, its.deadline_now());
        if (is_stopped_.load(base::memory_order_relaxed)) {  // It came too late: it is cancelled like the others.
            const state_word value = its.state.load(base::memory_order_relaxed);
            cancel({.life = life_of(value), .index = index, .runtime = identity_});
        }
    } else if (its.has_timer()) {
        move_ticket(index, its, its.deadline_now());
    }
}

void worker::stamp_later(unit_index index, std::uint64_t life, std::int64_t delay_ns, bool is_new) noexcept {
    unstamped_[unstamped_count_++] = {delay_ns, life, index, is_new};
    if (unstamped_count_ == most_unstamped) stamp();
}

/// One look at the clock for all that was armed by a delay since the last one: never early, because the delay counts
/// from now, and late by less than what the user's code did in between.
void worker::stamp() noexcept {
    stamp_at(to_ordinal(now()));
}

/// These deadlines are written some time after they were asked for, and another thread may have been told of the timer
/// meanwhile, and postpone it: it must not be overwritten. Either we see its lock, or it sees that we are at it, and
/// waits; so both announce themselves before they look, in the one order of all seq_cst steps.
void worker::stamp_at(ordinal now) noexcept {
    if (unstamped_count_ == 0) return;
    is_stamping_.store(true, base::memory_order_seq_cst);
    const std::size_t count = std::exchange(unstamped_count_, 0);
    for (std::size_t position = 0; position < count; ++position) stamp_one(unstamped_[position], now);
    is_stamping_.store(false, base::memory_order_release);  // Pairs with the acquire of whoever waits.
}

void worker::stamp_one(const unstamped& entry, ordinal now) noexcept {
    timed& its = units_.at(entry.index);
    const state_word value = its.state.load(base::memory_order_seq_cst);
    if (life_of(value) != entry.life || !is_waiting(entry.index, value)) return;  // Cancelled, perhaps used again.
    const bool is_overtaken = (value & (moved_flag | locked_flag)) != 0;          // Somebody else has the last word.
    const ordinal target = is_overtaken ? its.deadline_now() : after(now, entry.delay_ns);
    if (entry.is_new) {
        if (!is_overtaken) its.set_deadline(target);
        place(entry.index, its, target);
    } else if (!is_overtaken && its.has_timer()) {
        move_to(entry.index, its, value, target);
    }
}

// --- Running.

void worker::run_callback(unit_index index, ordinal now) {
    callback& its = callbacks_.at(index);
    its.set_ticket_word(its.ticket_word() | timed::gone_ticket);
    leave_wheel(its);
    count_end(true);
    counters_.add_lateness(now - its.deadline_now());
    struct end_of_run {
        ~end_of_run() { mine.end_run(index); }
        worker& mine;
        unit_index index;
    } const at_the_end{*this, index};
    running_callback_ = index;
    const user_code running(*this);
    its.its_operations().run(its.closure);
}

/// The callback has returned or thrown.
void worker::end_run(unit_index index) noexcept {
    running_callback_ = no_unit;
    callback& its = callbacks_.at(index);
    state_word value = its.state.load(base::memory_order_relaxed);
    const std::uint64_t life = life_of(value);
    const bool has_extra = (value & extra_flag) != 0;
    if (has_extra && its.extra()->period_ns != 0 && !is_stopped_.load(base::memory_order_relaxed)) {
        while ((value & last_run_flag) == 0) {
            const ordinal next = its.extra()->next(its.deadline_now(), to_ordinal(now()));
            its.set_deadline(next);
            // Released: whoever cancels it from now on destroys the closure.
            const state_word armed = with_state(value, timer_state::armed) & ~waited_flag;
            its.set_number(next_number_++);
            counters_.armed.add();
            counters_.pending.add();
            place(index, its, next);
            if (its.state.compare_exchange_strong(value, armed, base::memory_order_acq_rel)) {
                if ((value & waited_flag) != 0) notify_waiters(index, life);
                return;
            }
            leave_wheel(its);
            counters_.armed.subtract();
            counters_.pending.subtract();
        }
    }
    {
        const user_code destructors(*this);
        destroy_closure(its, has_extra);
    }
    // Nobody else changes what is vacant, but while it was running somebody may have begun to wait.
    const state_word kept = value & linked_flag;
    state_word before = its.state.load(base::memory_order_relaxed);
    while (!its.state.compare_exchange_weak(before, ((life + 1) << life_shift) | kept, base::memory_order_acq_rel)) {}
    if ((before & waited_flag) != 0) notify_waiters(index, life);
    if (kept == 0) free_callback(index);
}

void worker::run_posted(unit_index index) {
    callback& its = callbacks_.at(index);
    struct end_of_run {
        ~end_of_run() {
            {
                const user_code destructors(mine);
                destroy_closure(its, false);
            }
            --mine.posted_;
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

// --- Cancelling.

cancel_result worker::cancel(timer_handle which) noexcept {
    if (which.runtime != identity_) return cancel_result::gone;
    if (which.is_sleep()) {
        // A wait for something else than time has no handle, whatever somebody makes up.
        const bool is_timed =
            slots_.contains(which.index) && slots_.at(which.index).arming_number() != timed::unnumbered;
        return is_timed && wake(which.index, which.timer_id(), wake_cause::cancelled) ? cancel_result::cancelled
                                                                                      : cancel_result::gone;
    }
    if (!callbacks_.contains(which.index)) return cancel_result::gone;
    callback& its = callbacks_.at(which.index);
    // Acquire: pairs with the release that armed it, so that the closure can be destroyed.
    state_word value = its.state.load(base::memory_order_acquire);
    for (;;) {
        if (life_of(value) != which.timer_id()) return cancel_result::gone;
        switch (state_of(value)) {
        case timer_state::armed: {
            const state_word ending = (with_state(value, timer_state::ending) & ~moved_flag) + one_life;
            if (!its.state.compare_exchange_weak(value, ending, base::memory_order_acq_rel)) continue;
            if (is_current() && (ending & (linked_flag | locked_flag | extra_flag)) == 0) [[likely]] {
                if (const auto destroy = its.its_operations().destroy) destroy(its.closure);
                count_end(false);
                // Nobody else has a reason to touch it.
                its.state.store(ending & ~flag_mask, base::memory_order_relaxed);
                free_callback(which.index, its);
            } else {
                end_cancelled(which.index, ending);
            }
            return cancel_result::cancelled;
        }
        case timer_state::preparing:
            if ((value & last_run_flag) != 0) return cancel_result::gone;
            if (!its.state.compare_exchange_weak(value, value | last_run_flag, base::memory_order_acq_rel)) continue;
            return cancel_result::cancelled;
        case timer_state::running:
            if (!its.state.compare_exchange_weak(value, value | last_run_flag, base::memory_order_acq_rel)) continue;
            return cancel_result::running;
        default: return cancel_result::gone;
        }
    }
}

/// Whoever has cancelled a timer destroys its closure and gives the record back, unless somebody still holds on to it:
/// then whoever comes last does.
void worker::end_cancelled(unit_index index, state_word claimed) noexcept {
    callback& its = callbacks_.at(index);
    {
        const closure_end ending{this, index, life_of(claimed), closures_ending};
        closures_ending = &ending;
        destroy_closure(its, (claimed & extra_flag) != 0);
        closures_ending = ending.before;
    }
    const bool is_here = is_current();
    if (is_here) {
        count_end(false);
        if ((claimed & (linked_flag | locked_flag)) == 0) [[likely]] {
            // Nobody else has a reason to touch it. Released with the magazine.
            its.state.store(claimed & ~flag_mask, base::memory_order_relaxed);
            free_callback(index);
            return;
        }
    } else {
        cancelled_elsewhere_.add(1);
        foreign_pending_.fetch_sub(1, base::memory_order_relaxed);
    }
    state_word value = its.state.load(base::memory_order_relaxed);
    for (;;) {
        const bool is_held = (value & (linked_flag | locked_flag)) != 0;
        const state_word ended =
            (value & (~flag_mask | linked_flag | locked_flag)) | (is_held || is_here ? 0 : linked_flag);
        // Release: the end of the closure comes before the record is used again.
        if (!its.state.compare_exchange_weak(value, ended, base::memory_order_acq_rel)) continue;
        if (!is_held) {
            if (is_here) {
                free_callback(index);
            } else {
                give_back_elsewhere(index);
            }
        }
        break;
    }
    if (!is_here) drop_work();
}

cancel_result worker::cancel_and_wait(timer_handle which) noexcept {
    const cancel_result result = cancel(which);
    if (result == cancel_result::cancelled || which.runtime != identity_ || which.is_sleep() ||
        !callbacks_.contains(which.index)) {
        return result;
    }
    callback& its = callbacks_.at(which.index);
    if (is_below()) return result;
    if (result == cancel_result::gone) {
        // Somebody else may have cancelled it this moment, and still be busy with its closure.
        for (;;) {
            const state_word value = its.state.load(base::memory_order_acquire);
            if (life_of(value) != which.timer_id() + 1 || state_of(value) != timer_state::ending) return result;
            if (is_ending_here(this, which.index, life_of(value))) return result;
            base::yield_this_thread();
        }
    }
    for (;;) {
        const std::uint32_t seen = ended_runs_.load(base::memory_order_acquire);
        state_word value = its.state.load(base::memory_order_acquire);
        if (life_of(value) != which.timer_id() || state_of(value) != timer_state::running) return result;
        if (its.state.compare_exchange_weak(value, value | waited_flag, base::memory_order_acq_rel)) {
            static_cast<void>(base::futex_wait(ended_runs_, seen));
        }
    }
}

bool worker::cancel_and_subscribe(timer_handle which, cancel_result& result, completion& who) {
    result = cancel(which);
    if (result != cancel_result::running || is_below()) return false;
    {
        const base::lock_guard lock(waiters_mutex_);
        waiters_.push_back({which.index, which.timer_id(), &who});
    }
    callback& its = callbacks_.at(which.index);
    state_word value = its.state.load(base::memory_order_acquire);
    while (life_of(value) == which.timer_id() && state_of(value) == timer_state::running) {
        if (its.state.compare_exchange_weak(value, value | waited_flag, base::memory_order_acq_rel)) return true;
    }
    unsubscribe(who);
    return false;
}

void worker::unsubscribe(const completion& who) noexcept {
    const base::lock_guard lock(waiters_mutex_);
    std::erase_if(waiters_, [&](const waiter& each) { return each.who == &who; });
}

void worker::notify_waiters(unit_index index, std::uint64_t life) noexcept {
    {
        // Under the lock, so that whoever waits cannot go away; it only makes tasks ready.
        const base::lock_guard lock(waiters_mutex_);
        for (const waiter& each : waiters_) {
            if (each.index == index && each.life == life) each.who->complete();
        }
    }
    ended_runs_.fetch_add(1, base::memory_order_release);  // Pairs with the acquire in cancel_and_wait().
    base::futex_wake_all(ended_runs_);
}

// --- Postponing.

bool worker::postpone(timer_handle which, wait_limit limit) {
    if (which.runtime != identity_) return false;
    if (which.is_sleep() ? !slots_.contains(which.index) : !callbacks_.contains(which.index)) return false;
    timed& its = units_.at(which.index);
    if (is_current()) return postpone_here(which.index, its, which.timer_id(), limit);
    return postpone_from_elsewhere(which.index, its, which.timer_id(), deadline_of(limit));
}

/// The owner alone moves tickets and fires, so all it has to know is that the timer is pending.
bool worker::postpone_here(unit_index index, timed& its, std::uint64_t life, wait_limit limit) {
    state_word value = its.state.load(base::memory_order_acquire);
    if (life_of(value) != life || !is_waiting(index, value)) return false;
    if (waits_without_timer(index, its)) return false;
    reserve_places();
    while ((value & moved_flag) != 0) {
        // What others have asked for before is overtaken; if the mark is there again later, we are.
        if (its.state.compare_exchange_weak(value, value & ~moved_flag, base::memory_order_acq_rel)) break;
        if (life_of(value) != life || !is_waiting(index, value)) return false;
    }
    if (limit.is_absolute != 0) {
        if (unstamped_count_ != 0) stamp();  // Its own deadline may be among those.
        if (its.has_timer()) {
            move_to(index, its, value, deadline_of(limit));
        } else {
            its.set_deadline(deadline_of(limit));  // Still in the inbox.
        }
    } else if (its.arming_number() == timed::unnumbered) {
        its.set_deadline(deadline_of(limit));
    } else {
        stamp_later(index, life, limit.count, false);
    }
    counters_.postponed.add();
    return true;
}

/// Locks the record for one store: a deadline that is written without would end up in whatever the record is used for
/// next (models/record_word.pml).
bool worker::postpone_from_elsewhere(unit_index index, timed& its, std::uint64_t life, ordinal target) noexcept {
    state_word value = its.state.load(base::memory_order_acquire);
    for (;;) {
        if (life_of(value) != life || !is_waiting(index, value) || waits_without_timer(index, its)) return false;
        if ((value & locked_flag) != 0) {  // Somebody else is postponing it.
            base::yield_this_thread();
            value = its.state.load(base::memory_order_acquire);
        } else if (its.state.compare_exchange_weak(value, value | locked_flag, base::memory_order_seq_cst)) {
            break;
        }
    }

    // See stamp_at().
    while (is_stamping_.load(base::memory_order_seq_cst)) base::yield_this_thread();
    // In one step: the owner may postpone it at the same time, and move the ticket to where it wants it.
    const bool is_earlier = target < its.deadline.exchange(target, base::memory_order_acq_rel);
    value = its.state.load(base::memory_order_acquire);
    for (;;) {
        const bool is_pending = life_of(value) == life && is_waiting(index, value);
        const bool is_vacant = (value & state_mask) == 0;  // Cancelled meanwhile, and nobody has given it back.
        const bool needs_owner = (is_pending && is_earlier) || is_vacant;
        const bool pushes = needs_owner && (value & linked_flag) == 0;
        const state_word unlocked = (value & ~locked_flag) | (is_pending ? moved_flag : 0) | (pushes ? linked_flag : 0);
        if (!its.state.compare_exchange_weak(value, unlocked, base::memory_order_seq_cst)) continue;
        if (pushes) {
            const std::uint32_t undrained = inbox_.push(units_, index);
            // Whoever has seen our mark and counted on our push has woken the owner in vain: it is on us to do it again.
            const bool is_overtaken =
                its.state.load(base::memory_order_seq_cst) != unlocked || its.deadline_now() != target;
            ring_for(is_overtaken ? 0 : is_pending ? target : end_of_time, undrained);
        } else if (needs_owner && is_pending) {
            ring_for(target, 0);
        }
        if (is_pending) postponed_elsewhere_.add(1);
        return is_pending;
    }
}

}  // namespace chime::inline v0::detail
