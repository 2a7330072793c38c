// SPDX-License-Identifier: MIT
#include "worker/crew.hpp"
#include "worker/worker.hpp"

#include <array>

// Ready tasks: a plain queue for a worker that is alone, otherwise a ring that others take from, too (models/steal.pml).

namespace chime::inline v0::detail {

void worker::push_ready(unit_index index) noexcept {
    if (is_alone_) {
        ready_.push(units_, index);
    } else if (!ring_.push(index)) {
        crew_.inject(index);  // More than one worker can have at hand: for all [steal: overflow].
    }
}

/// User code is about to run, and who knows how long that takes: what is ready beside it is for others to
/// take [steal: offer].
void worker::offer_work() noexcept {
    if (!is_alone_ && !ring_.is_empty()) crew_.call_somebody();
}

/// A task of ours was woken. Its timer ends with that, while the ticket is still known to be here: whoever resumes the
/// task may be another worker.
void worker::make_ready(unit_index index) noexcept {
    task_slot& its = slots_.at(index);
    end_timer(its, cause_of(its.state.load(base::memory_order_relaxed)));
    push_ready(index);
}

std::size_t worker::ready_count() const noexcept {
    return is_alone_ ? ready_.size() : ring_.size();
}

unit_index worker::pop_ready() noexcept {
    return is_alone_ ? ready_.pop(units_) : ring_.pop();
}

/// Were we called? While a call is unheard nobody else is called, and what follows may take long.
bool worker::take_call() noexcept {
    // Seq_cst: comes after withdrawing. Relaxed, for the step that takes it: whoever has called us has counted us, from zero to
    // one, and we count down. It does not matter which of the two comes first: after he has counted, somebody counts down from
    // one to zero, and looks at everything then, in the one order of all seq_cst steps; so the work that he has made visible
    // before is seen.
    return is_called_.load(base::memory_order_seq_cst) && is_called_.exchange(false, base::memory_order_relaxed);
}

/// Gets something to do: what is nobody's, and if that is nothing, half of what another worker has.
void worker::find_work() noexcept {
    const bool is_called = take_call();   // [steal: take call]
    if (is_called) is_searching_ = true;  // The call has counted us.
    std::array<unit_index, ready_ring::capacity / 2> taken;
    std::size_t count = take_injected(taken);
    if (count == 0 && ring_.size() == 0) {
        if (!is_searching_) {
            // Relaxed: who sees it relies on what we look at after we have counted down, in
            // end_search() [steal: search].
            crew_.searching_.fetch_add(1, base::memory_order_relaxed);
            is_searching_ = true;
        }
        if (is_called && settings_.looks_again) await_lasting_work();
        const std::uint32_t seats = crew_.seat_count();
        for (std::uint32_t step = 0; count == 0 && step < seats; ++step) {
            victim_ = victim_ + 1 < seats ? victim_ + 1 : 0;
            if (victim_ == seat_) continue;
            // The first half, which has waited longest [steal: steal].
            count = crew_.at(victim_).ring_.take_half(taken);
            counters_.stolen.add(count);
        }
    }
    for (std::size_t position = 0; position < count; ++position) push_ready(taken[position]);
    end_search();
}

/// Somebody was called for one task, and whoever has it often takes it himself the next moment: one that spawns another and
/// awaits it. To take that away costs more than it brings, and so does to sleep and be called for the next one. So we look
/// again for a while, until there is more, or one that stays, or nobody takes anything any more. While we do, nobody is called.
void worker::await_lasting_work() noexcept {
    constexpr unsigned most_without_change = 3;
    constexpr std::uint32_t most_watched = 32;  // A look is to be short.
    const std::uint32_t seats = crew_.seat_count();
    const bool has_commands = ordered_ != no_unit || taken_ != no_unit || inherited_ != no_unit;
    // Who has a timer soon, or does not know yet, has no time for this.
    if (seats > most_watched || has_commands || next_deadline() < to_ordinal(now() + std::chrono::milliseconds{1}))
        return;
    std::uint32_t last_seat = seats;
    std::uint32_t last_taken = 0;
    unsigned unchanged = 0;
    for (unsigned look = 0; look < base::most_looks && unchanged < most_without_change; ++look) {
        std::size_t ready = 0;
        std::uint32_t ready_seat = seats;  // None.
        std::uint32_t taken_there = 0;
        std::uint32_t taken = 0;
        for (std::uint32_t seat = 0; seat < seats; ++seat) {
            const ready_ring& its = crew_.at(seat).ring_;
            taken += its.taken();
            if (its.is_empty()) continue;
            ready += its.size();
            ready_seat = seat;
            taken_there = its.taken();
        }
        if (ready > 1 || crew_.has_unowned_work() || !inbox_.is_empty() || has_orders()) return;
        // What others take elsewhere does not make the one who has it any faster.
        if (ready_seat != seats) taken = taken_there;
        unchanged = ready_seat == last_seat && taken == last_taken ? unchanged + 1 : 0;
        last_seat = ready_seat;
        last_taken = taken;
        base::pause_between_looks();
    }
}

/// What is nobody's, as far as there is room for it. If the ring is full, some of it changes places with some of what is
/// nobody's: otherwise tasks that keep a ring full would keep the others waiting for ever [G12].
std::size_t worker::take_injected(std::array<unit_index, ready_ring::capacity / 2>& taken) noexcept {
    constexpr std::size_t exchanged = 16;
    const std::size_t room = ready_ring::capacity - ring_.size();
    // No more than there is room for: only we fill the ring [steal: take injected].
    if (room != 0) return crew_.injection_.take(units_, taken, room);
    const std::size_t count = crew_.injection_.take(units_, taken, exchanged);
    for (std::size_t left = count; left != 0; --left) {
        const unit_index displaced = ring_.pop();
        if (displaced == no_unit) break;  // Others have taken it all meanwhile.
        // For whoever is called for it [steal: exchange].
        crew_.inject(displaced);
    }
    return count;
}

/// While somebody searches, nobody is called. So whoever was the last to look, found or not, looks once more after he has
/// said that he is through, and calls the next one: he may be about to run something that takes long.
void worker::end_search() noexcept {
    if (!is_searching_) return;
    is_searching_ = false;
    // Seq_cst: comes before the look. Whoever has more work makes it visible before he looks whether anybody
    // searches [steal: end search].
    const bool was_last = crew_.searching_.fetch_sub(1, base::memory_order_seq_cst) == 1;
    if (was_last && crew_.has_ready_work()) crew_.call_somebody();
}

}  // namespace chime::inline v0::detail
