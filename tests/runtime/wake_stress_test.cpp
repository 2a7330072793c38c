// SPDX-License-Identifier: MIT
//
// Falling asleep against being woken, millions of times. A lost wake-up shows as a hang, which the watchdog reports.

#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/random.hpp"
#include "worker/inbox.hpp"
#include "worker/parking.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

/// What an inbox links; every look at one may take a while, as if its thread had been interrupted there.
struct slow_units {
    struct unit {
        std::atomic<std::uint32_t> link{0};
        std::atomic<std::uint32_t> value{0};
    };
    explicit slow_units(std::size_t count) : units(count) {}
    unit& at(detail::unit_index index) {
        static thread_local random_source random(process_seed());
        if (random.one_in(8)) spin(random.below(100));
        return units[index];
    }
    std::vector<unit> units;
};

/// Many sleepers and one sender: both go through them side by side, so that they meet in the middle of their two steps.
struct litmus_sleeper {
    struct unit {
        std::atomic<std::uint32_t> link{0};
    };
    unit& at(detail::unit_index) { return only; }

    unit only;
    detail::inbox inbox;
    detail::parking parking;
    bool would_sleep = false;
    bool was_rung = false;
};

struct litmus_sums {
    std::uint64_t lost = 0;
    std::uint64_t rung = 0;
    std::uint64_t seen = 0;
    std::uint64_t both = 0;
};

litmus_sums run_litmus(std::uint64_t rounds) {
    std::vector<litmus_sleeper> sleepers(500);
    const std::uint64_t sweeps = rounds / sleepers.size() + 1;
    std::atomic<std::uint64_t> begun{0};
    std::atomic<std::uint64_t> reached{0};
    std::thread sender([&] {
        random_source random(process_seed());
        std::uint64_t next = 0;
        for (std::uint64_t sweep = 1; sweep <= sweeps; ++sweep) {
            await_that([&] { return begun.load(std::memory_order_acquire) == sweep; });
            for (litmus_sleeper& each : sleepers) {
                // The owner is told that this one is next; how long that takes nobody knows.
                reached.store(++next, std::memory_order_release);
                spin(random.below(400));
                static_cast<void>(each.inbox.push(each, 0));
                each.was_rung = each.parking.wake_before(5);
            }
            reached.store(++next, std::memory_order_release);
        }
    });
    litmus_sums sums;
    std::uint64_t next = 0;
    for (std::uint64_t sweep = 1; sweep <= sweeps; ++sweep) {
        begun.store(sweep, std::memory_order_release);
        for (litmus_sleeper& each : sleepers) {
            ++next;
            await_that([&] { return reached.load(std::memory_order_acquire) >= next; });
            each.parking.publish(10);
            each.would_sleep = each.inbox.is_empty();
        }
        ++next;
        await_that([&] { return reached.load(std::memory_order_acquire) == next; });
        for (litmus_sleeper& each : sleepers) {
            sums.lost += each.would_sleep && !each.was_rung ? 1U : 0U;
            sums.rung += each.was_rung ? 1U : 0U;
            sums.seen += each.would_sleep ? 0U : 1U;
            sums.both += each.was_rung && !each.would_sleep ? 1U : 0U;
            each.parking.withdraw();
            static_cast<void>(each.inbox.take_all());
        }
    }
    sender.join();
    return sums;
}

TEST(regression, b02_the_store_load_litmus_holds_for_ten_million_rounds) {
    const watchdog guard("store-load litmus", 200s);
    const litmus_sums sums = run_litmus(scaled(10'000'000));
    EXPECT_EQ(sums.lost, 0U);
    // Otherwise one of the two was always first, and there was nothing to lose.
    EXPECT_GT(sums.rung, 0U);
    EXPECT_GT(sums.seen, 0U);
    std::cout << "rung " << sums.rung << " times, seen " << sums.seen << " times, both " << sums.both << " times\n";
}

