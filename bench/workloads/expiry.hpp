// SPDX-License-Identifier: MIT
#pragma once

#include "support/plan.hpp"
#include "support/sequence.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace chime_bench {

/// Cache entries, leases, sessions that were made together and end together: many sleepers due in the same moment.
///
/// N tasks on a runtime with two workers sleep until bursts that each wake a tenth of them; the variants differ in whether
/// a sleeper is resumed straight from its timer or queued, and in how many a turn resumes straight. The time shown is from
/// a burst's deadline to its last resumption, per sleeper; beside it how many were resumed which way.
struct expiry {
    static constexpr std::string_view name = "expiry";
    static constexpr std::string_view one_operation = "resume a sleeper of a burst of N / 10, with 2 workers";

    struct variant {
        std::string name;
        bool is_inline;
        std::size_t budget;
    };
    static std::vector<variant> variants() {
        return {{"inline.off", false, 64}, {"inline.0", true, 0}, {"inline.64", true, 64}, {"inline.512", true, 512}};
    }

    static std::uint64_t operations(std::size_t timers) { return timers * rounds; }

    static outcome run(const variant& variant, const plan& plan) {
        const std::size_t each = plan.timers / burst_count;
        std::vector<burst> bursts(burst_count * rounds);
        for (burst& it : bursts) it.left = each;
        chime::runtime_config config;
        config.workers = 2;
        config.inline_resumption = variant.is_inline;
        config.inline_budget = variant.budget;
        chime::runtime runtime(config);
        // All are asleep by then, also on a slow machine.
        const clock::time_point first =
            clock::now() + std::chrono::milliseconds{200} + plan.timers * std::chrono::microseconds{3};
        for (std::size_t number = 0; number < bursts.size(); ++number) {
            bursts[number].deadline = first + number * between_bursts(plan.timers);
        }
        std::atomic<bool> was_early{false};
        for (std::size_t i = 0; i < each * burst_count; ++i) {
            chime::spawn_detached(runtime, sleep(bursts, i % burst_count, was_early));
        }
        for (const burst& it : bursts) {
            while (!it.is_over.load(std::memory_order_acquire)) {
                if (interrupted.load(std::memory_order_relaxed)) return {0, interrupted_error};
                std::this_thread::sleep_for(std::chrono::milliseconds{5});
            }
        }

        std::chrono::nanoseconds total{0};
        for (const burst& it : bursts) total += it.ended - it.deadline;
        runtime.shutdown();
        const chime::timer_stats stats = runtime.stats().timers;
        outcome result;
        result.elapsed_ns = total.count();
        const double count = static_cast<double>(each * bursts.size());
        result.figures = {{"ns", static_cast<double>(total.count()) / count},
                          {"inline_share", static_cast<double>(stats.resumed_inline) / count},
                          {"stolen_share", static_cast<double>(stats.stolen) / count}};
        if (stats.resumed_by_timer != each * bursts.size() || stats.tasks != 0) {
            result.error = "slept " + std::to_string(each * bursts.size()) + " times, resumed by timer " +
                           std::to_string(stats.resumed_by_timer) + ", tasks left " + std::to_string(stats.tasks);
        } else if (was_early) {
            result.error = "a sleeper was resumed early";
        }
        return result;
    }

 private:
    using clock = std::chrono::steady_clock;
    static constexpr std::size_t burst_count = 10;
    static constexpr std::size_t rounds = 3;

    static std::chrono::nanoseconds between_bursts(std::size_t timers) {
        return std::chrono::milliseconds{5} + timers / burst_count * std::chrono::microseconds{4};
    }

    struct alignas(64) burst {
        std::atomic<std::size_t> left{0};
        std::atomic<bool> is_over{false};
        clock::time_point deadline;
        clock::time_point ended;
    };

    static chime::task<> sleep(std::vector<burst>& bursts, std::size_t mine, std::atomic<bool>& was_early) {
        for (std::size_t number = mine; number < bursts.size(); number += burst_count) {
            burst& it = bursts[number];
            co_await chime::sleep_until(it.deadline);
            const std::size_t left = it.left.fetch_sub(1, std::memory_order_relaxed);
            // To look at the clock costs as much as to be resumed: few do.
            if (left % 64 == 0 && clock::now() < it.deadline) was_early = true;
            if (left == 1) {
                it.ended = clock::now();
                it.is_over.store(true, std::memory_order_release);  // Pairs with the acquire in run().
            }
        }
    }
};

}  // namespace chime_bench
