// SPDX-License-Identifier: MIT
#pragma once

#include "contenders/chime_timers.hpp"
#include "support/sequence.hpp"
#include "support/sleepers_plan.hpp"
#include "support/spinning_signal.hpp"

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace chime_bench {

/// What the roles of chime::io_context have in common, where threads or coroutines come in.
struct chime_io_context_facts {
    static constexpr std::string_view name = "chime.io_context";
    static constexpr std::string_view clock_reads = chime_timers::clock_reads;
    static std::string version() { return chime_timers::version(); }
};

/// One thread runs the loop and arms, in turns of 64; another cancels, and calls timers().cancel() itself.
class chime_io_context_remote : public chime_io_context_facts {
 public:
    explicit chime_io_context_remote(std::size_t timers) : handles_(timers) {}
    ~chime_io_context_remote() {
        context_.stop();
        thread_.join();
    }
    chime_io_context_remote(const chime_io_context_remote&) = delete;
    chime_io_context_remote& operator=(const chime_io_context_remote&) = delete;

    void arm_all(const std::vector<std::chrono::nanoseconds>& delays) {
        for (std::size_t first = 0; first < delays.size(); first += 64) {
            context_.post([this, &delays, first] {
                for (std::size_t slot = first; slot < std::min(first + 64, delays.size()); ++slot) {
                    handles_[slot] = context_.timers().after(delays[slot], [] {});
                }
            });
        }
        wait_for_the_loop();
    }

    void cancel(slot_index slot) {
        if (context_.timers().cancel(handles_[slot]) == chime::cancel_result::cancelled) ++cancelled_;
    }

    /// What is posted runs behind what other calls of this thread have sent to the loop.
    std::uint64_t settle() {
        wait_for_the_loop();
        return std::exchange(cancelled_, 0);
    }

    [[nodiscard]] std::string complaint() const {
        const chime::timer_stats stats = const_cast<chime_io_context_remote*>(this)->context_.timers().stats();
        if (stats.armed == stats.cancelled && stats.pending == 0) return {};
        return "armed " + std::to_string(stats.armed) + ", but cancelled " + std::to_string(stats.cancelled) +
               ", pending " + std::to_string(stats.pending);
    }

 private:
    void wait_for_the_loop() {
        spinning_signal done;
        context_.post([&done] { done.give(); });
        done.wait();
    }

    std::vector<chime::timer_handle> handles_;
    std::uint64_t cancelled_ = 0;
    chime::io_context context_;
    chime::io_context::work_guard guard_ = context_.make_work_guard();
    std::thread thread_{[this] { context_.run(); }};
};

/// A task per sleeper, detached; all are spawned before run(). With slack, neighbours share a wake-up.
template <bool WithSlack>
class chime_io_context_sleepers : public chime_io_context_facts {
 public:
    static constexpr std::string_view name = WithSlack ? "chime.io_context.slack" : chime_io_context_facts::name;

    static void sleep_all(sleepers_plan& plan) {
        chime::io_context_config config;
        if (WithSlack) config.slack = sleepers_plan::slack;
        chime::io_context context(config);
        for (std::size_t i = 0; i < plan.count; ++i) chime::spawn_detached(context, sleep(plan, i, plan.next_delay()));
        context.run();
    }

 private:
    static chime::task<> sleep(sleepers_plan& plan, std::size_t which, std::chrono::nanoseconds delay) {
        const auto started = plan.now_if_checked(which);
        co_await chime::sleep_for(delay);
        plan.note(which, started, delay);
    }
};

/// A task that spawns others and awaits them through their join_handle.
class chime_io_context_joiner : public chime_io_context_facts {
 public:
    static std::uint64_t join_all(std::uint64_t rounds, std::size_t width) {
        chime::io_context context;
        std::uint64_t sum = 0;
        chime::spawn_detached(context, repeat(context, rounds, width, sum));
        context.run();
        return sum;
    }

 private:
    static chime::task<std::uint64_t> answer(std::uint64_t number) { co_return number; }

    static chime::task<> repeat(chime::io_context& home, std::uint64_t rounds, std::size_t width, std::uint64_t& sum) {
        std::vector<chime::join_handle<std::uint64_t>> joined;
        joined.reserve(width);
        for (std::uint64_t round = 0; round < rounds; ++round) {
            for (std::size_t i = 0; i < width; ++i) joined.push_back(chime::spawn(home, answer(i)));
            for (auto& each : joined) sum += co_await each;
            joined.clear();
        }
    }
};

}  // namespace chime_bench
