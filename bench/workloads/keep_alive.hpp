// SPDX-License-Identifier: MIT
#pragma once

#include "support/steady_load.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace chime_bench {

/// Connections with idle timeouts of many lengths: whatever arrives on one moves its deadline, often earlier too.
///
/// N connections are open; one operation is a message on one of them, whose timer then counts anew.
struct keep_alive {
    static constexpr std::string_view name = "keep_alive";
    static constexpr std::string_view one_operation = "postpone a random timer to 1 s to 60 s from now";

    static std::uint64_t operations(std::size_t timers) { return steady_load<keep_alive>::operations(timers); }

    template <class Contender>
    static outcome run(const plan& plan) {
        return steady_load<keep_alive>::run<Contender>(plan);
    }

    static constexpr delay_range initial{std::chrono::seconds{1}, std::chrono::seconds{60}};
    static constexpr delay_range delays = initial;

    template <class Contender>
    static void apply(Contender& contender, slot_index slot, std::chrono::nanoseconds delay, tally& counts) {
        if (contender.postpone(slot, delay)) {
            ++counts.postponed;
        } else {
            contender.arm(slot, delay);
            ++counts.armed;
        }
    }
};

}  // namespace chime_bench