TEST(regression, b04_nothing_is_lost_between_three_million_pushes_and_a_drain) {
    const watchdog guard("push against drain", 200s);
    constexpr std::uint32_t senders = 3;
    const auto each = static_cast<std::uint32_t>(scaled(1'000'000));
    slow_units units(std::size_t{senders} * each);
    detail::inbox inbox;
    detail::parking parking;
    std::atomic<std::uint64_t> pushed{0};
    std::vector<std::thread> threads;
    for (std::uint32_t number = 0; number < senders; ++number) {
        threads.emplace_back([&, number] {
            for (std::uint32_t i = 0; i < each; ++i) {
                static_cast<void>(inbox.push(units, number * each + i));
                parking.wake_before(0);
                pushed.fetch_add(1, std::memory_order_release);
            }
        });
    }
    std::vector<std::uint32_t> next(senders, 0);
    std::uint64_t drained = 0;
    std::vector<std::uint32_t> batch;
    while (drained != std::uint64_t{senders} * each) {
        // Told beforehand that so many are there, the drain must find them.
        const std::uint64_t known = pushed.load(std::memory_order_acquire);
        batch.clear();
        for (detail::unit_index at = inbox.take_all(); at != detail::no_unit;
             at = units.units[at].link.load(std::memory_order_relaxed)) {
            batch.push_back(at);
        }
        drained += batch.size();
        ASSERT_GE(drained, known) << "the drain missed what had been pushed";
        for (auto at = batch.rbegin(); at != batch.rend(); ++at) {
            ASSERT_EQ(*at % each, next[*at / each]++) << "out of order, or twice";
        }
        if (batch.empty()) {
            parking.publish(100);
            if (inbox.is_empty() && drained != std::uint64_t{senders} * each) parking.sleep(never);
            parking.withdraw();
        }
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(inbox.is_empty());
}

TEST(regression, b04_functions_posted_at_a_loop_that_falls_asleep_all_run) {
    watchdog guard("post against park", 30s);
    io_context context;
    loop_thread loop(context);
    std::atomic<std::uint64_t> ran{0};
    random_source random(process_seed());
    const std::uint64_t rounds = scaled(200'000);
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        guard.pat();
        context.post([&ran] { ran.fetch_add(1, std::memory_order_release); });
        await_that([&] { return ran.load(std::memory_order_acquire) == round; });
        spin(random.below(2'000));
    }
    loop.finish();
    check_ledger_at_rest(context);
    std::cout << "seed " << process_seed() << ", parked " << context.timers().stats().parks << " times\n";
}

TEST(regression, b01_timers_armed_at_a_loop_that_falls_asleep_all_fire) {
    watchdog guard("arm against park", 30s);
    io_context context;
    const timer_handle far = context.timers().after(10h, [] {});
    loop_thread loop(context);
    std::atomic<std::uint64_t> ran{0};
    random_source random(process_seed());
    const std::uint64_t rounds = scaled(200'000);
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        guard.pat();
        const auto note = [&ran] { ran.fetch_add(1, std::memory_order_release); };
        if (random.one_in(4)) {
            const timer_handle which = context.timers().after(5h, note);
            ASSERT_TRUE(context.timers().postpone(which, 0s));
        } else {
            context.timers().after(nanoseconds{random.below(2'000)}, note);
        }
        await_that([&] { return ran.load(std::memory_order_acquire) == round; });
        spin(random.below(2'000));
    }
    EXPECT_EQ(context.timers().cancel(far), cancel_result::cancelled);
    loop.finish();
    check_ledger_at_rest(context);
    std::cout << "seed " << process_seed() << ", parked " << context.timers().stats().parks << " times\n";
}

/// Runs a context again and again on a thread of its own, each time after `prepare`, and interrupts every run at another
/// moment. A run that does not return is a hang.
template <class Prepare, class Interrupt>
void interrupt_every_run(io_context& context, const Prepare& prepare, const Interrupt& interrupt) {
    watchdog guard("interrupt against run", 30s);
    const std::uint64_t rounds = scaled(100'000);
    std::atomic<std::uint64_t> begun{0};
    std::atomic<std::uint64_t> ended{0};
    std::thread loop([&] {
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            prepare();
            begun.store(round, std::memory_order_release);
            context.run();
            ended.store(round, std::memory_order_release);
        }
    });
    random_source random(process_seed());
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        guard.pat();
        await_that([&] { return begun.load(std::memory_order_acquire) == round; });
        spin(random.below(1'500));
        interrupt();
        await_that([&] { return ended.load(std::memory_order_acquire) == round; });
    }
    loop.join();
}

TEST(regression, b25_stop_at_any_moment_makes_run_return) {
    io_context context;
    const timer_handle far = context.timers().after(10h, [] {});
    interrupt_every_run(
        context, [&] { context.restart(); }, [&] { context.stop(); });
    EXPECT_EQ(context.timers().cancel(far), cancel_result::cancelled);
    context.restart();
    context.run();
    check_ledger_at_rest(context);
}

TEST(regression, b25_cancelling_the_last_timer_at_any_moment_makes_run_return) {
    io_context context;
    timer_handle last;
    interrupt_every_run(
        context, [&] { last = context.timers().after(10h, [] {}); },
        [&] { EXPECT_EQ(context.timers().cancel(last), cancel_result::cancelled); });
    check_ledger_at_rest(context);
}

}  // namespace
}  // namespace chime::test
