// SPDX-License-Identifier: MIT
#pragma once

#include "worker/worker.hpp"

#include <chime/time.hpp>

#include <chrono>
#include <cstdint>

// What several files of the worker do for every timer, and want to have inline.

namespace chime::inline v0::detail {

[[nodiscard]] inline ordinal ordinal_after(ordinal now, std::int64_t delay_ns) noexcept {
    return to_ordinal(deadline_after(to_time_point(now), std::chrono::nanoseconds{delay_ns}));
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

}  // namespace chime::inline v0::detail
