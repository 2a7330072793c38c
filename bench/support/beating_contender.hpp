// SPDX-License-Identifier: MIT
#pragma once

#include "support/contender.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>

namespace chime_bench {

/// A contender that runs other work beside its timers: run_beating(beat) calls beat() again and again, as something that
/// is always ready, until it answers false. Where what is ready is queued, it goes to the end of the queue every time.
template <class C>
concept beating_contender = std::constructible_from<C, std::size_t, firing_log&> &&
    requires(C& it, slot_index slot, std::chrono::nanoseconds delay, bool (*beat)()) {
    it.arm(slot, delay);
    it.run_beating(beat);
};

}  // namespace chime_bench
