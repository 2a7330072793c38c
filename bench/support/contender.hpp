// SPDX-License-Identifier: MIT
#pragma once

#include "support/sequence.hpp"

#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chime_bench {

/// Where contenders report the timers that fired; it keeps the last ones for the check after the run.
class firing_log {
 public:
    explicit firing_log(std::size_t keep) : slots_(std::bit_ceil(keep)), mask_(slots_.size() - 1) {}

    void note(slot_index slot) noexcept {
        slots_[fired_ & mask_] = slot;
        if (!times_.empty()) [[unlikely]]
            times_[fired_ & mask_] = std::chrono::steady_clock::now();
        ++fired_;
    }

    /// From now on it also notes when each one fired, inside the callback: what a loop does after it is not late.
    void note_times() { times_.resize(slots_.size()); }

    [[nodiscard]] std::uint64_t fired() const noexcept { return fired_; }

    /// The slot of firing number `position`, which must be among the last `keep`.
    [[nodiscard]] slot_index operator[](std::uint64_t position) const noexcept { return slots_[position & mask_]; }
    /// When that was; after note_times().
    [[nodiscard]] std::chrono::steady_clock::time_point time_of(std::uint64_t position) const noexcept {
        return times_[position & mask_];
    }

 private:
    std::vector<slot_index> slots_;
    std::vector<std::chrono::steady_clock::time_point> times_;  ///< Empty: nobody asks.
    std::uint64_t mask_;
    std::uint64_t fired_ = 0;
};

/// How precisely a contender keeps deadlines, which decides what the check of a run may ask of it.
enum class precision {
    exact,        ///< Nanoseconds, firing in the order of (deadline, arming).
    by_deadline,  ///< Nanoseconds, firing in the order of deadlines.
    rounded,      ///< Deadlines are rounded, or compared with a rounded clock.
};

/// Something that keeps timers, with N of them named by slot.
///
/// - arm(slot, delay): the slot is not pending; afterwards it is, with a real wait whose callback notes the slot.
/// - cancel(slot): true if it was pending; it then never fires.
/// - postpone(slot, delay): counts anew from now; false, and nothing happens, if it is not pending.
/// - turn(): runs everything that is ready, including what cancelled waits still have to run.
/// - complaint(): what its own counts say is wrong; empty if nothing.
///
/// clock_reads says what arming costs beside the structure: "per arm", "coarse, per arm" or "per turn".
/// Nothing between the workload and the contender's own interface may cost anything: no virtual call, no type
/// erasure, no allocation of ours.
template <class C>
concept contender = std::constructible_from<C, std::size_t, firing_log&> &&
    requires(C& it, const C& view, slot_index slot, std::chrono::nanoseconds delay) {
    { C::name } -> std::convertible_to<std::string_view>;
    { C::clock_reads } -> std::convertible_to<std::string_view>;
    { C::keeps } -> std::convertible_to<precision>;
    { C::version() } -> std::convertible_to<std::string>;
    { it.arm(slot, delay) } -> std::same_as<void>;
    { it.cancel(slot) } -> std::same_as<bool>;
    { it.postpone(slot, delay) } -> std::same_as<bool>;
    { it.turn() } -> std::same_as<void>;
    { view.is_pending(slot) } -> std::same_as<bool>;
    { view.complaint() } -> std::convertible_to<std::string>;
};

}  // namespace chime_bench
