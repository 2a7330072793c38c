// SPDX-License-Identifier: MIT
#pragma once

#include "support/forked_run.hpp"
#include "support/plan.hpp"
#include "support/sequence.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chime_bench {

/// Timers that belong to one thread and are cancelled by another.
///
/// - arm_all(delays): arms one timer per slot, on the thread that runs the loop; returns when it is done.
/// - cancel(slot): called by the other thread.
/// - settle(): waits until the loop has done all that these cancels left for it; how many timers they have cancelled.
/// - complaint(): what its own counts say is wrong; empty if nothing.
template <class C>
concept remote_contender = std::constructible_from<C, std::size_t> &&
    requires(C& it, slot_index slot, const std::vector<std::chrono::nanoseconds>& delays) {
    it.arm_all(delays);
    it.cancel(slot);
    { it.settle() } -> std::same_as<std::uint64_t>;
    { it.complaint() } -> std::convertible_to<std::string>;
};

/// A loop that sends requests and guards them with timeouts, and a pool of workers that finds the answers: the timeout is
/// cancelled on the worker's thread.
///
/// N timers are armed by the loop. Then another thread cancels all of them, in random order; the loop has nothing else to
/// do. One operation is one cancel, in wall time, with what the loop has to do afterwards. Arming is not measured. Beside
/// it stand the processor time of both threads and how many processors that means; the canceller does not sleep while it
/// waits for the loop, so its waiting is in there.
struct remote_cancel {
    static constexpr std::string_view name = "remote_cancel";
    static constexpr std::string_view one_operation =
        "cancel, from another thread, one of N timers that a loop has armed";

    static std::uint64_t operations(std::size_t timers) { return timers * (timers < 100'000 ? 200 : 5); }

    template <remote_contender Contender>
    static outcome run(const plan& plan) {
        sequence draws(plan.seed);
        std::vector<std::chrono::nanoseconds> armed(plan.timers);
        std::vector<slot_index> order(plan.timers);
        for (std::size_t i = 0; i < plan.timers; ++i) {
            const auto draw = draws.next();
            armed[i] = delays.at(draw.delay_fraction);
            order[i] = static_cast<slot_index>(i);
            std::swap(order[i], order[draw.slot_below(i + 1)]);
        }

        Contender contender(plan.timers);
        std::chrono::nanoseconds elapsed{0};
        std::int64_t spent_ns = 0;
        // The first round lets every contender get its memory.
        for (std::uint64_t round = 0; round <= plan.operations / plan.timers; ++round) {
            if (interrupted.load(std::memory_order_relaxed)) return {0, interrupted_error};
            contender.arm_all(armed);
            const std::int64_t spent_before_ns = all_threads_time_ns();
            const auto start = std::chrono::steady_clock::now();
            for (const slot_index slot : order) contender.cancel(slot);
            const std::uint64_t cancelled = contender.settle();
            const auto stop = std::chrono::steady_clock::now();
            if (round != 0) {
                elapsed += stop - start;
                spent_ns += all_threads_time_ns() - spent_before_ns;
            }
            if (cancelled != plan.timers) {
                return {0, "armed " + std::to_string(plan.timers) + ", cancelled " + std::to_string(cancelled)};
            }
        }
        const auto spent = static_cast<double>(spent_ns);
        return {elapsed.count(),
                contender.complaint(),
                0,
                {{"processor_ns", spent / static_cast<double>(plan.operations)},
                 {"processors", spent / static_cast<double>(elapsed.count())}}};
    }

 private:
    // None may expire before it is cancelled.
    static constexpr delay_range delays{std::chrono::minutes{2}, std::chrono::minutes{3}};
};

}  // namespace chime_bench
