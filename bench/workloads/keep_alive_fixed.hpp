// SPDX-License-Identifier: MIT
#pragma once

#include "workloads/keep_alive.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace chime_bench {

/// A server with one idle timeout for all: every message puts its connection's deadline to 30 s from now.
///
/// The connections came at different moments, so the first deadlines are spread over the next 30 s; after that
/// a timer only ever moves later, to the very end of the queue.
struct keep_alive_fixed {
    static constexpr std::string_view name = "keep_alive_fixed";
    static constexpr std::string_view one_operation = "postpone a random timer to 30 s from now";

    static std::uint64_t operations(std::size_t timers) { return steady_load<keep_alive_fixed>::operations(timers); }

    template <class Contender>
    static outcome run(const plan& plan) {
        return steady_load<keep_alive_fixed>::run<Contender>(plan);
    }

    static constexpr delay_range initial{std::chrono::seconds{1}, std::chrono::seconds{30}};
    static constexpr delay_range delays{std::chrono::seconds{30}, std::chrono::seconds{30}};

    template <class Contender>
    static void apply(Contender& contender, slot_index slot, std::chrono::nanoseconds delay, tally& counts) {
        keep_alive::apply(contender, slot, delay, counts);
    }
};

}  // namespace chime_bench
