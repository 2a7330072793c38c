// SPDX-License-Identifier: MIT

// A change of shift: all workers of a runtime are replaced while two thousand timers are pending. Nothing is lost, nothing is
// early, and the statistics tell who did what.

#include <chime/error.hpp>
#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/timers.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <system_error>

using namespace std::chrono_literals;

namespace {

constexpr int timer_count = 1000;

struct outcome {
    std::atomic<int> armed{0};
    std::atomic<int> fired{0};
    std::atomic<int> early{0};
    std::atomic<int> awake{0};
};

/// Arms a timer on whatever worker it runs, then sleeps until the same time.
chime::task<> arm_and_sleep(chime::runtime& rt, outcome& seen) {
    const chime::time_point deadline = rt.timers().now() + 200ms;
    rt.timers().at(deadline, [&rt, &seen, deadline] {
        ++seen.fired;
        if (rt.timers().now() < deadline) ++seen.early;
    });
    ++seen.armed;
    co_await chime::sleep_until(deadline);
    ++seen.awake;
}

chime::task<> arm_all(chime::runtime& rt, outcome& seen) {
    for (int made = 0; made < timer_count; ++made) chime::spawn_detached(rt, arm_and_sleep(rt, seen));
    while (seen.armed < timer_count) co_await chime::yield();
}

void print(const char* when, const chime::runtime_stats& now) {
    const chime::timer_stats& all = now.timers;
    const auto number = [](std::uint64_t count) { return static_cast<unsigned long long>(count); };
    std::printf("%s: %zu workers; armed %llu = fired %llu + cancelled %llu + pending %llu\n", when, now.workers.size(),
                number(all.armed), number(all.fired), number(all.cancelled), number(all.pending));
    std::printf("  moved: %llu given away, %llu taken over\n", number(all.migrated), number(all.adopted));
    for (const chime::worker_stats& each : now.workers) {
        std::printf("  worker %llu: fired %llu, took %llu ready tasks from others, %llu turns, %llu idle wake-ups\n",
                    number(each.worker), number(each.timers.fired), number(each.timers.stolen),
                    number(each.timers.turns), number(each.timers.idle_wakeups));
    }
}

void change_shift() {
    outcome seen;
    chime::runtime rt({.workers = 2});
    rt.block_on(arm_all(rt, seen));  // On the workers, while this thread waits.

    const chime::worker_id third = rt.add_worker();
    const chime::worker_id fourth = rt.add_worker();
    rt.retire_worker(0);
    rt.retire_worker(1);  // Returns when all it had is handed over and its thread has ended.
    std::printf("workers %d and %d have taken over\n", static_cast<int>(third), static_cast<int>(fourth));
    print("in between", rt.stats());

    rt.retire_worker(third);
    try {
        rt.retire_worker(fourth);
    } catch (const std::system_error& refusal) {
        std::printf("refused: %s\n", refusal.what());
    }

    while (seen.awake < timer_count || seen.fired < timer_count) rt.block_on(chime::sleep_for(10ms));
    const chime::runtime_stats end = rt.stats();
    print("at the end", end);
    std::printf("  99 of 100 were late by less than %.3f ms\n",
                std::chrono::duration<double, std::milli>(end.timers.lateness.quantile(0.99)).count());
    if (seen.fired != timer_count || seen.awake != timer_count || seen.early != 0) {
        throw std::logic_error("a timer was lost, doubled or early");
    }
}

}  // namespace

int main() {
    change_shift();
}
