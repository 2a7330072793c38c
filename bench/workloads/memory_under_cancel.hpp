// SPDX-License-Identifier: MIT
#pragma once

#include "support/forked_run.hpp"
#include "support/plan.hpp"
#include "support/sequence.hpp"
#include "support/shared_contender.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace chime_bench {

/// A busy proxy with generous timeouts: an hour for every request, nearly all answered within a moment.
///
/// For four seconds every thread arms one-hour timers as fast as it can. 999 of 1000 are cancelled a moment later, when 1024
/// others have been armed; one of 1000 stays until N others have stayed. So the number of pending timers does not grow, and
/// none ever expires: whoever leaves cancelled timers where they are until their time comes runs out of memory. Memory is
/// looked at all the time, and must not be more at the end than it was in the middle. Every run is a process of its own.
struct memory_under_cancel {
    static constexpr std::string_view name = "memory_under_cancel";
    static constexpr std::string_view one_operation =
        "arm a timer of an hour and cancel it soon; N in each of T threads stay longer";

    static std::uint64_t operations(std::size_t) { return 1'000'000; }  // Nominal: the time is what is fixed.

    template <shared_contender Contender>
    static outcome run(const plan& plan) {
        return run_forked([&] { return measured<Contender>(plan); });
    }

 private:
    using clock = std::chrono::steady_clock;
    static constexpr std::chrono::seconds duration{4};
    static constexpr std::chrono::milliseconds between_looks{50};
    // At random, so that not every timer fits the place that its predecessor has left.
    static constexpr delay_range timeouts{std::chrono::minutes{60}, std::chrono::minutes{61}};
    static constexpr std::size_t short_lived = 1024;
    static constexpr std::uint64_t one_stays_of = 1000;
    static constexpr std::uint64_t operations_per_step = 64;
    static constexpr std::uint64_t growth_allowed_bytes = 2 << 20;

    struct alignas(64) lane_state {
        explicit lane_state(std::uint64_t seed) : draws(seed) {}

        sequence draws;
        std::uint64_t armed = 0;
        std::uint64_t cancelled = 0;
        bool is_emptying = false;
    };

    /// Looks at the memory of this process every now and then, on a thread of its own, while it lives.
    class memory_watch {
     public:
        memory_watch() : thread_([this] { watch(); }) {}
        ~memory_watch() { stop(); }
        memory_watch(const memory_watch&) = delete;
        memory_watch& operator=(const memory_watch&) = delete;

        /// All that was seen, in bytes.
        const std::vector<std::uint64_t>& stop() {
            {
                const std::lock_guard lock(mutex_);
                is_over_ = true;
            }
            changed_.notify_all();
            if (thread_.joinable()) thread_.join();
            return seen_;
        }

     private:
        void watch() {
            std::unique_lock lock(mutex_);
            while (!changed_.wait_for(lock, between_looks, [this] { return is_over_; })) {
                seen_.push_back(resident_bytes());
            }
        }

        std::mutex mutex_;
        std::condition_variable changed_;
        bool is_over_ = false;
        std::vector<std::uint64_t> seen_;
        std::thread thread_;
    };

    template <class Timers>
    static bool churn(Timers& timers, lane_state& mine, std::size_t long_lived) {
        for (std::uint64_t i = 0; i < operations_per_step; ++i) {
            std::uint64_t slot = mine.armed % short_lived;
            if (mine.armed % one_stays_of == 0) slot = short_lived + mine.armed / one_stays_of % long_lived;
            if (timers.cancel(static_cast<slot_index>(slot))) ++mine.cancelled;
            timers.arm(static_cast<slot_index>(slot), timeouts.at(mine.draws.next().delay_fraction));
            ++mine.armed;
        }
        return true;
    }

    template <class Timers>
    static bool empty(Timers& timers, lane_state& mine, std::size_t long_lived) {
        for (std::size_t slot = 0; slot < short_lived + long_lived; ++slot) {
            if (timers.cancel(static_cast<slot_index>(slot))) ++mine.cancelled;
        }
        return false;
    }

    template <class Contender>
    static outcome measured(const plan& plan) {
        const std::uint64_t before_bytes = resident_bytes();
        Contender contender(plan.threads, short_lived + plan.timers);
        std::vector<lane_state> lanes;
        for (unsigned which = 0; which < plan.threads; ++which) lanes.emplace_back(plan.seed + which);
        memory_watch memory;
        outcome result;
        std::vector<std::uint64_t> seen;
        std::atomic<unsigned> lanes_left{plan.threads};

        const clock::time_point start = clock::now();
        clock::time_point stop;
        contender.run([&](unsigned which) {
            lane_state& mine = lanes[which];
            if (mine.is_emptying || interrupted.load(std::memory_order_relaxed)) {
                return empty(contender.lane(which), mine, plan.timers);
            }
            if (mine.armed % (64 * operations_per_step) == 0 && clock::now() >= start + duration) {
                mine.is_emptying = true;
                if (lanes_left.fetch_sub(1) == 1) {  // The last one notes what there is before all is emptied.
                    stop = clock::now();
                    seen = memory.stop();
                    if constexpr (requires { contender.stats(); }) {
                        const auto stats = contender.stats();
                        result.figures = {{"tickets", static_cast<double>(stats.tickets)},
                                          {"stale", static_cast<double>(stats.stale_tickets)}};
                    }
                }
                return true;
            }
            return churn(contender.lane(which), mine, plan.timers);
        });

        std::uint64_t armed = 0;
        std::uint64_t cancelled = 0;
        for (const lane_state& each : lanes) {
            armed += each.armed;
            cancelled += each.cancelled;
        }
        result.elapsed_ns =
            static_cast<std::int64_t>(static_cast<double>((stop - start).count()) / static_cast<double>(armed) *
                                      static_cast<double>(plan.operations));
        if (seen.size() < 8) {
            result.error = "it was too busy to look at its memory";
            return result;
        }
        const auto most = [&](std::size_t from, std::size_t to) {
            const auto at = [&](std::size_t eighth) {
                return seen.begin() + static_cast<std::ptrdiff_t>(seen.size() * eighth / 8);
            };
            return *std::max_element(at(from), at(to));
        };
        const std::uint64_t middle_bytes = most(2, 4);
        const std::uint64_t end_bytes = most(6, 8);
        const auto megabytes = [&](std::uint64_t bytes) {
            return static_cast<double>(bytes - std::min(bytes, before_bytes)) / (1 << 20);
        };
        result.figures.insert(result.figures.begin(), {{"early_mb", megabytes(most(0, 1))},
                                                       {"middle_mb", megabytes(middle_bytes)},
                                                       {"end_mb", megabytes(end_bytes)}});
        result.error = contender.complaint();
        if (armed != cancelled + contender.fired() || contender.fired() != 0) {
            result.error = "armed " + std::to_string(armed) + ", cancelled " + std::to_string(cancelled) + ", fired " +
                           std::to_string(contender.fired());
        } else if (end_bytes > middle_bytes + middle_bytes / 20 + growth_allowed_bytes) {
            result.error = "memory grows: " + std::to_string(megabytes(middle_bytes)) + " MB in the middle, " +
                           std::to_string(megabytes(end_bytes)) + " MB at the end";
        }
        return result;
    }
};

}  // namespace chime_bench
