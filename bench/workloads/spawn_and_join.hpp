// SPDX-License-Identifier: MIT
#pragma once

#include "support/forked_run.hpp"
#include "support/plan.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace chime_bench {

/// Something that runs coroutines: join_all(rounds, width) starts `width` of them from a coroutine, awaits them all, and
/// does so `rounds` times. Each gives back its number in the round; the sum of all is the answer.
template <class C>
concept joining_contender = requires(std::uint64_t rounds, std::size_t width) {
    { C::join_all(rounds, width) } -> std::same_as<std::uint64_t>;
};

/// A request that asks several others and waits for their answers: structured concurrency without any timer.
///
/// N coroutines are under way at a time. One operation is one of them, started and joined, in wall time; beside it the
/// processor time of all threads. Every run is a process of its own.
struct spawn_and_join {
    static constexpr std::string_view name = "spawn_and_join";
    static constexpr std::string_view one_operation = "start a coroutine and join it, N at a time";

    static std::uint64_t operations(std::size_t timers) { return 1'000'000 / timers * timers; }

    template <joining_contender Contender>
    static outcome run(const plan& plan) {
        return run_forked([&] { return measured<Contender>(plan); });
    }

 private:
    template <class Contender>
    static outcome measured(const plan& plan) {
        const std::uint64_t rounds = plan.operations / plan.timers;
        const std::int64_t spent_before_ns = all_threads_time_ns();
        const auto start = std::chrono::steady_clock::now();
        const std::uint64_t sum = Contender::join_all(rounds, plan.timers);
        outcome result;
        result.elapsed_ns = (std::chrono::steady_clock::now() - start).count();
        result.figures = {{"processor_ns", static_cast<double>(all_threads_time_ns() - spent_before_ns) /
                                               static_cast<double>(plan.operations)}};
        const std::uint64_t expected = rounds * (plan.timers * (plan.timers - 1) / 2);
        if (sum != expected) {
            result.error = "the answers make " + std::to_string(sum) + ", not " + std::to_string(expected);
        }
        return result;
    }
};

}  // namespace chime_bench
