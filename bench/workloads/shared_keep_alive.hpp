// SPDX-License-Identifier: MIT
#pragma once

#include "support/shared_load.hpp"
#include "workloads/keep_alive.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace chime_bench {

/// A server whose connections are spread over several threads, all with idle timeouts in one service: keep_alive, shared.
///
/// N connections are open, and each of T threads has its share of them. One operation is a message on one of them.
struct shared_keep_alive {
    static constexpr std::string_view name = "shared_keep_alive";
    static constexpr std::string_view one_operation =
        "postpone a random timer to 1 s to 60 s from now, T threads with N timers between them on one service";

    static std::uint64_t operations(std::size_t) { return 1'000'000; }

    template <class Contender>
    static outcome run(const plan& plan) {
        return shared_load<keep_alive, Contender>::run(plan, std::max<std::size_t>(plan.timers / plan.threads, 1));
    }
};

}  // namespace chime_bench
