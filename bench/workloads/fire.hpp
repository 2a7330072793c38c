// SPDX-License-Identifier: MIT
#pragma once

#include "support/contender.hpp"
#include "support/plan.hpp"
#include "support/virtual_time.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chime_bench {

/// Timers that all expire: sleeping coroutines, retries, animations, the sessions of a simulation.
///
/// N timers are armed over the next ten seconds and run out, in turns one millisecond apart; one operation is one
/// timer, armed and fired. With a thousand timers nine turns of ten find nothing, so there the cost of an empty turn
/// is what shows. A first round, not timed, lets every contender get its memory.
struct fire {
    static constexpr std::string_view name = "fire";
    static constexpr std::string_view one_operation = "arm a timer and let it fire, N spread over 10 s, turns of 1 ms";

    /// Enough rounds to last a while; each takes ten thousand turns, however few the timers are.
    static std::uint64_t operations(std::size_t timers) { return timers * (timers < 100'000 ? 20 : 1); }

    template <contender Contender>
    static outcome run(const plan& plan) {
        virtual_time time;
        firing_log log(plan.timers);
        Contender contender(plan.timers, log);
        std::vector<std::uint64_t> fired_by_turn(turns);
        std::int64_t elapsed_ns = 0;
        std::uint64_t early = 0;
        for (std::uint64_t round = 0; round <= plan.operations / plan.timers; ++round) {
            const std::uint64_t seed = plan.seed + round;
            const std::uint64_t fired_before = log.fired();

            const std::int64_t start_ns = processor_time_ns();
            arm_all(contender, sequence(seed), plan.timers);
            contender.turn();  // Who puts off what a callback armed until it returns gets to it before time moves.
            for (std::uint64_t& fired : fired_by_turn) {
                time.advance(time_per_turn);
                contender.turn();
                fired = log.fired();
                if (interrupted.load(std::memory_order_relaxed)) return {0, interrupted_error};
            }
            const std::int64_t stop_ns = processor_time_ns();

            if (round > 0) elapsed_ns += stop_ns - start_ns;
            if (round == 1) early = 0;  // What the first round added is not of this run.
            std::string error =
                complaint<Contender>(log, fired_before, fired_by_turn, sequence(seed), plan.timers, early);
            if (error.empty()) error = contender.complaint();
            if (!error.empty()) return {0, error};
        }
        return {elapsed_ns, {}, early};
    }

 private:
    static constexpr std::chrono::milliseconds time_per_turn{1};
    static constexpr delay_range delays{std::chrono::nanoseconds{1}, std::chrono::seconds{10}};
    // A few turns more than ten seconds have: a contender with a coarse clock may be late.
    static constexpr std::size_t turns = 10'010;

    template <class Contender>
    static void arm_all(Contender& contender, sequence sequence, std::size_t timers) {
        for (std::size_t slot = 0; slot < timers; ++slot) {
            contender.arm(static_cast<slot_index>(slot), delays.at(sequence.next().delay_fraction));
        }
    }

    /// Each timer fired once; and, where the contender promises it, in order, not early, and not a turn late.
    template <class Contender>
    static std::string complaint(const firing_log& log, std::uint64_t fired_before,
                                 const std::vector<std::uint64_t>& fired_by_turn, sequence sequence, std::size_t timers,
                                 std::uint64_t& early) {
        if (log.fired() - fired_before != timers) {
            return "armed " + std::to_string(timers) + ", fired " + std::to_string(log.fired() - fired_before);
        }
        std::vector<std::chrono::nanoseconds> delays_left(timers);
        for (auto& delay : delays_left) delay = delays.at(sequence.next().delay_fraction);

        std::uint64_t position = fired_before;
        std::chrono::nanoseconds previous_delay{-1};
        slot_index previous_slot = 0;
        for (std::size_t turn = 0; turn < fired_by_turn.size(); ++turn) {
            const std::chrono::nanoseconds now = time_per_turn * (turn + 1);
            for (; position < fired_by_turn[turn]; ++position) {
                const slot_index slot = log[position];
                const std::chrono::nanoseconds delay = delays_left[slot];
                if (delay < std::chrono::nanoseconds{0}) return "timer " + std::to_string(slot) + " fired twice";
                delays_left[slot] = std::chrono::nanoseconds{-1};
                if (delay > now) ++early;
                if (Contender::keeps == precision::rounded) continue;
                if (delay > now) return "timer " + std::to_string(slot) + " fired early";
                if (delay <= now - time_per_turn) return "timer " + std::to_string(slot) + " fired late";
                const bool in_order =
                    delay > previous_delay ||
                    (delay == previous_delay && (Contender::keeps == precision::by_deadline || slot > previous_slot));
                if (!in_order) return "timer " + std::to_string(slot) + " fired out of order";
                previous_delay = delay;
                previous_slot = slot;
            }
        }
        return {};
    }
};

}  // namespace chime_bench
