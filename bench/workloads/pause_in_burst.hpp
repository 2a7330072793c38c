// SPDX-License-Identifier: MIT
#pragma once

#include "support/beating_contender.hpp"
#include "support/contender.hpp"
#include "support/plan.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace chime_bench {

/// A server restarts, and all its clients have the same timeout: N timers that are due in the same moment.
///
/// Beside them something else is always ready to run, and notes when it does. What is shown is the longest time that it
/// had to wait. Time is real.
struct pause_in_burst {
    static constexpr std::string_view name = "pause_in_burst";
    static constexpr std::string_view one_operation = "the longest that ready work waits when N timers are due at once";

    static std::uint64_t operations(std::size_t) { return 1; }

    template <beating_contender Contender>
    static outcome run(const plan& plan) {
        firing_log log(plan.timers);
        Contender contender(plan.timers, log);
        // All are armed by then, also on a slow machine.
        const clock::time_point deadline =
            clock::now() + std::chrono::milliseconds{200} + plan.timers * std::chrono::nanoseconds{2'500};
        const clock::time_point watched_from = deadline - std::chrono::milliseconds{20};
        std::size_t armed = 0;
        clock::time_point last;
        std::chrono::nanoseconds longest{0};
        contender.run_beating([&] {
            const clock::time_point now = clock::now();
            for (const std::size_t end = std::min(plan.timers, armed + 64); armed < end; ++armed) {
                contender.arm(static_cast<slot_index>(armed), deadline - clock::now());
            }
            if (last >= watched_from) longest = std::max<std::chrono::nanoseconds>(longest, now - last);
            last = now;
            return log.fired() < plan.timers && !interrupted.load(std::memory_order_relaxed);
        });
        if (interrupted) return {0, interrupted_error};
        if (longest == std::chrono::nanoseconds{0}) return {0, "it took too long to arm them all"};
        return {longest.count(), {}};
    }

 private:
    using clock = std::chrono::steady_clock;
};

}  // namespace chime_bench
