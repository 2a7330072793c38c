// SPDX-License-Identifier: MIT

// A runtime under observation: one callback takes far too long, the metronome says on which worker and what that makes late,
// and the numbers go out with every look.

#include <chime/runtime.hpp>
#include <chime/timers.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>

using namespace std::chrono_literals;

namespace {

/// What a monitoring system would scrape.
struct exported {
    std::atomic<std::uint64_t> pending{0};
    std::atomic<std::uint64_t> fired{0};
    std::atomic<std::int64_t> p99_ns{0};
    std::atomic<int> stuck{0};
};

chime::runtime_config watched(exported& gauges) {
    chime::runtime_config config{.workers = 2, .metronome = true, .metronome_period = 5ms, .stuck_after = 50ms};
    config.on_stuck = [&gauges](const chime::stuck_worker& found) {
        ++gauges.stuck;
        std::printf("a worker is stuck%s\n", found.overdue > 0ns ? ", and its timers are late" : "");
    };
    config.on_metrics = [&gauges](const chime::runtime_stats& now) {
        gauges.pending = now.timers.pending;
        gauges.fired = now.timers.fired;
        gauges.p99_ns = now.timers.lateness.quantile(0.99).count();
    };
    return config;
}

}  // namespace

int main() {
    exported gauges;
    chime::runtime rt(watched(gauges));
    rt.timers().after(1ms, [&rt] {
        // Armed by this worker, so it is this worker's to fire. A time, not a delay, which would count from our end.
        rt.timers().at(rt.timers().now() + 10ms, [] {});
        std::this_thread::sleep_for(200ms);  // What nobody should do in a callback.
    });
    std::this_thread::sleep_for(400ms);
    rt.shutdown();

    const chime::runtime_stats after = rt.stats();
    std::printf("reports %llu; the late one was late by %s\n", static_cast<unsigned long long>(after.stuck_reports),
                after.timers.lateness.max >= 100ms ? "more than 100 ms" : "little");
    return gauges.stuck != 0 && after.timers.fired == 2 ? 0 : 1;
}
