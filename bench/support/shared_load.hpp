// SPDX-License-Identifier: MIT
#pragma once

#include "support/batch.hpp"
#include "support/forked_run.hpp"
#include "support/plan.hpp"
#include "support/shared_contender.hpp"
#include "support/tally.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace chime_bench {

/// The frame of the workloads in which T threads keep timers pending in one service, and each touches its own at random.
///
/// Every lane fills its slots and warms up with as many operations as it has timers. When all have, the clock starts, and
/// it stops when all together have done the operations of the plan; until then no lane rests. Then each cancels what it
/// has left. A step is a batch of operations. Time is real, and what is measured is wall time: the rate of all threads together.
/// Beside it stand the processor time of an operation and how many processors that means: fewer than T if the machine had
/// none to spare.
///
/// Operation is what differs: `initial` and `delays`, and apply(lane, slot, delay, tally&).
template <class Operation, shared_contender Contender>
class shared_load {
 public:
    static outcome run(const plan& plan, std::size_t timers_per_lane) {
        shared_load load(plan, timers_per_lane);
        load.contender_.run([&load](unsigned which) { return load.step(which); });
        if (interrupted) return {0, interrupted_error};
        outcome result{(load.stopped_ - load.started_).count(), load.complaint()};
        const auto spent_ns = static_cast<double>(load.spent_until_stop_ns_ - load.spent_until_start_ns_);
        result.figures = {{"processor_ns", spent_ns / static_cast<double>(plan.operations)},
                          {"processors", spent_ns / static_cast<double>(result.elapsed_ns)}};
        return result;
    }

 private:
    using clock = std::chrono::steady_clock;
    static constexpr std::uint64_t operations_per_step = operations_per_batch;

    enum class phase { filling, warming_up, steady, emptying };

    struct alignas(64) lane_state {
        explicit lane_state(std::uint64_t seed) : draws(seed) {}

        sequence draws;
        phase now = phase::filling;
        std::size_t position = 0;  // The next slot to fill or to empty, or operations done.
        tally counts;
    };

    shared_load(const plan& plan, std::size_t timers_per_lane)
        : contender_(plan.threads, timers_per_lane),
          timers_(timers_per_lane),
          steps_wanted_((plan.operations + operations_per_step - 1) / operations_per_step),
          lanes_left_(plan.threads) {
        for (unsigned which = 0; which < plan.threads; ++which) lanes_.emplace_back(plan.seed + which);
    }

    bool step(unsigned which) {
        if (interrupted.load(std::memory_order_relaxed)) return false;
        lane_state& mine = lanes_[which];
        auto& timers = contender_.lane(which);
        switch (mine.now) {
        case phase::filling: fill(timers, mine); return true;
        case phase::warming_up:
            operate(timers, mine);
            mine.position += operations_per_step;
            if (mine.position >= timers_) {
                mine.now = phase::steady;
                // Release, and acquire for the last: it starts the clock when all have come so far.
                if (lanes_left_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
                    spent_until_start_ns_ = all_threads_time_ns();
                    started_ = clock::now();
                    is_measured_.store(true, std::memory_order_release);
                }
            }
            return true;
        case phase::steady:
            if (operate_measured(timers, mine)) {
                mine.now = phase::emptying;
                mine.position = 0;
            }
            return true;
        case phase::emptying: return empty(timers, mine);
        }
        return false;
    }

    template <class Timers>
    void fill(Timers& timers, lane_state& mine) {
        const std::size_t end = std::min(timers_, mine.position + operations_per_step);
        for (; mine.position < end; ++mine.position) {
            timers.arm(static_cast<slot_index>(mine.position), Operation::initial.at(mine.draws.next().delay_fraction));
            ++mine.counts.armed;
        }
        if (end == timers_) {
            mine.now = phase::warming_up;
            mine.position = 0;
        }
    }

    template <class Timers>
    void operate(Timers& timers, lane_state& mine) {
        apply_batch<Operation, looks_ahead<Contender>>(timers, mine.draws, timers_, mine.counts);
    }

    /// True: all lanes together have done enough.
    template <class Timers>
    bool operate_measured(Timers& timers, lane_state& mine) {
        const bool counts = is_measured_.load(std::memory_order_acquire);
        operate(timers, mine);
        if (!counts) return false;
        const std::uint64_t done = steps_done_.fetch_add(1, std::memory_order_relaxed) + 1;
        if (done == steps_wanted_) {
            stopped_ = clock::now();
            spent_until_stop_ns_ = all_threads_time_ns();
        }
        return done >= steps_wanted_;
    }

    template <class Timers>
    bool empty(Timers& timers, lane_state& mine) {
        const std::size_t end = std::min(timers_, mine.position + operations_per_step);
        for (; mine.position < end; ++mine.position) {
            if (timers.cancel(static_cast<slot_index>(mine.position))) ++mine.counts.pending;
        }
        return mine.position < timers_;
    }

    std::string complaint() const {
        tally sums;
        for (const lane_state& each : lanes_) {
            sums.armed += each.counts.armed;
            sums.cancelled += each.counts.cancelled;
            sums.postponed += each.counts.postponed;
            sums.pending += each.counts.pending;
        }
        sums.fired = contender_.fired();
        if (sums.armed != sums.cancelled + sums.fired + sums.pending) {
            return "armed is not cancelled + fired + pending: " + describe(sums);
        }
        // Re-armed or postponed, an operation leaves its timer pending: few can have run out since.
        if (sums.pending == 0) return "nothing was pending at the end: " + describe(sums);
        return contender_.complaint();
    }

    Contender contender_;
    std::size_t timers_;
    std::uint64_t steps_wanted_;
    std::vector<lane_state> lanes_;
    alignas(64) std::atomic<unsigned> lanes_left_;
    std::atomic<bool> is_measured_{false};
    clock::time_point started_;
    clock::time_point stopped_;
    std::int64_t spent_until_start_ns_ = 0;
    std::int64_t spent_until_stop_ns_ = 0;
    alignas(64) std::atomic<std::uint64_t> steps_done_{0};
};

}  // namespace chime_bench
