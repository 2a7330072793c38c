// SPDX-License-Identifier: MIT
#pragma once

#include "support/steady_load.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace chime_bench {

/// Timeouts that hardly ever expire: a client or a broker arms one per request and cancels it when the answer comes.
///
/// N requests are under way. One operation is the answer to one of them and the next request in its place: cancel a
/// random timer, arm it anew. The few that do expire are armed again when their turn comes.
struct timeout_churn {
    static constexpr std::string_view name = "timeout_churn";
    static constexpr std::string_view one_operation = "cancel a random timer and arm it anew, 1 ms to 60 s ahead";

    static std::uint64_t operations(std::size_t timers) { return steady_load<timeout_churn>::operations(timers); }

    template <class Contender>
    static outcome run(const plan& plan) {
        return steady_load<timeout_churn>::run<Contender>(plan);
    }

    static constexpr delay_range initial{std::chrono::milliseconds{1}, std::chrono::seconds{60}};
    static constexpr delay_range delays = initial;

    template <class Contender>
    static void apply(Contender& contender, slot_index slot, std::chrono::nanoseconds delay, tally& counts) {
        if (contender.cancel(slot)) ++counts.cancelled;
        contender.arm(slot, delay);
        ++counts.armed;
    }
};

}  // namespace chime_bench
