// SPDX-License-Identifier: MIT
#pragma once

#include "support/contender.hpp"
#include "support/plan.hpp"
#include "support/sequence.hpp"

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chime_bench {

/// A contender that can wait for its next timer in real time: wait() returns when something has fired.
template <class C>
concept waiting_contender = std::constructible_from<C, std::size_t, firing_log&> &&
    requires(C& it, slot_index slot, std::chrono::nanoseconds delay) {
    it.arm(slot, delay);
    it.wait();
};

/// How late a sleeping loop is: a thousand timers a second at random times, in real time, on a machine that has nothing
/// else to do. What is shown is the median of (when the timer had fired) − (when it was due).
///
/// Most of it is the kernel waking a thread; `raw.sleeper` does nothing else, so it is what can be reached.
struct lateness {
    static constexpr std::string_view name = "lateness";
    static constexpr std::string_view one_operation = "median lateness of N timers a second, in real time";

    static std::uint64_t operations(std::size_t timers) { return timers; }

    template <waiting_contender Contender>
    static outcome run(const plan& plan) {
        firing_log log(plan.timers);
        Contender contender(plan.timers, log);
        sequence draws(plan.seed);
        std::vector<clock::time_point> deadlines(plan.timers);
        for (std::size_t slot = 0; slot < plan.timers; ++slot) {
            const std::chrono::nanoseconds delay = delays.at(draws.next().delay_fraction);
            deadlines[slot] = clock::now() + delay;
            contender.arm(static_cast<slot_index>(slot), delay);
        }
        std::vector<std::int64_t> late_ns;
        late_ns.reserve(plan.timers);
        while (late_ns.size() < plan.timers) {
            if (interrupted.load(std::memory_order_relaxed)) return {0, interrupted_error};
            contender.wait();
            const clock::time_point now = clock::now();
            while (late_ns.size() < log.fired()) {
                late_ns.push_back((now - deadlines[log[late_ns.size()]]).count());
            }
        }
        const auto early = static_cast<std::uint64_t>(
            std::count_if(late_ns.begin(), late_ns.end(), [](std::int64_t late) { return late < 0; }));
        std::nth_element(late_ns.begin(), late_ns.begin() + static_cast<std::ptrdiff_t>(plan.timers / 2),
                         late_ns.end());
        const std::int64_t median_ns = late_ns[plan.timers / 2];
        return {median_ns * static_cast<std::int64_t>(plan.operations), {}, early};
    }

 private:
    using clock = std::chrono::steady_clock;
    static constexpr delay_range delays{std::chrono::milliseconds{20}, std::chrono::milliseconds{1020}};
};

}  // namespace chime_bench
