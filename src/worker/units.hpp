// SPDX-License-Identifier: MIT
#pragma once

#include "base/prefetch.hpp"
#include "task/task_slot.hpp"
#include "timer/callback.hpp"
#include "timer/unit_pool.hpp"

#include <cstddef>
#include <cstdint>
#include <new>

namespace chime::inline v0::detail {

using callback_pool = unit_pool<callback, 0>;
using slot_pool = unit_pool<task_slot, slot_bit>;

/// All records and slots of a context, as the wheel and the inbox see them: by index, whatever they are.
class units {
 public:
    units(callback_pool& callbacks, slot_pool& slots) noexcept : units(callbacks, slots, 0, false) {}
    /// As the worker in `seat` sees them: if there are others, a ticket counts only if the unit is its own.
    units(callback_pool& callbacks, slot_pool& slots, std::uint32_t seat, bool has_others) noexcept
        : ranges_{callbacks.data(), slots.data()}, seat_(seat), owner_mask_(has_others ? timed::owner_mask : 0) {}

    [[nodiscard]] timed& at(unit_index index) const noexcept {
        std::byte* const range = ranges_[index >> 31U];  // A look-up, because kinds come in any order.
        return *std::launder(reinterpret_cast<timed*>(range + std::size_t{index & ~slot_bit} * unit_bytes));
    }
    /// The same for a record, which is at hand here.
    [[nodiscard]] callback& callback_at(unit_index index) const noexcept {
        return *std::launder(reinterpret_cast<callback*>(ranges_[0] + std::size_t{index} * unit_bytes));
    }

    // What ticket_wheel asks of its records; see wheel.hpp. The owner alone.
    [[nodiscard]] bool holds(unit_index index, std::uint16_t stamp) const noexcept {
        const timed& its = at(index);
        return (its.ticket_word() & timed::mark_mask) == stamp && is_own(its);
    }
    bool let_go(unit_index index, std::uint16_t stamp) const noexcept {
        timed& its = at(index);
        const std::uint32_t before = its.ticket_word();
        const bool was_left_behind = (before & timed::mark_mask) == (stamp | timed::vacant_ticket) && is_own(its);
        if (was_left_behind) its.set_ticket_word(before | timed::gone_ticket);
        return was_left_behind;
    }
    [[nodiscard]] ordinal deadline(unit_index index) const noexcept { return at(index).deadline_now(); }
    [[nodiscard]] std::uint64_t number(unit_index index) const noexcept { return at(index).arming_number(); }
    void prefetch(unit_index index) const noexcept { __builtin_prefetch(&at(index)); }
    void prefetch_to_write(unit_index index) const noexcept { base::prefetch_to_write(&at(index)); }
    void placed(unit_index index, ordinal, ticket_place place) const noexcept {
        timed& its = at(index);
        its.set_ticket(its.ticket_word() & timed::mark_mask, place);
    }

 private:
    [[nodiscard]] bool is_own(const timed& its) const noexcept {
        return ((its.arming_number() ^ seat_) & owner_mask_) == 0;
    }

    std::byte* ranges_[2];
    std::uint64_t seat_;
    std::uint64_t owner_mask_;
};
static_assert(ticket_resolver<units>);

/// A queue of units, first in, first out, linked through them. The owner alone.
class unit_queue {
 public:
    [[nodiscard]] bool is_empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    void push(const units& all, unit_index added) noexcept {
        all.at(added).link.store(no_unit, base::memory_order_relaxed);
        if (size_++ == 0) {
            first_ = added;
        } else {
            all.at(last_).link.store(added, base::memory_order_relaxed);
        }
        last_ = added;
    }

    /// no_unit: it is empty.
    [[nodiscard]] unit_index pop(const units& all) noexcept {
        if (size_ == 0) return no_unit;
        const unit_index taken = first_;
        first_ = all.at(taken).link.load(base::memory_order_relaxed);
        --size_;
        return taken;
    }

    [[nodiscard]] unit_index front() const noexcept { return first_; }

 private:
    unit_index first_ = no_unit;
    unit_index last_ = no_unit;
    std::size_t size_ = 0;
};

}  // namespace chime::inline v0::detail
