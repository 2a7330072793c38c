// SPDX-License-Identifier: MIT
#include "worker/callback_extra.hpp"
#include "worker/crew.hpp"
#include "worker/hot_paths.hpp"

#include <utility>

// Arming a callback, from a worker's own thread and from any other (models/record_word.pml).

namespace chime::inline v0::detail {

ordinal crew::deadline_of(wait_limit limit) const noexcept {
    if (limit.is_absolute != 0) return to_ordinal(time_point{duration{limit.count}});
    return ordinal_after(to_ordinal(now()), limit.count);
}

base::atomic<const void*>& crew::location_of(unit_index index) const noexcept {
    const std::size_t before = (index & slot_bit) != 0 ? settings_.max_timers : 0;
    return reinterpret_cast<base::atomic<const void*>*>(locations_.data())[before + (index & ~slot_bit)];
}

void crew::destroy_closure(callback& its, bool has_extra) noexcept {
    if (const auto destroy = its.its_operations().destroy) destroy(its.closure);
    // The token last: it may be its reaction that we are in.
    if (has_extra) [[unlikely]]
        delete its.extra();
}

// --- Records, for a thread that is no worker.

unit_index crew::take_callback() {
    unit_index taken = callbacks_.pop_shared();
    if (taken == no_unit) [[unlikely]] {
        is_short_of_callbacks_.store(true, base::memory_order_relaxed);  // A worker may have plenty; see its next turn.
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

arming crew::begin_arming() {
    if (worker* const mine = here()) [[likely]] {
        worker::assume_owner(mine);
        return mine->begin_arming();
    }
    return begin_arming_elsewhere();
}

packed_handle crew::try_arm_image(const closure_operations& operations, std::int64_t delay_ns,
                                  const closure_image& image) const noexcept {
    worker* const mine = here();
    worker::assume_owner(mine);
    return mine != nullptr ? mine->try_arm_image(operations, delay_ns, image) : packed_handle{};
}

[[gnu::noinline]] arming crew::begin_arming_elsewhere() {
    unit_index index = no_unit;
    if (!is_stopped()) {
        index = take_callback();
        if (index == no_unit && tidy_up()) index = take_callback();
    }
    if (index == no_unit) [[unlikely]] {
        outside_.add(outside_count::refused, 1);
        return {};
    }
    callbacks_.unseal(index);
    return {callbacks_.at(index).closure, index, settings_.records_locations};
}

void crew::abandon_arming(const arming& begun) noexcept {
    worker* const mine = here();
    worker::assume_owner(mine);
    callbacks_.seal(begun.index);
    if (mine != nullptr) {
        if (mine->free_callbacks_.push(begun.index)) return;
        mine->settle_notes();
        mine->part_with(callbacks_.at(begun.index));
    }
    callbacks_.push_shared(begun.index, begun.index);
}

timer_handle crew::arm(unit_index index, const closure_operations& operations, wait_limit limit) noexcept {
    if (worker* const mine = here()) [[likely]] {
        worker::assume_owner(mine);
        return mine->arm(index, operations, limit);
    }
    return arm_elsewhere(index, operations, limit);
}

[[gnu::noinline]] timer_handle crew::arm_elsewhere(unit_index index, const closure_operations& operations,
                                                   wait_limit limit) noexcept {
    callback& its = callbacks_.at(index);
    its.operations.store(&operations, base::memory_order_relaxed);
    const state_word vacant = its.state.load(base::memory_order_relaxed);
    sending bringing(*this);
    worker& target = choose_worker();
    const ordinal deadline = deadline_of(limit);
    its.set_deadline(deadline);
    its.set_number(timed::unnumbered | target.seat_);
    count_arm_elsewhere(target);
    // Release: pairs with the acquire of whoever cancels it, or drains the inbox [record_word: arm elsewhere].
    its.state.store(with_state(vacant, timer_state::armed) | owning_flag_of(operations) | linked_flag,
                    base::memory_order_release);
    send(index, its, deadline);
    const timer_handle made = name_of(index, life_of(vacant), target.seat_);
    end_if_stopped(made, bringing);
    return made;
}

/// What was armed while everything stopped may have been overlooked [park: end late arm]. Relaxed: a loop that still runs ends it
/// when it accepts it, and send() has rung for it if everything had stopped before; who destroys everything waits for us, or we
/// have learned of him when we counted ourselves in.
void crew::end_if_stopped(timer_handle made, sending& bringing) noexcept {
    if (!is_stopped()) [[likely]]
        return;
    bringing.stay();
    cancel(made);
}

void crew::count_arm_elsewhere(worker& target) noexcept {
    outside_.add(outside_count::armed, 1);
    if (is_alone_) target.foreign_work_.fetch_add(1, base::memory_order_relaxed);  // As in add_work().
}

timer_handle crew::arm_with_extra(const arming& begun, const arming_details& details) {
    sending bringing(*this);
    const unit_index index = begun.index;
    callback& its = callbacks_.at(index);
    its.operations.store(details.operations, base::memory_order_relaxed);
    const state_word vacant = its.state.load(base::memory_order_relaxed);
    worker* const mine = here();
    worker::assume_owner(mine);
    worker& target = mine != nullptr ? *mine : choose_worker();
    const timer_handle made = name_of(index, life_of(vacant), target.seat_);
    const state_word preparing = with_state(vacant, timer_state::preparing) | extra_flag;
    try {
        its.set_extra(new callback_extra{.period_ns = details.period_ns, .policy = details.policy, .watch = {}});
    } catch (...) {
        bringing.stay();
        destroy_closure(its, false);
        abandon_arming(begun);
        throw;
    }
    // Relaxed: it is only printed.
    if (settings_.records_locations) location_of(index).store(details.where, base::memory_order_relaxed);
    its.set_number(mine != nullptr ? mine->take_number() : timed::unnumbered | target.seat_);
    // From here on the token can cancel it; at once, if it is cancelled already. Relaxed: to register with it publishes this,
    // and who sees it marks it and touches nothing else [record_word: prepare].
    its.state.store(preparing, base::memory_order_relaxed);
    if (details.token != nullptr) {
        // After the word says so, or a request would find nothing to cancel [record_word: watch].
        its.extra()->watch.emplace(details.token->stop_token(), token_reaction{this, made});
    }

    const bool is_relative_here = mine != nullptr && details.limit.is_absolute == 0;
    const ordinal deadline = is_relative_here ? end_of_time : deadline_of(details.limit);
    // Nobody looks at it while it is prepared [record_word: write the first deadline].
    its.set_deadline(deadline);
    if (mine != nullptr) {
        mine->count_arm();
    } else {
        count_arm_elsewhere(target);
    }
    const state_word armed = with_state(preparing, timer_state::armed) | (mine != nullptr ? 0 : linked_flag);
    // In one step: whoever has cancelled it meanwhile has left a mark [record_word: arm prepared].
    state_word expected = preparing;
    // Release: pairs with the acquire of whoever cancels it. The mark that makes it fail says nothing else.
    if (!its.state.compare_exchange_strong(expected, armed, base::memory_order_release)) {
        // Cancelled while it was prepared: it ends like any other that was cancelled [record_word: end prepared].
        const state_word ending = with_state(preparing, timer_state::ending) + one_life;
        its.state.store(ending, base::memory_order_relaxed);
        if (mine != nullptr) mine->settle_notes();
        bringing.stay();
        end_cancelled(index, ending);
    } else if (mine == nullptr) {
        send(index, its, deadline);
        end_if_stopped(made, bringing);
    } else if (!is_relative_here) {
        mine->settle_notes();
        mine->place(index, its, deadline);
    } else {
        mine->stamp_later(index, made.timer_id(), details.limit.count, true);
    }
    return made;
}

void crew::post(const arming& begun, const closure_operations& operations) noexcept {
    callback& its = callbacks_.at(begun.index);
    its.operations.store(&operations, base::memory_order_relaxed);
    const state_word vacant = its.state.load(base::memory_order_relaxed);
    its.set_number(timed::unnumbered | first().seat_);
    if (worker* const mine = here()) {
        worker::assume_owner(mine);
        ++mine->posted_;
        its.state.store(with_state(vacant, timer_state::posted), base::memory_order_relaxed);
        mine->push_ready(begun.index);
    } else {
        const visit visiting(*this);
        add_work();
        // Nobody can cancel it, so only who has it in hand changes its word [record_word: post].
        // Relaxed: the inbox publishes it. If nobody takes it out of there, the crew's destructor has waited for this visit to end,
        // and acquired that; who posts to a context when its destructor has begun without him has no context to post to. A
        // runtime, which shuts down without such a wait, posts tasks and none of these.
        its.state.store(with_state(vacant, timer_state::posted) | linked_flag, base::memory_order_relaxed);
        send(begun.index, its, 0);
    }
}

// --- What public headers call: they do not know what a crew is.

arming begin_arming(crew& home) {
    return home.begin_arming();
}

packed_handle try_arm_image(crew& home, const closure_operations& operations, std::int64_t delay_ns,
                            std::uint64_t first_word, std::uint64_t second_word, std::uint64_t third_word) noexcept {
    return home.try_arm_image(operations, delay_ns, {{first_word, second_word, third_word}});
}

void abandon_arming(crew& home, const arming& begun) noexcept {
    home.abandon_arming(begun);
}

timer_handle arm(crew& home, std::uint32_t index, const closure_operations& operations, wait_limit limit) noexcept {
    return home.arm(index, operations, limit);
}

timer_handle arm_with_extra(crew& home, const arming& begun, const arming_details& details) {
    return home.arm_with_extra(begun, details);
}

void post(crew& home, const arming& begun, const closure_operations& operations) noexcept {
    home.post(begun, operations);
}

}  // namespace chime::inline v0::detail
