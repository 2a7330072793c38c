// SPDX-License-Identifier: MIT
#pragma once

#include "contenders/chime_timers.hpp"
#include "support/contender.hpp"
#include "support/plan.hpp"
#include "support/sequence.hpp"
#include "support/shared_contender.hpp"
#include "support/sleepers_plan.hpp"
#include "support/spinning_signal.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace chime_bench {

/// What the roles of chime::runtime have in common.
struct chime_runtime_facts {
    static constexpr std::string_view name = "chime.runtime";
    static constexpr std::string_view clock_reads = chime_timers::clock_reads;
    static std::string version() { return chime_timers::version(); }

    static chime::runtime_config with_workers(unsigned count) {
        chime::runtime_config config;
        config.workers = count;
        return config;
    }

    static std::string complaint_about(const chime::timer_stats& stats) {
        if (stats.armed == stats.fired + stats.cancelled + stats.pending) return {};
        return "the counters do not add up: armed " + std::to_string(stats.armed) + ", fired " +
               std::to_string(stats.fired) + ", cancelled " + std::to_string(stats.cancelled) + ", pending " +
               std::to_string(stats.pending);
    }
};

/// A runtime with T workers and T tasks: a task arms and cancels through runtime.timers(), and yields between two steps.
class chime_runtime_shared : public chime_runtime_facts {
 public:
    class lane_timers {
     public:
        lane_timers(chime_runtime_shared& home, std::size_t timers) : home_(home), handles_(timers) {}

        void arm(slot_index slot, std::chrono::nanoseconds delay) {
            handles_[slot] = home_.runtime_.timers().after(delay, [&home = home_] { home.fired_.add_one(); });
        }
        bool cancel(slot_index slot) {
            return home_.runtime_.timers().cancel(handles_[slot]) == chime::cancel_result::cancelled;
        }
        bool postpone(slot_index slot, std::chrono::nanoseconds delay) {
            return home_.runtime_.timers().postpone(handles_[slot], delay);
        }
        void prefetch_handle(slot_index slot) const { __builtin_prefetch(&handles_[slot]); }
        void prefetch_timer(slot_index slot) const { home_.runtime_.timers().prefetch(handles_[slot]); }

     private:
        chime_runtime_shared& home_;
        std::vector<chime::timer_handle> handles_;
    };

    chime_runtime_shared(unsigned lanes, std::size_t timers_per_lane) : runtime_(with_workers(lanes)) {
        for (unsigned which = 0; which < lanes; ++which) lanes_.emplace_back(*this, timers_per_lane);
    }

    lane_timers& lane(unsigned which) { return lanes_[which]; }

    template <class Step>
    void run(Step step) {
        std::vector<chime::join_handle<void>> tasks;
        for (unsigned which = 0; which < lanes_.size(); ++which) tasks.push_back(runtime_.spawn(repeat(step, which)));
        for (auto& each : tasks) {
            each.wait();
            each.take();
        }
        await_last_callbacks();
    }

    [[nodiscard]] std::uint64_t fired() const { return fired_.sum(); }
    [[nodiscard]] std::string complaint() const { return complaint_about(runtime_.stats().timers); }
    [[nodiscard]] chime::timer_stats stats() const { return runtime_.stats().timers; }

 private:
    template <class Step>
    static chime::task<> repeat(Step& step, unsigned which) {
        while (step(which)) co_await chime::yield();
    }

    /// Who has cancelled a timer on another worker may have been told that its callback is running: it has not counted itself
    /// by then, if that worker has no processor. What does not come to its end is complained about.
    void await_last_callbacks() const {
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds{10};
        const auto is_through = [this] {
            const chime::timer_stats now = stats();
            return now.pending == 0 && now.fired == fired();
        };
        while (!is_through() && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    }

    scattered_count fired_;
    std::vector<lane_timers> lanes_;
    chime::runtime runtime_;
};

/// One worker, whose task arms; a thread that is no worker cancels.
class chime_runtime_remote : public chime_runtime_facts {
 public:
    explicit chime_runtime_remote(std::size_t timers) : handles_(timers), runtime_(with_workers(1)) {}

