// SPDX-License-Identifier: MIT
#pragma once

#include "support/beating_contender.hpp"
#include "support/contender.hpp"
#include "support/plan.hpp"
#include "support/sequence.hpp"
#include "support/virtual_time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace chime_bench {

/// How long a structure holds up its loop with its own work: a wheel that moves many timers from a coarse level to a finer
/// one, a heap that sifts.
///
/// N timers over a minute run out, while something else is always ready to run and notes when it does; every time, the
/// clock moves by a millisecond. A few timers fire in between, so what makes a pause long is the structure. What is shown
/// is the longest, in processor time. A first round, not looked at, lets every contender get its memory.
struct pause_in_cascade {
    static constexpr std::string_view name = "pause_in_cascade";
    static constexpr std::string_view one_operation =
        "the longest that ready work waits while N timers of a minute run out";

    static std::uint64_t operations(std::size_t) { return 1; }

    template <beating_contender Contender>
    static outcome run(const plan& plan) {
        virtual_time time;
        firing_log log(plan.timers);
        Contender contender(plan.timers, log);
        std::int64_t longest_ns = 0;
        for (const bool counts : {false, true}) {
            sequence draws(plan.seed);
            const std::uint64_t fired_before = log.fired();
            std::size_t armed = 0;
            std::size_t turns = 0;
            std::int64_t last_ns = 0;
            contender.run_beating([&] {
                if (armed < plan.timers) {
                    for (const std::size_t end = std::min(plan.timers, armed + 64); armed < end; ++armed) {
                        contender.arm(static_cast<slot_index>(armed), delays.at(draws.next().delay_fraction));
                    }
                    return true;
                }
                const std::int64_t now_ns = processor_time_ns();
                if (counts && turns > 1) longest_ns = std::max(longest_ns, now_ns - last_ns);
                time.advance(time_per_turn);
                last_ns = processor_time_ns();
                ++turns;
                return log.fired() - fired_before < plan.timers && turns < most_turns &&
                       !interrupted.load(std::memory_order_relaxed);
            });
            if (interrupted) return {0, interrupted_error};
            if (log.fired() - fired_before != plan.timers) {
                return {0, "armed " + std::to_string(plan.timers) + ", fired " +
                               std::to_string(log.fired() - fired_before)};
            }
        }
        return {longest_ns, {}};
    }

 private:
    static constexpr std::chrono::milliseconds time_per_turn{1};
    static constexpr delay_range delays{std::chrono::milliseconds{1}, std::chrono::seconds{60}};
    static constexpr std::size_t most_turns = 100'000;
};

}  // namespace chime_bench
