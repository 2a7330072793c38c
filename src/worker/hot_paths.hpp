// SPDX-License-Identifier: MIT
#pragma once

#include "worker/crew.hpp"

#include <chime/time.hpp>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>

// What several files of the worker do for every timer, and want to have inline.

namespace chime::inline v0::detail {

/// deadline_after(), in few instructions: nothing, less than nothing and "never" are told apart from the rest by one comparison.
[[nodiscard]] inline ordinal ordinal_after(ordinal now, std::int64_t delay_ns) noexcept {
    constexpr auto never_ns = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const auto delay = static_cast<std::uint64_t>(delay_ns);
    if (delay - 1 >= never_ns - 1) [[unlikely]]
        return delay == never_ns ? end_of_time : now;
    ordinal target = 0;
    return __builtin_add_overflow(now, delay, &target) ? end_of_time : target;
}

[[nodiscard]] inline state_word owning_flag_of(const closure_operations& operations) noexcept {
    return operations.destroy != nullptr ? owning_flag : 0;
}

inline void worker::count_arm() noexcept {
    counters_.armed.add();
    counters_.pending.add();
}

inline void worker::count_end(bool has_fired) noexcept {
    (has_fired ? counters_.fired : counters_.cancelled).add();
    counters_.pending.subtract();
}

/// In a crew of many a unit that leaves its owner takes no ticket along: it is in a wheel that the next one cannot see.
inline void worker::part_with(timed& its) const noexcept {
    if (!is_alone_) its.disown_ticket();
}

/// The owner gives a record back. Its word says vacant already, and in which life it is used next.
inline void worker::free_callback(unit_index index, timed& its, std::uint64_t next_life) noexcept {
    leave_wheel(its);
    if (next_life <= life_of(last_word_)) [[likely]] {
        if (!free_callbacks_.push(index)) [[unlikely]] {
            settle_notes();
            part_with(its);
            callbacks_.push_shared(index, index);
        } else if (free_callbacks_.count() >= kept_in_reserve) [[unlikely]] {
            share_callbacks();
        }
    }
    wheel_.limit_stale(units_);
}

/// The same, after leave_wheel(), if it takes no more than a push. False: nothing was done.
inline bool worker::try_free_callback(unit_index index, state_word vacant) noexcept {
    if (vacant > last_word_ || wheel_.owes_scrub()) [[unlikely]]
        return false;
    if (free_callbacks_.keep_at_hand(index)) [[likely]]
        return true;
    if (free_callbacks_.count() + 1 >= kept_in_reserve) [[unlikely]]
        return false;
    free_callbacks_.push_within_reserve(index);
    return true;
}

/// Puts a ticket for it into the wheel, or inherits the one that its predecessor in the record has left there. Does not
/// write the deadline: it may be somebody else's. Needs room that was reserved.
inline void worker::place(unit_index index, timed& its, ordinal target, ticket_wheel::reach reach) noexcept {
    const std::uint32_t left_behind = its.ticket_word();
    wheel_.count_arm();
    if ((left_behind & timed::gone_ticket) == 0 && reach.is_met_before(its.place(), target)) {
        its.set_ticket_word(left_behind & ~timed::vacant_ticket);
    } else {
        put_ticket(index, its, target);
    }
}

inline void worker::place(unit_index index, timed& its, ordinal target) noexcept {
    place(index, its, target, wheel_.reach_now());
}

/// After the push (models/park.pml).
inline void worker::ring_for(ordinal deadline, std::uint32_t undrained) noexcept {
    // When everything stops, somebody waits until all is drained. Seq_cst: comes after the push; whoever stops says so
    // before he wakes us [park: hurry].
    if (undrained >= crew_.most_undrained_.load(base::memory_order_relaxed) ||
        crew_.is_stopped_.load(base::memory_order_seq_cst)) [[unlikely]]
        deadline = 0;
    if (deadline == end_of_time) return;  // Nobody sleeps for longer.
    if (parking_.wake_before(deadline)) wakeups_.fetch_add(1, base::memory_order_relaxed);
}

/// To the owner of a unit that this thread has linked, which matters before `deadline`.
inline void crew::send(unit_index index, timed& its, ordinal deadline) noexcept {
    worker& owner = owner_of(its);  // Does not change while it is linked [retire: send].
    const std::uint32_t undrained = owner.inbox_.push(units_, index);
    if (undrained == 0) [[unlikely]]
        return send_to_all(index, its);
    owner.ring_for(deadline, undrained);
}

inline void crew::drop_work() const noexcept {
    if (!is_alone_) return;
    worker& only = first();
    // Seq_cst: the count goes down before we look whether the owner sleeps; pairs with is_out_of_work() in
    // park() [park: drop work].
    const std::int64_t left = only.foreign_work_.fetch_sub(1, base::memory_order_seq_cst) - 1;
    if (!only.parking_.is_parked()) return;
    // What we read was stored before the owner published, or it looks again itself [park: last work].
    if (left + only.parked_work_.load(base::memory_order_relaxed) == 0) [[unlikely]]
        only.wake_up();
}

inline timer_handle worker::name_of(unit_index index, std::uint64_t life) const noexcept {
    return crew_.name_of(index, life, seat_);
}

/// Notes what gets its deadline when the user's code returns. Needs has_tickets().
inline void worker::stamp_later(unit_index index, std::uint64_t life, std::int64_t delay_ns, bool is_new) noexcept {
    unstamped_[unstamped_count_++] = unstamped(delay_ns, unstamped::look_closely(life), index, is_new);
    if (unstamped_count_ == most_unstamped) [[unlikely]]
        stamp();
}

/// The same, if it takes no more than a note. False: nothing was done.
inline bool worker::try_stamp_later(unit_index index, state_word word, std::int64_t delay_ns, bool is_new) noexcept {
    if (unstamped_count_ + 1 == most_unstamped) [[unlikely]]
        return false;
    unstamped_[unstamped_count_++] = unstamped(delay_ns, word, index, is_new);
    return true;
}

/// Before a life begins that leaves no note, and before a record goes to where others take it: notes know lives by their last
/// bits, and must not see as many lives go by as these can count.
inline void worker::settle_notes() noexcept {
    if (unstamped_count_ != 0) stamp();
}

inline arming worker::begin_arming() {
    if (!free_callbacks_.is_empty() && has_tickets() && !crew_.is_stopped()) [[likely]] {
        const unit_index index = free_callbacks_.pop();
        callbacks_.unseal(index);
        return {callbacks_.at(index).closure, index, settings_.records_locations};
    }
    return begin_arming_slowly();
}

inline timer_handle worker::arm(unit_index index, const closure_operations& operations, wait_limit limit) noexcept {
    callback& its = callbacks_.at(index);
    its.operations.store(&operations, base::memory_order_relaxed);
    const state_word vacant = its.state.load(base::memory_order_relaxed);
    its.set_number(take_number());
    its.set_deadline(end_of_time);
    count_arm();
    const state_word armed = with_state(vacant, timer_state::armed) | owning_flag_of(operations);
    // Release: pairs with the acquire of whoever cancels it [record_word: arm here].
    its.state.store(armed, base::memory_order_release);
    const timer_handle made = name_of(index, life_of(vacant));
    if (limit.is_absolute != 0 || !try_stamp_later(index, armed, limit.count, true)) [[unlikely]]
        return set_first_deadline(made, limit);
    return made;
}

/// Few instructions, like crew::cancel() and for the same reason: whoever cancels one timer arms the next.
inline packed_handle worker::try_arm_image(const closure_operations& operations, std::int64_t delay_ns,
                                           const closure_image& image) noexcept {
    const std::size_t noted = unstamped_count_;
    if (noted >= quick_arms_ || !has_tickets() || crew_.is_stopped()) [[unlikely]]
        return {};
    const unit_index index = free_callbacks_.try_pop();
    if (index == no_unit) [[unlikely]]
        return {};
    callback& its = units_.callback_at(index);
    callbacks_.unseal(index);
    const state_word vacant = its.state.load(base::memory_order_relaxed);
    // Word by word: what went to the stack as words and came back as a vector would have to wait for it.
    for (std::size_t word = 0; word < std::size(image.words); ++word) {
        std::memcpy(its.closure + word * sizeof image.words[0], &image.words[word], sizeof image.words[0]);
    }
    its.operations.store(&operations, base::memory_order_relaxed);
    its.set_number(take_number());
    its.set_deadline(end_of_time);
    const state_word armed = vacant | static_cast<state_word>(timer_state::armed);  // What is vacant has no flags.
    unstamped_[noted] = unstamped(delay_ns, armed, index, true);
    unstamped_count_ = noted + 1;
    count_arm();
    // Release: pairs with the acquire of whoever cancels it.
    its.state.store(armed, base::memory_order_release);
    return {life_of(vacant) | names_.life, names_.place | index};
}

}  // namespace chime::inline v0::detail
