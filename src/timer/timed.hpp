// SPDX-License-Identifier: MIT
#pragma once

#include "base/atomic.hpp"
#include "timer/state_word.hpp"

#include <chime/wheel.hpp>

#include <cstdint>

namespace chime::inline v0::detail {

/// What a pending timer and a sleeping task have in common: a word, a deadline, a ticket in somebody's wheel.
///
/// Lives in memory that is never unmapped while the runtime lives, so anybody may look at the word at any time. All else
/// belongs to the owner, the worker in whose wheel the ticket is; except that the deadline is also written by whoever
/// holds `locked`, and the link by whoever has set `linked`. The fields are atomic because a look at one that has just
/// been given to somebody else must be harmless, not because it would mean anything: the word decides.
struct timed {
    static constexpr std::uint32_t vacant_ticket = 1;  ///< No timer stands behind the ticket.
    static constexpr std::uint32_t gone_ticket = 2;    ///< The ticket has left the wheel.
    static constexpr unsigned mark_bits = 12;          ///< The two flags and the stamp, which has ten.
    static constexpr std::uint32_t mark_mask = (1U << mark_bits) - 1;
    /// The number says when the owner has accepted it and, in its lowest bits, who that is: so numbers of one owner are
    /// in order as they are.
    static constexpr unsigned owner_bits = 10;
    static constexpr std::uint64_t owner_mask = (std::uint64_t{1} << owner_bits) - 1;
    static constexpr std::uint64_t next_number = owner_mask + 1;
    /// The number of what the owner has not accepted yet, or what waits without a timer; without the owner.
    static constexpr std::uint64_t unnumbered = ~owner_mask;
    /// The owner of what is between two workers.
    static constexpr std::uint32_t nobody = owner_mask;

    base::atomic<state_word> state{0};
    base::atomic<ordinal> deadline{0};
    base::atomic<std::uint64_t> number{unnumbered | nobody};
    base::atomic<std::uint32_t> ticket{vacant_ticket | gone_ticket};
    base::atomic<std::uint32_t> link{0};

    // Relaxed throughout: one thread at a time writes them, and who reads them elsewhere checks the word [I2].
    [[nodiscard]] std::uint32_t ticket_word() const noexcept { return ticket.load(base::memory_order_relaxed); }
    void set_ticket_word(std::uint32_t value) noexcept { ticket.store(value, base::memory_order_relaxed); }
    [[nodiscard]] ordinal deadline_now() const noexcept { return deadline.load(base::memory_order_relaxed); }
    void set_deadline(ordinal value) noexcept { deadline.store(value, base::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t arming_number() const noexcept { return number.load(base::memory_order_relaxed); }
    void set_number(std::uint64_t value) noexcept { number.store(value, base::memory_order_relaxed); }
    [[nodiscard]] bool is_numbered() const noexcept { return arming_number() < unnumbered; }
    [[nodiscard]] std::uint32_t owner() const noexcept {
        return static_cast<std::uint32_t>(arming_number() & owner_mask);
    }
    void set_owner(std::uint32_t seat) noexcept { set_number((arming_number() & ~owner_mask) | seat); }

    [[nodiscard]] bool has_timer() const noexcept { return (ticket_word() & vacant_ticket) == 0; }
    [[nodiscard]] ticket_place place() const noexcept { return ticket_word() >> mark_bits; }
    [[nodiscard]] std::uint16_t next_stamp() const noexcept {
        return static_cast<std::uint16_t>(((ticket_word() | vacant_ticket | gone_ticket) + 1) & mark_mask);
    }
    void set_ticket(std::uint32_t marks, ticket_place place) noexcept { set_ticket_word(place << mark_bits | marks); }
    /// Whatever ticket of it is in a wheel, it is stale from now on, and nobody inherits it.
    void disown_ticket() noexcept { set_ticket_word(next_stamp() | vacant_ticket | gone_ticket); }
};
static_assert(sizeof(timed) == 32);

}  // namespace chime::inline v0::detail
