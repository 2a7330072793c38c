// SPDX-License-Identifier: MIT
#pragma once

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "timer/unit_pool.hpp"

#include <cstdint>

namespace chime::inline v0::detail {

/// What other threads want of a worker: a stack that many push onto and the owner empties at once, until it is closed.
///
/// It is linked through the records and slots themselves, so it takes no memory and cannot overflow. Whoever pushes has
/// set `linked` in the unit's word before, in the step that gave him the right to [I11]. How this goes together with
/// sleeping is in models/park.pml, and with closing it in models/retire.pml.
class inbox {
 public:
    /// How many wait undrained, this one included; zero: it is closed, and nothing was pushed. Any thread.
    ///
    /// `Units` gives the unit that an index names.
    template <class Units>
    [[nodiscard]] std::uint32_t push(Units& units, unit_index index) noexcept {
        return push_chain(units, index, index, 1);
    }

    /// The same for `count` units that are linked already, the last one first.
    template <class Units>
    [[nodiscard]] std::uint32_t push_chain(Units& units, unit_index first, unit_index last,
                                           std::uint32_t count) noexcept {
        // Acquire: who finds it closed knows what was announced before; pairs with close().
        std::uint64_t top = top_.load(base::memory_order_acquire);
        for (;;) {
            if (index_in(top) == closed) return 0;
            units.at(last).link.store(index_in(top), base::memory_order_relaxed);
            const std::uint64_t pushed = (top >> 32U) + count;
            // Seq_cst: the push comes before the look at what the owner has published; pairs with is_empty() in
            // parking, which comes after publishing. It is a release too, for the owner's drain [park: push].
            if (top_.compare_exchange_weak(top, pushed << 32U | first, base::memory_order_seq_cst,
                                           base::memory_order_acquire)) {
                return static_cast<std::uint32_t>(pushed);
            }
        }
    }

    /// Everything that was pushed, last first; no_unit: nothing, or it is closed. The owner, or anybody if it is
    /// everybody's.
    [[nodiscard]] unit_index take_all() noexcept {
        const unit_index seen = index_in(top_.load(base::memory_order_relaxed));
        if (seen == no_unit || seen == closed) return no_unit;
        // Acquire: pairs with the release of each push [park: drain].
        return index_in(top_.exchange(no_unit, base::memory_order_acquire));
    }

    /// The same, and nothing can be pushed any more. The owner. `announce(count)` is called before anybody can see that it
    /// is closed, with how many are there; once more if others have come meanwhile [retire: close].
    template <class Announce>
    [[nodiscard]] unit_index close(Announce announce) noexcept {
        std::uint64_t top = top_.load(base::memory_order_relaxed);
        do {
            announce(static_cast<std::uint32_t>(top >> 32U));
        } while (!top_.compare_exchange_weak(top, closed, base::memory_order_acq_rel, base::memory_order_relaxed));
        return index_in(top);
    }
    /// For its next owner [retire: open].
    void open() noexcept { top_.store(no_unit, base::memory_order_release); }

    [[nodiscard]] bool is_closed() const noexcept {
        return index_in(top_.load(base::memory_order_acquire)) == closed;  // See push_chain().
    }

    [[nodiscard]] bool is_empty() const noexcept {
        return index_in(top_.load(base::memory_order_seq_cst)) == no_unit;  // See push().
    }

 private:
    static constexpr unit_index closed = no_unit - 1;

    [[nodiscard]] static constexpr unit_index index_in(std::uint64_t top) noexcept {
        return static_cast<unit_index>(top);
    }

    alignas(base::cache_line_bytes) base::atomic<std::uint64_t> top_{no_unit};
};

}  // namespace chime::inline v0::detail