    void arm_all(const std::vector<std::chrono::nanoseconds>& delays) { runtime_.block_on(arm_each(delays)); }

    void cancel(slot_index slot) {
        if (runtime_.timers().cancel(handles_[slot]) == chime::cancel_result::cancelled) ++cancelled_;
    }

    /// A task begins behind what other threads have sent to the worker before.
    std::uint64_t settle() {
        spinning_signal done;
        chime::spawn_detached(runtime_, give(done));
        done.wait();
        return std::exchange(cancelled_, 0);
    }

    [[nodiscard]] std::string complaint() const { return complaint_about(runtime_.stats().timers); }

 private:
    chime::task<> arm_each(const std::vector<std::chrono::nanoseconds>& delays) {
        for (std::size_t slot = 0; slot < delays.size(); ++slot) {
            handles_[slot] = runtime_.timers().after(delays[slot], [] {});
            if (slot % 64 == 0) co_await chime::yield();
        }
    }
    static chime::task<> give(spinning_signal& done) {
        done.give();
        co_return;
    }

    std::vector<chime::timer_handle> handles_;
    std::uint64_t cancelled_ = 0;
    chime::runtime runtime_;
};

/// Two workers, and a timer that a thread which is none of them has armed.
class chime_runtime_idle : public chime_runtime_facts {
 public:
    chime_runtime_idle(std::size_t, firing_log& log) : log_(log), runtime_(with_workers(2)) {}

    void arm(slot_index slot, std::chrono::nanoseconds delay) {
        runtime_.timers().after(delay, [this, slot] {
            log_.note(slot);
            has_fired_.store(true);
            has_fired_.notify_one();
        });
    }
    void wait() { has_fired_.wait(false); }

 private:
    firing_log& log_;
    std::atomic<bool> has_fired_{false};
    chime::runtime runtime_;
};

/// A task per sleeper, detached, on two workers; all are spawned by a task.
template <bool WithSlack>
class chime_runtime_sleepers : public chime_runtime_facts {
 public:
    static constexpr std::string_view name = WithSlack ? "chime.runtime.slack" : chime_runtime_facts::name;

    static void sleep_all(sleepers_plan& plan) {
        chime::runtime_config config = with_workers(2);
        if (WithSlack) config.slack = sleepers_plan::slack;
        chime::runtime runtime(config);
        runtime.block_on(spawn_all(runtime, plan));
        std::this_thread::sleep_for(plan.delays.longest);  // Who looks every millisecond spends processor time, too.
        while (plan.woken.sum() < plan.count) std::this_thread::sleep_for(std::chrono::milliseconds{1});
        runtime.shutdown();
    }

 private:
    static chime::task<> spawn_all(chime::runtime& runtime, sleepers_plan& plan) {
        for (std::size_t i = 0; i < plan.count; ++i) {
            chime::spawn_detached(runtime, sleep(plan, i, plan.next_delay()));
            if (i % 64 == 0) co_await chime::yield();
        }
    }
    static chime::task<> sleep(sleepers_plan& plan, std::size_t which, std::chrono::nanoseconds delay) {
        const auto started = plan.now_if_checked(which);
        co_await chime::sleep_for(delay);
        plan.note(which, started, delay);
    }
};

/// A task that spawns others and awaits them through their join_handle, on two workers.
class chime_runtime_joiner : public chime_runtime_facts {
 public:
    static std::uint64_t join_all(std::uint64_t rounds, std::size_t width) {
        chime::runtime runtime(with_workers(2));
        std::uint64_t sum = 0;
        runtime.block_on(repeat(runtime, rounds, width, sum));
        return sum;
    }

 private:
    static chime::task<std::uint64_t> answer(std::uint64_t number) { co_return number; }

    static chime::task<> repeat(chime::runtime& home, std::uint64_t rounds, std::size_t width, std::uint64_t& sum) {
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
