// SPDX-License-Identifier: MIT
#pragma once

#include "support/forked_run.hpp"
#include "support/plan.hpp"
#include "support/sleepers_plan.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace chime_bench {

/// Something that runs coroutines: sleep_all(plan) starts plan.count of them and returns when all have slept and are gone.
template <class C>
concept sleeping_contender = requires(sleepers_plan& plan) {
    C::sleep_all(plan);
};

/// A simulation, a crawler, a chat server: a coroutine per participant, and most of them asleep.
///
/// N coroutines are started and sleep once, each for a random time up to two seconds. The time shown is what it all takes
/// beyond these two seconds, per sleeper; beside it the processor time of all threads, and the peak of memory per sleeper.
/// Every run is a process of its own.
struct sleepers {
    static constexpr std::string_view name = "sleepers";
    static constexpr std::string_view one_operation =
        "start a coroutine that sleeps up to 2 s; the time beyond 2 s, divided by N";

    static std::uint64_t operations(std::size_t timers) { return timers; }

    template <sleeping_contender Contender>
    static outcome run(const plan& plan) {
        return run_forked([&] { return measured<Contender>(plan); });
    }

 private:
    using clock = std::chrono::steady_clock;
    static constexpr delay_range delays{std::chrono::nanoseconds{0}, std::chrono::seconds{2}};

    template <class Contender>
    static outcome measured(const plan& plan) {
        sleepers_plan all(plan.timers, delays, plan.seed);
        forget_peak();
        const std::uint64_t before_bytes = resident_bytes();
        const clock::time_point start = clock::now();
        Contender::sleep_all(all);
        const std::chrono::nanoseconds elapsed = clock::now() - start;

        outcome result;
        result.elapsed_ns = (elapsed - delays.longest).count();
        result.early = all.early;
        const auto count = static_cast<double>(plan.timers);
        result.figures = {{"beyond_s", static_cast<double>(result.elapsed_ns) * 1e-9},
                          {"processor_s", static_cast<double>(all_threads_time_ns()) * 1e-9},
                          {"peak_bytes", static_cast<double>(peak_resident_bytes() - before_bytes) / count}};
        if (all.woken.sum() != plan.timers) {
            result.error =
                "started " + std::to_string(plan.timers) + " sleepers, woken " + std::to_string(all.woken.sum());
        } else if (all.early != 0) {
            result.error = "some were woken early";
        }
        return result;
    }
};

}  // namespace chime_bench
