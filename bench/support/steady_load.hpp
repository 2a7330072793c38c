// SPDX-License-Identifier: MIT
#pragma once

#include "support/batch.hpp"
#include "support/contender.hpp"
#include "support/plan.hpp"
#include "support/tally.hpp"
#include "support/virtual_time.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace chime_bench {

/// The frame of the workloads that keep N timers pending and touch one at random per operation.
///
/// The contender is filled and then warmed up with 4 N operations: all but two in a hundred timers have been touched by
/// then, and those who put off their clean-up have as much garbage as they live with. The loop turns once per 64 operations, and time moves at
/// a fixed 100 ns per operation: all contenders fire the same timers at the same point of the sequence, whatever
/// their speed, and a fast one is not spared the firing.
///
/// Operation is what differs: `initial` and `delays` (delay_range), and apply(contender, slot, delay, tally&).
template <class Operation>
class steady_load {
 public:
    /// As many as a sweep of garbage that comes once in N operations needs to be paid for fairly; at ten million that
    /// would take too long.
    static std::uint64_t operations(std::size_t timers) { return timers > 1'000'000 ? 2'000'000 : 1'000'000; }

    template <contender Contender>
    static outcome run(const plan& plan) {
        virtual_time time;
        firing_log log(1024);
        Contender contender(plan.timers, log);
        sequence sequence(plan.seed);
        tally counts;

        for (std::size_t slot = 0; slot < plan.timers; ++slot) {
            if (slot % operations_per_turn == 0 && interrupted.load(std::memory_order_relaxed)) break;
            contender.arm(static_cast<slot_index>(slot), Operation::initial.at(sequence.next().delay_fraction));
        }
        counts.armed = plan.timers;
        operate(contender, sequence, time, plan.timers, warm_up(plan.timers), counts);

        const std::int64_t start_ns = processor_time_ns();
        operate(contender, sequence, time, plan.timers, plan.operations, counts);
        const std::int64_t stop_ns = processor_time_ns();

        if (interrupted) return {0, interrupted_error};
        contender.turn();
        counts.fired = log.fired();
        counts.pending = count_pending(contender, plan.timers);
        return {stop_ns - start_ns, complaint(contender, plan, counts)};
    }

 private:
    static constexpr std::uint64_t operations_per_turn = operations_per_batch;
    static constexpr std::chrono::nanoseconds time_per_turn{operations_per_turn * 100};

    /// At ten million that would take too long as well.
    static std::uint64_t warm_up(std::uint64_t timers) {
        const std::uint64_t operations = timers > 1'000'000 ? timers : 4 * timers;
        return operations / operations_per_turn * operations_per_turn;
    }

    template <class Contender>
    static void operate(Contender& contender, sequence& sequence, virtual_time& time, std::size_t timers,
                        std::uint64_t operations, tally& counts) {
        for (std::uint64_t done = 0; done < operations; done += operations_per_turn) {
            apply_batch<Operation, looks_ahead<Contender>>(contender, sequence, timers, counts);
            time.advance(time_per_turn);
            contender.turn();
            if (interrupted.load(std::memory_order_relaxed)) return;
        }
    }

    template <class Contender>
    static std::uint64_t count_pending(const Contender& contender, std::size_t timers) {
        std::uint64_t pending = 0;
        for (std::size_t slot = 0; slot < timers; ++slot) {
            if (contender.is_pending(static_cast<slot_index>(slot))) ++pending;
        }
        return pending;
    }

    /// A contender that only remembers each slot's deadline: what a run must come to, found without any queue.
    class model {
     public:
        explicit model(std::size_t timers) : deadlines_(timers, fired_already) {}

        void arm(slot_index slot, std::chrono::nanoseconds delay) { deadlines_[slot] = now_ + delay; }
        bool cancel(slot_index slot) { return is_pending(slot); }
        bool postpone(slot_index slot, std::chrono::nanoseconds delay) {
            if (!is_pending(slot)) return false;
            arm(slot, delay);
            return true;
        }
        void advance(std::chrono::nanoseconds step) { now_ += step; }
        [[nodiscard]] bool is_pending(slot_index slot) const { return deadlines_[slot] > now_; }

     private:
        static constexpr std::chrono::nanoseconds fired_already{-1};
        std::vector<std::chrono::nanoseconds> deadlines_;
        std::chrono::nanoseconds now_{0};
    };

    static tally expected(const plan& plan) {
        model model(plan.timers);
        sequence sequence(plan.seed);
        tally counts;
        for (std::size_t slot = 0; slot < plan.timers; ++slot) {
            model.arm(static_cast<slot_index>(slot), Operation::initial.at(sequence.next().delay_fraction));
        }
        counts.armed = plan.timers;
        const std::uint64_t operations = warm_up(plan.timers) + plan.operations;
        for (std::uint64_t done = 0; done < operations; done += operations_per_turn) {
            for (std::uint64_t i = 0; i < operations_per_turn; ++i) {
                const auto draw = sequence.next();
                Operation::apply(model, draw.slot_below(plan.timers), Operation::delays.at(draw.delay_fraction),
                                 counts);
            }
            model.advance(time_per_turn);
        }
        counts.pending = count_pending(model, plan.timers);
        counts.fired = counts.armed - counts.cancelled - counts.pending;
        return counts;
    }

    template <class Contender>
    static std::string complaint(const Contender& contender, const plan& plan, const tally& counts) {
        if (counts.armed != counts.cancelled + counts.fired + counts.pending) {
            return "armed is not cancelled + fired + pending: " + describe(counts);
        }
        if (Contender::keeps != precision::rounded) {
            const tally model = expected(plan);
            if (counts != model) return "expected " + describe(model) + "; got " + describe(counts);
        }
        return contender.complaint();
    }
};

}  // namespace chime_bench
