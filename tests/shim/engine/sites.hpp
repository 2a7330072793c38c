// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

namespace chime::shim {

/// What an atomic operation is, as far as weakening its order goes.
enum class operation : std::uint8_t { load, store, exchange, compare, fence };

/// How an order can be made weaker by one step.
enum class weakening : std::uint8_t {
    none,
    one_step,         ///< seq_cst: acquire, release or both, as the operation allows. acquire, release: relaxed.
    without_acquire,  ///< acq_rel: release.
    without_release,  ///< acq_rel: acquire.
    failure,          ///< The order of a compare-and-swap that fails, if it has one of its own.
};

/// A place in the source where an atomic operation stands.
struct site {
    std::string_view file;  ///< From src/ or tests/ on.
    unsigned line = 0;
    unsigned column = 0;
    std::string_view function;
    bool is_quiet = false;  ///< Counters: nothing else depends on them, so nobody is preempted there.

    // What was seen there.
    bool was_reached = false;
    operation kind = operation::load;
    std::memory_order order = std::memory_order_relaxed;
    std::memory_order failure = std::memory_order_relaxed;
    bool has_own_failure = false;

    // The mutation in force.
    weakening weakened = weakening::none;
    bool is_omitted = false;  ///< The operation is not done: what was there stays there.

    /// Loads here may give what is stored later: see memory::foresee(). Only where it was asked for, because what follows from a
    /// wrong guess may be anything.
    bool foresees = false;

    // Where random strategies look closer.
    std::uint32_t hash = 0;        ///< Of the place, the same in every program.
    bool is_in_focus = false;      ///< It was asked for.
    bool is_beside_focus = false;  ///< It was seen to touch what a place in focus touches, or what lies beside.

    [[nodiscard]] std::string name() const { return std::string(file) + ":" + std::to_string(line); }
};

/// The same object for the same place, for the life of the program.
[[nodiscard]] site& site_of(const std::source_location& where);

/// From now on random strategies look closer at this place, and at all that touch what it touches.
void set_focus(site& where) noexcept;
[[nodiscard]] bool has_focus() noexcept;

/// From now on loads at this place may give what is stored later.
void let_foresee(site& where) noexcept;
[[nodiscard]] bool does_any_foresee() noexcept;

/// All that were met so far.
[[nodiscard]] const std::vector<site*>& all_sites() noexcept;

/// The order with which an operation at this site is really done.
[[nodiscard]] std::memory_order order_at(const site& where, std::memory_order wanted) noexcept;
[[nodiscard]] std::memory_order failure_order_at(const site& where, std::memory_order success,
                                                 std::memory_order failure) noexcept;

[[nodiscard]] const char* name_of(std::memory_order order) noexcept;

}  // namespace chime::shim
