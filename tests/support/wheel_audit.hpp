// SPDX-License-Identifier: MIT
#pragma once

#include <chime/wheel.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace chime {
inline namespace v0 {
namespace detail {

/// Checks every invariant of a wheel the slow way, by looking at all of it. For tests; not from inside `on_due`.
struct wheel_audit {
    /// Empty if all is well; otherwise the first thing that is not.
    template <class T, unsigned GenerationBits>
    [[nodiscard]] static std::string check(const timer_wheel<T, GenerationBits>& wheel) {
        return wheel_audit().look_at(wheel);
    }

    /// Will the next advance go on with what the last one has begun?
    template <class T, unsigned GenerationBits>
    [[nodiscard]] static bool is_interrupted(const timer_wheel<T, GenerationBits>& wheel) {
        return wheel.wheel_.goes_on();
    }

 private:
    /// The earliest ticket that a record could be found by.
    struct sighting {
        std::size_t valid_tickets = 0;
        ordinal earliest = end_of_time;
    };

    template <class Wheel>
    std::string look_at(const Wheel& wheel) {
        const ticket_wheel& order = wheel.wheel_;
        seen_.assign(wheel.records_.used, {});
        look_at_slots(wheel, order);
        look_at_drain(wheel, order);
        look_at_near(wheel, order.near_);
        look_at_records(wheel, order);
        for (const ordinal ahead : {ordinal{0}, ordinal{1} << 24U, ordinal{1} << 32U, end_of_time - wheel.now_}) {
            look_at_visits(wheel, order, wheel.now_ + ahead);
        }
        expect(order.live() == wheel.size(), "the live timers are not those that are pending");
        expect(tickets_ == order.tickets(), "the ticket count is not what the chains hold");
        expect(blocks_ + order.pool_.free_count() == order.pool_.block_count(), "a block is lost or doubled");
        expect(tickets_ <= 2 * wheel.size() + order.stale_slack_ + 2 * ticket_block::capacity,
               "more stale tickets than live ones plus the slack");
        return problem_;
    }

    void expect(bool holds, const char* what) {
        if (!holds && problem_.empty()) problem_ = what;
    }

    template <class Wheel>
    void look_at_ticket(const Wheel& wheel, const ticket& met) {
        ++tickets_;
        expect(met.index < wheel.records_.used, "a ticket names a record that never was");
        if (!problem_.empty() || !wheel.records_.holds(met.index, met.stamp)) return;
        sighting& record = seen_[met.index];
        ++record.valid_tickets;
        record.earliest = std::min(record.earliest, met.deadline);
    }

    template <class Visit>
    void look_at_chain(const ticket_block* block, const ticket* end, const Visit& visit) {
        for (; block != nullptr; block = block->next) {
            ++blocks_;
            const ticket* const first = block->tickets.data();
            const ticket* const last = block->next != nullptr ? first + ticket_block::capacity : end;
            expect(first <= last && last <= first + ticket_block::capacity, "a chain ends outside of its last block");
            if (!problem_.empty()) return;
            for (const ticket* each = first; each != last; ++each) visit(*each);
        }
    }

    template <class Wheel>
    void look_at_slots(const Wheel& wheel, const ticket_wheel& order) {
        for (std::uint32_t where = 0; where <= ticket_wheel::overdue_slot; ++where) {
            const auto& slot = order.slots_->slots[where];
            const bool overdue = where == ticket_wheel::overdue_slot;
            if (!overdue) {
                const bool marked = (order.occupied_[where / 64] >> where % 64 & 1) != 0;
                expect(marked == (slot.write != nullptr), "a slot and its bit in the bitmap disagree");
                expect((order.occupied_words_ >> where / 64 & 1) == (order.occupied_[where / 64] != 0 ? 1U : 0U),
                       "a word of the bitmap and its bit in the summary disagree");
            }
            if (slot.write == nullptr) {
                expect(slot.min == end_of_time, "an empty slot has a minimum");
                continue;
            }
            std::size_t count = 0;
            look_at_chain(order.slots_->heads[where], slot.write, [&](const ticket& met) {
                ++count;
                const std::uint64_t tick = order.tick_of(met.deadline);
                expect(overdue ? tick <= order.current_tick_ : order.slot_for(tick) == where || is_cascading(order),
                       "a ticket sits in the wrong slot");
                expect(slot.min <= met.deadline, "a slot's minimum is later than one of its tickets");
                look_at_ticket(wheel, met);
            });
            expect(count != 0, "an occupied slot holds nothing");
        }
    }

    /// A cascade may put tickets into the slot of the very tick that it happens in; they are loaded next.
    static bool is_cascading(const ticket_wheel& order) { return !order.loaded_; }

    template <class Wheel>
    void look_at_drain(const Wheel& wheel, const ticket_wheel& order) {
        look_at_chain(order.drain_.block, order.drain_.end, [&](const ticket& met) {
            expect(order.drain_.min <= met.deadline, "a drain's minimum is later than one of its tickets");
            look_at_ticket(wheel, met);
        });
        expect(order.drain_.block != nullptr || order.drain_.min == end_of_time, "an empty drain has a minimum");
    }

    template <class Wheel>
    void look_at_near(const Wheel& wheel, const near_run& near) {
        const due_entry* previous = nullptr;
        for (std::size_t position = near.head_; position < near.tail_; ++position) {
            if (position >= near.gap_begin_ && position < near.gap_end_) continue;
            const due_entry& entry = *near.run_.at(position);
            look_at_ticket(wheel, {entry.deadline, entry.index, entry.stamp});
            expect(previous == nullptr || position >= near.sorted_ || !(entry < *previous),
                   "the near run is not in order");
            previous = &entry;
        }
        expect(near.head_ == near.tail_ || near.gap_begin_ == near.gap_end_ || near.gap_end_ <= near.head_ ||
                   (near.head_ < near.gap_begin_ && near.gap_end_ < near.tail_),
               "the gap in the near run is not inside of it");
        for (std::size_t position = 0; position < near.heap_size_; ++position) {
            const due_entry& entry = *near.heap_.at(position);
            look_at_ticket(wheel, {entry.deadline, entry.index, entry.stamp});
            if (position > 0) {
                expect(!(entry < *near.heap_.at((position - 1) / near_run::fan_out)), "the near heap is not in order");
            }
        }
    }

    template <class Wheel>
    void look_at_records(const Wheel& wheel, const ticket_wheel& order) {
        std::size_t pending = 0;
        ordinal earliest = end_of_time;
        for (std::uint32_t index = 0; index < wheel.records_.used && problem_.empty(); ++index) {
            const auto& record = wheel.records_.at(index);
            if (!record.is_pending()) continue;
            ++pending;
            const ordinal deadline = record.deadline;
            earliest = std::min(earliest, deadline);
            expect(seen_[index].valid_tickets != 0, "a pending timer has no ticket");
            expect(seen_[index].earliest <= deadline, "a ticket will be met after the deadline of its timer");
            expect(!record.is_met_before(seen_[index].earliest), "a ticket sits later than its record believes");
        }
        expect(pending == wheel.size(), "the count of pending timers is wrong");
        expect(pending == 0 || order.next_deadline() <= earliest, "the next deadline is later than the truth");

        for (std::uint32_t position = 0; position < wheel.free_count_ && problem_.empty(); ++position) {
            expect(!wheel.records_.at(*wheel.free_.at(position)).is_pending(), "a pending record is on the free list");
        }
        const std::size_t free = wheel.free_count_ + (wheel.spare_ != nullptr ? 1 : 0);
        expect(pending + free == wheel.records_.used, "a record is lost or doubled");
    }

    template <class Wheel>
    void look_at_visits(const Wheel& wheel, const ticket_wheel& order, ordinal horizon) {
        std::size_t visits = 0;
        std::vector<bool> is_visited(wheel.records_.used);
        order.visit_until(horizon, [&](std::uint32_t index) {
            ++visits;
            is_visited[index] = true;
        });
        for (std::uint32_t index = 0; index < wheel.records_.used; ++index) {
            const auto& record = wheel.records_.at(index);
            expect(!record.is_pending() || record.deadline > horizon || is_visited[index],
                   "a visit of what comes by a time leaves out a timer");
        }
        expect(horizon == end_of_time ? visits == tickets_ : visits <= tickets_,
               "a visit does not meet every ticket once");
    }

    std::string problem_;
    std::vector<sighting> seen_;
    std::size_t tickets_ = 0;
    std::size_t blocks_ = 0;
};

}  // namespace detail
}  // namespace v0
}  // namespace chime
