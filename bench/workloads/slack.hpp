// SPDX-License-Identifier: MIT
#pragma once

#include "support/forked_run.hpp"
#include "support/plan.hpp"
#include "support/sequence.hpp"

#include <chime/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chime_bench {

/// A phone, or a machine with many quiet tenants: timers that need not be exact, where every wake-up costs power.
///
/// N timers at random times within a second, on one loop that sleeps in between; the variants differ in how much slack it
/// may use to let neighbours share a wake-up; `none` has none where they crowd, either. The time shown is the median
/// lateness; beside it the 99th percentile, how often the loop went to sleep, and the processor time.
struct slack {
    static constexpr std::string_view name = "slack";
    static constexpr std::string_view one_operation = "median lateness of N timers within a second, in real time";

    struct variant {
        std::string name;
        std::chrono::nanoseconds slack;
        std::chrono::nanoseconds crowd_slack = chime::io_context_config{}.crowd_slack;
    };
    static std::vector<variant> variants() {
        using namespace std::chrono_literals;
        return {{"slack.none", 0ns, 0ns},
                {"slack.0", 0ns},
                {"slack.100us", 100us},
                {"slack.1ms", 1ms},
                {"slack.10ms", 10ms}};
    }

    static std::uint64_t operations(std::size_t timers) { return timers; }

    static outcome run(const variant& variant, const plan& plan) {
        chime::io_context context({.slack = variant.slack, .crowd_slack = variant.crowd_slack});
        sequence draws(plan.seed);
        std::vector<std::int64_t> late_ns;
        late_ns.reserve(plan.timers);
        const clock::time_point start = clock::now();
        for (std::size_t i = 0; i < plan.timers; ++i) {
            const clock::time_point deadline = start + delays.at(draws.next().delay_fraction);
            context.timers().at(deadline,
                                [&late_ns, deadline] { late_ns.push_back((clock::now() - deadline).count()); });
        }
        const std::int64_t before_ns = all_threads_time_ns();
        while (late_ns.size() < plan.timers) {
            if (interrupted.load(std::memory_order_relaxed)) return {0, interrupted_error};
            context.run_for(std::chrono::milliseconds{500});
        }
        const std::int64_t after_ns = all_threads_time_ns();
        const chime::timer_stats stats = context.timers().stats();

        std::sort(late_ns.begin(), late_ns.end());
        const std::int64_t median_ns = late_ns[plan.timers / 2];
        const auto microseconds = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-3; };
        outcome result;
        result.elapsed_ns = median_ns * static_cast<std::int64_t>(plan.operations);
        result.figures = {{"p50_us", microseconds(median_ns)},
                          {"p99_us", microseconds(late_ns[plan.timers * 99 / 100])},
                          {"sleeps", static_cast<double>(stats.parks)},
                          {"processor_ms", static_cast<double>(after_ns - before_ns) * 1e-6}};
        if (stats.fired != plan.timers || stats.pending != 0) {
            result.error = "armed " + std::to_string(plan.timers) + ", fired " + std::to_string(stats.fired);
        } else if (late_ns.front() < 0) {
            result.error = "a timer fired early";
        }
        return result;
    }

 private:
    using clock = std::chrono::steady_clock;
    // The first one comes when all are armed: half a million take a tenth of a second, and longer where memory is new.
    static constexpr delay_range delays{std::chrono::milliseconds{500}, std::chrono::milliseconds{1500}};
};

}  // namespace chime_bench
