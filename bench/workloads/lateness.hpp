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

/// How late a sleeping loop is: N timers within a second at random times, in real time, on a machine that has nothing else
/// to do. What is shown is the median of (when the callback ran) − (when it was due); beside it the distribution.
///
/// With a thousand of them most of it is the kernel waking a thread; `raw.sleeper` does nothing else, so it is what can be
/// reached. With fifty thousand there is hardly time to sleep.
struct lateness {
    static constexpr std::string_view name = "lateness";
    static constexpr std::string_view one_operation = "median lateness of N timers a second, in real time";

    static std::uint64_t operations(std::size_t timers) { return timers; }

    template <waiting_contender Contender>
    static outcome run(const plan& plan) {
        firing_log log(plan.timers);
        log.note_times();
        Contender contender(plan.timers, log);
        sequence draws(plan.seed);
        std::vector<clock::time_point> deadlines(plan.timers);
        for (std::size_t slot = 0; slot < plan.timers; ++slot) {
            const std::chrono::nanoseconds delay = delays.at(draws.next().delay_fraction);
            deadlines[slot] = clock::now() + delay;
            contender.arm(static_cast<slot_index>(slot), delay);
            // Who looks at the clock once per turn gets turns while so many are armed.
            if constexpr (requires { contender.turn(); }) {
                if (slot % 64 == 63) contender.turn();
            }
        }
        std::vector<std::int64_t> late_ns;
        late_ns.reserve(plan.timers);
        while (late_ns.size() < plan.timers) {
            if (interrupted.load(std::memory_order_relaxed)) return {0, interrupted_error};
            contender.wait();
            while (late_ns.size() < log.fired()) {
                const std::size_t next = late_ns.size();
                late_ns.push_back((log.time_of(next) - deadlines[log[next]]).count());
            }
        }
        std::sort(late_ns.begin(), late_ns.end());
        const auto early =
            static_cast<std::uint64_t>(std::lower_bound(late_ns.begin(), late_ns.end(), 0) - late_ns.begin());
        const auto microseconds = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-3; };
        const auto at = [&](std::size_t thousandth) { return late_ns[plan.timers * thousandth / 1'000]; };
        return {at(500) * static_cast<std::int64_t>(plan.operations),
                {},
                early,
                {{"earliest_us", microseconds(late_ns.front())},
                 {"p10_us", microseconds(at(100))},
                 {"p50_us", microseconds(at(500))},
                 {"p90_us", microseconds(at(900))},
                 {"p99_us", microseconds(at(990))},
                 {"p999_us", microseconds(at(999))}}};
    }

 private:
    using clock = std::chrono::steady_clock;
    static constexpr delay_range delays{std::chrono::milliseconds{100}, std::chrono::milliseconds{1100}};
};

}  // namespace chime_bench
