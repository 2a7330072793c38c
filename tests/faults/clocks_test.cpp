// SPDX-License-Identifier: MIT
//
// Clocks that stand, jump and run back. Nothing is early by the clock that a context shows, and nothing is lost.

#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/random.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/clock_source.hpp>
#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// Shows whatever it is told, also an earlier time.
class moody_clock final : public clock_source {
 public:
    [[nodiscard]] time_point now() const noexcept override { return time_point{duration{shown_.load()}}; }
    void show(time_point time) {
        shown_ = time.time_since_epoch().count();
        const std::lock_guard lock(mutex_);
        for (clock_listener* const each : listeners_) each->time_moved();
    }

    void attach(clock_listener& listener) override {
        const std::lock_guard lock(mutex_);
        listeners_.push_back(&listener);
    }
    void detach(clock_listener& listener) noexcept override {
        const std::lock_guard lock(mutex_);
        std::erase(listeners_, &listener);
    }
    void begin_run(clock_listener&) noexcept override {}
    void end_run(clock_listener&) noexcept override {}
    bool begin_idle(clock_listener&, time_point deadline, bool) noexcept override { return deadline <= now(); }
    void end_idle(clock_listener&) noexcept override {}

 private:
    std::atomic<duration::rep> shown_{duration(1h).count()};
    std::mutex mutex_;
    std::vector<clock_listener*> listeners_;
};

/// Steps that a clock may take in an instant, forward and back.
duration random_step(random_source& random) {
    constexpr std::array<duration, 8> steps{0ns, 1ns, 1ms, 1s, 1h, 13 * 24h, 365 * 24h, 100ms};
    const duration step = steps[random.below(steps.size())];
    return random.one_in(3) ? -step : step;
}

/// What is armed while the clock does as it likes, and whether it came too early.
class expectations {
 public:
    explicit expectations(timers& home) : home_(home) {}

    void arm(duration delay, bool is_absolute) {
        ++armed;
        if (is_absolute) {
            const time_point due = home_.now() + delay;
            home_.at(due, [this, due] { note(due); });
        } else {
            const time_point due = home_.now() + delay;
            home_.after(delay, [this, due] { note(due); });
        }
    }
    task<> sleep(duration delay) {
        ++armed;
        const time_point due = home_.now() + delay;
        auto pause = sleep_for(delay);
        co_await pause;
        note(due);
    }

    std::atomic<int> armed{0};
    std::atomic<int> fired{0};
    std::atomic<int> early{0};

 private:
    void note(time_point due) {
        ++fired;
        if (home_.now() < due) ++early;
    }

    timers& home_;
};

TEST(a_clock_that_jumps_and_runs_back, makes_nothing_early_in_a_loop_and_loses_nothing) {
    SCOPED_TRACE(replay_hint());
    for (std::uint64_t round = 0; round < scaled(400); ++round) {
        random_source random(process_seed() + round);
        moody_clock clock;
        io_context context({.clock = &clock});
        expectations all(context.timers());
        time_point latest = clock.now();
        for (int step = 0; step < 200; ++step) {
            const duration delay = random.below(1'000) * 1ms * (random.one_in(20) ? 1'000'000 : 1);
            switch (random.below(5)) {
            case 0: all.arm(delay, random.one_in(2)); break;
            case 1: context.post([&all, delay, is_absolute = random.one_in(2)] { all.arm(delay, is_absolute); }); break;
            case 2: spawn_detached(context, all.sleep(delay)); break;
            case 3: clock.show(std::max(time_point{} + 1h, clock.now() + random_step(random))); break;
            default: context.poll(); break;
            }
            latest = std::max(latest, clock.now());
        }
        context.poll();
        clock.show(latest + 1000 * 24h);
        while (!context.is_out_of_work()) context.poll();
        ASSERT_EQ(all.fired.load(), all.armed.load()) << "round " << round;
        ASSERT_EQ(all.early.load(), 0) << "round " << round;
        check_ledger_at_rest(context);
    }
}

TEST(a_clock_that_runs_back, shows_no_earlier_time_to_those_who_follow_it) {
    moody_clock clock;
    io_context context({.clock = &clock});
    time_point fired{};
    clock.show(time_point{} + 10h);
    EXPECT_EQ(context.timers().now(), time_point{} + 10h);
    clock.show(time_point{} + 5h);
    EXPECT_EQ(context.timers().now(), time_point{} + 10h);
    context.timers().after(1h, [&] { fired = clock.now(); });
    for (int hour = 5; hour < 20; ++hour) {
        clock.show(time_point{} + hour * 1h);
        context.poll();
    }
    EXPECT_EQ(fired, time_point{} + 11h);
    check_ledger_at_rest(context);
}

TEST(a_clock_that_jumps_and_runs_back, makes_nothing_early_on_many_workers_and_loses_nothing) {
    SCOPED_TRACE(replay_hint());
    watchdog guard("a moody clock and many workers", 60s);
    for (std::uint64_t round = 0; round < 1 + scaled(20); ++round) {
        random_source random(process_seed() + round);
        moody_clock clock;
        runtime home({.workers = 2, .clock = &clock});
        expectations all(home.timers());
        time_point latest = clock.now();
        for (int step = 0; step < 300; ++step) {
            const duration delay = random.below(1'000) * 1ms;
            switch (random.below(4)) {
            case 0: all.arm(delay, random.one_in(2)); break;
            case 1: spawn_detached(home, all.sleep(delay)); break;
            case 2: clock.show(std::max(time_point{} + 1h, clock.now() + random_step(random))); break;
            default: std::this_thread::yield(); break;
            }
            latest = std::max(latest, clock.now());
        }
        // Everything asleep has its deadline now; nobody shows an earlier time any more.
        await_that([&] { return home.stats().timers.tasks == home.stats().timers.waiting; });
        for (int day = 0; home.stats().timers.pending + home.stats().timers.tasks != 0; ++day) {
            latest += 24h;
            clock.show(latest);
            std::this_thread::sleep_for(100us);
            if (day < 20'000) continue;
            std::ostringstream left;
            home.dump_pending(left);
            FAIL() << "round " << round << ": still there after many days:\n" << left.str();
        }
        ASSERT_EQ(all.fired.load(), all.armed.load()) << "round " << round;
        ASSERT_EQ(all.early.load(), 0) << "round " << round;
        check_ledger_after_shutdown(home);
        guard.pat();
    }
}

TEST(a_frozen_clock, fires_what_is_due_and_nothing_else_for_as_long_as_it_stands) {
    moody_clock clock;
    io_context context({.clock = &clock});
    int due = 0;
    int later = 0;
    context.timers().after(1ns, [&] { ++later; });
    context.timers().every(1ms, missed_ticks::burst, [&] { ++later; });
    for (int round = 0; round < 10'000; ++round) {
        context.timers().after(0s, [&] { ++due; });
        context.poll();
    }
    EXPECT_EQ(due, 10'000);
    EXPECT_EQ(later, 0);
    clock.show(clock.now() + 1ms);
    context.poll();
    EXPECT_EQ(later, 2);
    context.timers().stop();
    context.run();
    check_ledger_at_rest(context);
}

}  // namespace
}  // namespace chime::test
