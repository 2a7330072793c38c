// SPDX-License-Identifier: MIT
//
// timers().stop() on a runtime that goes on: its timers end for good, its workers stay.

#include "runtime/watchdog.hpp"
#include "support/refusal.hpp"
#include "support/runtime_ledger.hpp"
#include "support/witness.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

constexpr int sleepers = 300;
constexpr int stubborn = 100;               ///< Sleep again when they are told.
constexpr int callbacks_of_each = 3 * 100;  ///< Of each thread that arms.
constexpr int armed_callbacks = 4 * callbacks_of_each;

/// What there is on a runtime with three workers, and what became of it.
class populated_runtime {
 public:
    populated_runtime() {
        for (int count = 0; count < sleepers; ++count) spawn_detached(home, sleep_once());
        for (int count = 0; count < stubborn; ++count) spawn_detached(home, sleep_twice());
        std::array<std::thread, 3> threads;  // Those that are started together have different workers.
        for (std::thread& each : threads) each = std::thread([this] { arm_callbacks(); });
        for (std::thread& each : threads) each.join();
        home.block_on(arm_inside());
        await_that([this] { return asleep == sleepers + stubborn; });
        await_that([this] { return home.stats().timers.pending == sleepers + stubborn + armed_callbacks; });
    }

    /// They are told at once, by the workers, and nobody has to shut anything down.
    void expect_ended() {
        await_that([this] { return closures.ends == armed_callbacks; });
        await_that([this] { return home.stats().timers.tasks == 0 && home.stats().timers.pending == 0; });
        EXPECT_EQ(cancelled.load(), sleepers + stubborn) << "each of them once";
        EXPECT_EQ(elapsed.load(), 0);
        EXPECT_EQ(slept_again.load(), 0);
        EXPECT_EQ(frames.ends.load(), sleepers + stubborn);
        EXPECT_EQ(ran.load(), 0) << "callbacks never run";
        const timer_stats sums = home.stats().timers;
        EXPECT_EQ(sums.resumed_by_shutdown, static_cast<std::uint64_t>(sleepers + stubborn));
        EXPECT_EQ(home.stats().workers.size(), 3U);
        expect_everything_refused();
        home.timers().stop();  // The second time it does nothing.
        check_ledger_at_rest(home);
        check_ledger_after_shutdown(home);
        EXPECT_EQ(ran.load(), 0);
        EXPECT_EQ(closures.ends.load(), armed_callbacks);
        EXPECT_EQ(cancelled.load(), sleepers + stubborn);
    }

    runtime home{runtime_config{.workers = 3}};

 private:
    task<> sleep_once() {
        const witness frame(frames);
        ++asleep;
        const wake_reason why = co_await sleep_for(1h);
        ++(why == wake_reason::elapsed ? elapsed : cancelled);
    }
    task<> sleep_twice() {
        const witness frame(frames);
        ++asleep;
        const wake_reason why = co_await sleep_for(1h);
        ++(why == wake_reason::elapsed ? elapsed : cancelled);
        co_await sleep_for(0s);
        ++slept_again;
    }
    task<> arm_inside() {
        arm_callbacks();
        co_return;
    }
    void arm_callbacks() {
        for (int count = 0; count < callbacks_of_each; count += 3) {
            home.timers().after(1h, [this, seen = witness(closures)] { ++ran; });
            home.timers().at(chime::clock::now() + 2h, [this, seen = witness(closures)] { ++ran; });
            home.timers().every(1h, missed_ticks::burst, [this, seen = witness(closures)] { ++ran; });
        }
    }

    void expect_everything_refused() {
        timers& all = home.timers();
        const std::uint64_t before = home.stats().timers.refused;
        const auto run = [this] { ++ran; };
        expect_refused(errc::stopped, [&] { all.after(0s, run); });
        expect_refused(errc::stopped, [&] { all.at(chime::clock::now(), run); });
        expect_refused(errc::stopped, [&] { all.every(1ms, missed_ticks::skip, run); });
        EXPECT_FALSE(all.try_after(0s, run).has_value());
        EXPECT_FALSE(all.try_at(chime::clock::now(), run).has_value());
        EXPECT_FALSE(all.try_every(1ms, missed_ticks::skip, run).has_value());
        expect_refused(errc::stopped, [&] { home.post(run); });
        EXPECT_FALSE(home.try_post(run));
        expect_refused(errc::stopped, [&] { spawn_detached(home, sleep_once()); });
        expect_refused(errc::stopped, [&] { home.block_on(sleep_once()); });
        EXPECT_FALSE(home.try_spawn(sleep_once()).has_value());
        EXPECT_EQ(home.stats().timers.refused, before + 11);
        EXPECT_EQ(asleep.load(), sleepers + stubborn);
    }

    std::atomic<int> asleep{0};
    std::atomic<int> elapsed{0};
    std::atomic<int> cancelled{0};
    std::atomic<int> slept_again{0};
    std::atomic<int> ran{0};
    witness_report frames;
    witness_report closures;
};

TEST(timers_stop_on_three_workers, resumes_every_sleeper_once_and_refuses_what_comes_later) {
    const watchdog guard("a stop from outside", 30s);
    populated_runtime its;
    its.home.timers().stop();
    its.expect_ended();
}

TEST(timers_stop_on_three_workers, may_be_called_by_a_callback) {
    const watchdog guard("a stop from a callback", 30s);
    populated_runtime its;
    its.home.timers().after(0s, [&] { its.home.timers().stop(); });
    its.expect_ended();
}

task<> stop_from_inside(runtime& home) {
    home.timers().stop();
    co_return;
}

TEST(timers_stop_on_three_workers, may_be_called_by_a_task) {
    const watchdog guard("a stop from a task", 30s);
    populated_runtime its;
    its.home.block_on(stop_from_inside(its.home));
    its.expect_ended();
}

}  // namespace
}  // namespace chime::test
