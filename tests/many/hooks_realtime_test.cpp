// SPDX-License-Identifier: MIT
//
// Hooks that make new work whenever they are called: they do not keep timers from firing in time, nor a shutdown from
// ending.

#include "runtime/watchdog.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <system_error>
#include <thread>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// The runtime that a hook makes work for, as soon as there is one, and how often it has.
class busy_hook {
 public:
    void show(runtime& home) { home_ = &home; }

    /// Calls `make_work` with the runtime. What is refused is refused because everything stops.
    template <class MakeWork>
    void call(const MakeWork& make_work) {
        runtime* const home = home_;
        if (home == nullptr) return;
        calls_.fetch_add(1);
        try {
            make_work(*home);
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), errc::stopped) << error.what();
            refused_.fetch_add(1);
        }
    }
    [[nodiscard]] std::uint64_t calls() const { return calls_.load(); }
    [[nodiscard]] std::uint64_t refused() const { return refused_.load(); }

 private:
    std::atomic<runtime*> home_{nullptr};
    std::atomic<std::uint64_t> calls_{0};
    std::atomic<std::uint64_t> refused_{0};
};

/// Forty timers and as many sleepers, a few milliseconds apart, while the hook is at it: in time, and never early.
void expect_all_in_time(runtime& home, const busy_hook& hook) {
    constexpr int count = 40;
    std::atomic<int> ended{0};
    std::atomic<int> early{0};
    std::atomic<int> late{0};
    const auto note = [&](time_point deadline) {
        const time_point now = chime::clock::now();
        if (now < deadline) ++early;
        if (now > deadline + 1s) ++late;
        ++ended;
    };
    struct sleeper {
        static task<> until(time_point deadline, const decltype(note)& note) {
            co_await sleep_until(deadline);
            note(deadline);
        }
    };
    const std::uint64_t calls_before = hook.calls();
    const time_point begun = chime::clock::now();
    for (int each = 1; each <= count; ++each) {
        const time_point deadline = begun + each * 5ms;
        home.timers().at(deadline, [&note, deadline] { note(deadline); });
        spawn_detached(home, sleeper::until(deadline, note));
    }
    await_that([&] { return ended == 2 * count; });
    EXPECT_EQ(early.load(), 0);
    EXPECT_EQ(late.load(), 0);
    await_that([&] { return hook.calls() > calls_before + 5; });
}

/// Ends it while the hook is at it, with something pending.
void expect_shutdown_ends(runtime& home) {
    home.timers().after(1h, [] { ADD_FAILURE() << "an hour early"; });
    const auto begun = std::chrono::steady_clock::now();
    check_ledger_after_shutdown(home);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 5s);
}

task<> end_at_once() {
    co_return;
}

task<> yield_until(const std::atomic<bool>& is_over) {
    while (!is_over.load()) co_await yield();
}

TEST(on_metrics, that_always_makes_new_work_delays_nothing_and_lets_the_runtime_end) {
    for (const unsigned workers : {1U, 3U}) {
        const watchdog guard("on_metrics makes work", 30s);
        busy_hook hook;
        runtime_config config{.workers = workers, .metronome = true, .metronome_period = 100us};
        config.on_metrics = [&](const runtime_stats&) {
            hook.call([](runtime& home) {
                EXPECT_EQ(home.stats().stuck_reports, 0U);
                home.timers().after(0s, [] {});
                spawn_detached(home, end_at_once());
            });
        };
        runtime home(config);
        std::atomic<bool> is_over{false};
        spawn_detached(home, yield_until(is_over));  // While all sleep there are no looks, so somebody stays awake.
        hook.show(home);
        expect_all_in_time(home, hook);
        is_over = true;
        expect_shutdown_ends(home);
        const std::uint64_t calls = hook.calls();
        std::this_thread::sleep_for(5ms);
        EXPECT_EQ(hook.calls(), calls) << "called after the end";
    }
}

TEST(on_stuck, that_always_makes_new_work_delays_nothing_and_lets_the_runtime_end) {
    for (const unsigned workers : {1U, 3U}) {
        const watchdog guard("on_stuck makes work", 30s);
        const auto take_too_long = [] { std::this_thread::sleep_for(3ms); };
        busy_hook hook;
        runtime_config config{.workers = workers,
                              .metronome = true,
                              .metronome_period = 100us,
                              .stuck_after = std::chrono::milliseconds{1}};
        config.on_stuck = [&](const stuck_worker& report) {
            EXPECT_GE(report.since, 1ms);
            hook.call([&](runtime& home) {
                EXPECT_NE(home.stats().stuck_reports, 0U);
                spawn_detached(home, end_at_once());
                home.timers().after(0s, take_too_long);  // Which is reported again.
            });
        };
        runtime home(config);
        hook.show(home);
        const timer_handle first = home.timers().every(10ms, missed_ticks::skip, take_too_long);
        expect_all_in_time(home, hook);
        expect_shutdown_ends(home);
        EXPECT_EQ(home.timers().cancel(first), cancel_result::gone);
    }
}

struct thrown_by_a_task {};
struct thrown_by_a_timer {};

task<> fail_at_once() {
    throw thrown_by_a_task{};
    co_return;
}

void arm_what_fails(runtime& home) {
    home.timers().after(0s, [] { throw thrown_by_a_timer{}; });
}

TEST(on_exception, that_always_makes_work_that_throws_delays_nothing_and_lets_the_runtime_end) {
    for (const unsigned workers : {1U, 3U}) {
        const watchdog guard("on_exception makes work", 30s);
        busy_hook hook;
        runtime_config config{.workers = workers};
        config.on_exception = [&](const std::exception_ptr& thrown) {
            hook.call([&](runtime& home) {
                // A task follows a task, and a timer a timer.
                try {
                    std::rethrow_exception(thrown);
                } catch (const thrown_by_a_task&) {
                    spawn_detached(home, fail_at_once());
                } catch (const thrown_by_a_timer&) {
                    arm_what_fails(home);
                }
            });
        };
        runtime home(config);
        hook.show(home);
        for (int each = 0; each < 8; ++each) {
            spawn_detached(home, fail_at_once());
            arm_what_fails(home);
        }
        expect_all_in_time(home, hook);
        expect_shutdown_ends(home);
        EXPECT_NE(hook.refused(), 0U) << "it was at it until the end";
    }
}

}  // namespace
}  // namespace chime::test
