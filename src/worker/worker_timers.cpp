// SPDX-License-Identifier: MIT
#include "worker/hot_paths.hpp"
#include "worker/scopes.hpp"
#include "worker/worker.hpp"

#include <chime/detail/frame_memory.hpp>

#include <optional>
#include <stop_token>
#include <utility>

// Arming a callback and running it, from the owner's thread and from any other.

namespace chime::inline v0::detail {

namespace {

/// What a token does when it is cancelled.
struct token_reaction {
    void operator()() const noexcept { home->cancel(which); }
    worker* home;
    timer_handle which;
};

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
        if (policy == missed_ticks::delay) return ordinal_after(now, period_ns);
        ordinal from = met;
        if (policy == missed_ticks::skip && now > met) {
            const auto period = static_cast<ordinal>(period_ns);
            from = met + (now - met) / period * period;  // The last tick that has passed.
        }
        return ordinal_after(from, period_ns);
    }
};

bool worker::is_waiting(unit_index index, state_word value) noexcept {
    return (index & slot_bit) != 0 ? phase_of(value) == task_phase::idle : state_of(value) == timer_state::armed;
}

ordinal worker::deadline_of(wait_limit limit) const noexcept {
    if (limit.is_absolute != 0) return to_ordinal(time_point{duration{limit.count}});
    return ordinal_after(to_ordinal(now()), limit.count);
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

void worker::free_callback(unit_index index) noexcept {
    free_callback(index, callbacks_.at(index));
}

/// Other threads take what the owner has too many of.
[[gnu::noinline]] void worker::share_callbacks() noexcept {
    if (callbacks_.shared_is_empty()) free_callbacks_.donate(donated_at_once);
}

void worker::destroy_closure(callback& its, bool has_extra) noexcept {
    if (const auto destroy = its.its_operations().destroy) destroy(its.closure);
    // The token last: it may be its reaction that we are in.
    if (has_extra) [[unlikely]]
        delete its.extra();
}

// --- Arming.

base::atomic<const void*>& worker::location_of(unit_index index) const noexcept {
    return reinterpret_cast<base::atomic<const void*>*>(locations_.data())[index];
}

arming worker::begin_arming() {
    if (is_current() && !free_callbacks_.is_empty() && has_tickets() && !is_stopped()) [[likely]] {
        const unit_index index = free_callbacks_.pop();
        return {callbacks_.at(index).closure, index, settings_.records_locations};
    }
    return begin_arming_slowly();
}

/// From another thread, or with something to get first.
[[gnu::noinline]] arming worker::begin_arming_slowly() {
    unit_index index = no_unit;
    if (is_stopped_.load(base::memory_order_relaxed)) {
        // Refused below.
    } else if (is_current()) {
        reserve_tickets();
        if (!free_callbacks_.is_empty() || free_callbacks_.refill(carved_at_once)) index = free_callbacks_.pop();
    } else {
        index = take_callback_elsewhere();
        if (index == no_unit && tidy_up_elsewhere()) index = take_callback_elsewhere();
    }
    if (index == no_unit) [[unlikely]] {
        refused_.add(1);
        return {};
    }
    return {callbacks_.at(index).closure, index, settings_.records_locations};
}

/// Room for one more timer of the user's code that is running, so that nothing fails when its deadline is known; and for
/// the next tick of the periodic timer whose callback it may be. Throws std::bad_alloc; nothing has changed.
void worker::reserve_tickets() {
    if (!has_tickets()) wheel_.reserve(most_unstamped + 2);
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
    if (settings_.records_locations) location_of(index).store(details.where, base::memory_order_relaxed);
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
    const user_code running(*this);
    its.its_operations().run(its.closure);
}

/// The callback has returned or thrown.
void worker::end_run(unit_index index) noexcept {
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

}  // namespace chime::inline v0::detail
