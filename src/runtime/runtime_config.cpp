// SPDX-License-Identifier: MIT
#include "runtime/runtime.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

// What a configuration may say.

namespace chime::inline v0 {

std::string runtime_config::validate() const {
    constexpr std::size_t most_units = std::size_t{1} << 29U;
    constexpr std::size_t most_budget = std::size_t{1} << 30U;
    const auto outside = [](const char* name, std::size_t value, std::size_t least, std::size_t most) {
        return std::string("runtime_config::") + name + " is " + std::to_string(value) + "; choose one from " +
               std::to_string(least) + " to " + std::to_string(most);
    };
    const auto late_on_purpose = [](const char* name, std::chrono::nanoseconds value) {
        return std::string("runtime_config::") + name + " is " + std::to_string(value.count()) +
               " ns; choose zero or how late a timer may be made on purpose";
    };
    if (workers > most_workers) return outside("workers", workers, 0, most_workers);
    if (max_timers < 1 || max_timers > most_units) return outside("max_timers", max_timers, 1, most_units);
    if (max_tasks < 1 || max_tasks > most_units) return outside("max_tasks", max_tasks, 1, most_units);
    if (resolution.count() < 1 || resolution.count() > std::int64_t{1} << 32U) {
        return "runtime_config::resolution is " + std::to_string(resolution.count()) +
               " ns; choose one from 1 to 4294967296 ns";
    }
    if (slack.count() < 0) return late_on_purpose("slack", slack);
    if (crowd_slack.count() < 0) return late_on_purpose("crowd_slack", crowd_slack);
    if (timer_budget < 1 || timer_budget > most_budget) return outside("timer_budget", timer_budget, 1, most_budget);
    if (task_budget < 1 || task_budget > most_budget) return outside("task_budget", task_budget, 1, most_budget);
    if (inline_budget > most_budget) return outside("inline_budget", inline_budget, 0, most_budget);
    if (stale_slack < 64 || stale_slack > most_units) return outside("stale_slack", stale_slack, 64, most_units);
    if (scrub_budget < 32 || scrub_budget > 65536) return outside("scrub_budget", scrub_budget, 32, 65536);
    if (!metronome && (on_stuck || on_metrics)) {
        return "runtime_config::on_stuck and on_metrics are called by the metronome, which is off; set metronome to true";
    }
    if (metronome && metronome_period < std::chrono::microseconds{100}) {
        return "runtime_config::metronome_period is " + std::to_string(metronome_period.count()) +
               " ns; choose 100 us or more";
    }
    if (metronome && stuck_after.count() <= 0) {
        return "runtime_config::stuck_after is " + std::to_string(stuck_after.count()) +
               " ns; choose how long a piece of user code may take";
    }
    return {};
}

}  // namespace chime::inline v0
