// SPDX-License-Identifier: MIT
#pragma once

#include "support/shared_load.hpp"
#include "workloads/timeout_churn.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace chime_bench {

/// A server with several threads, where every request arms a timeout and cancels it when the answer comes: timeout_churn
/// on one service that all threads use.
///
/// Each of T threads has N requests under way. One operation is one pair of cancel and arm, on whichever thread; the time
/// is that of all threads together, so twice the threads should halve it.
struct shared_churn {
    static constexpr std::string_view name = "shared_churn";
    static constexpr std::string_view one_operation =
        "cancel a random timer and arm it anew, T threads with N timers each on one service";

    static std::uint64_t operations(std::size_t) { return 2'000'000; }

    template <class Contender>
    static outcome run(const plan& plan) {
        return shared_load<timeout_churn, Contender>::run(plan, plan.timers);
    }
};

}  // namespace chime_bench
