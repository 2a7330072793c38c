// SPDX-License-Identifier: MIT
#pragma once

#include "support/sequence.hpp"
#include "support/tally.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace chime_bench {

/// How many operations a turn of a loop, or a step of a task, has to do.
inline constexpr std::uint64_t operations_per_batch = 64;

/// Does that many operations on random timers, all drawn before the first, as when poll() has reported a batch of events: with a
/// million timers the processor works at as many operations at once as it has room for their instructions, and the dice are none
/// of a program's. Who looks ahead fetches what the next ones need.
template <class Operation, bool LooksAhead, class Timers>
void apply_batch(Timers& on, sequence& sequence, std::size_t timers, tally& counts) {
    constexpr std::size_t timers_ahead = 8;
    constexpr std::size_t handles_ahead = 16;
    struct operation {
        slot_index slot;
        std::uint32_t delay_fraction;
    };
    std::array<operation, operations_per_batch + handles_ahead> batch;
    for (std::size_t i = 0; i < operations_per_batch; ++i) {
        const auto draw = sequence.next();
        batch[i] = {draw.slot_below(timers), draw.delay_fraction};
    }
    if constexpr (LooksAhead) {
        for (std::size_t i = operations_per_batch; i < batch.size(); ++i) batch[i] = {};  // They name slot 0.
        for (std::size_t i = 0; i < handles_ahead; ++i) on.prefetch_handle(batch[i].slot);
        for (std::size_t i = 0; i < timers_ahead; ++i) on.prefetch_timer(batch[i].slot);
    }
    for (std::size_t i = 0; i < operations_per_batch; ++i) {
        if constexpr (LooksAhead) {
            on.prefetch_handle(batch[i + handles_ahead].slot);
            on.prefetch_timer(batch[i + timers_ahead].slot);
        }
        Operation::apply(on, batch[i].slot, Operation::delays.at(batch[i].delay_fraction), counts);
    }
}

/// Is this a contender in a program that knows what comes next? See contenders/ahead.hpp.
template <class Contender>
inline constexpr bool looks_ahead = requires {
    Contender::looks_ahead;
};

}  // namespace chime_bench
