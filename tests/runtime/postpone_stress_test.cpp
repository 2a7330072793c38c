// SPDX-License-Identifier: MIT
//
// Postponing from other threads while the loop accepts, moves, fires or is cancelled: the deadline that was promised is
// the one that counts.

#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/random.hpp"

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr std::size_t batch_size = 64;

task<> yield_until(const std::atomic<bool>& is_over) {
    while (!is_over.load(std::memory_order_relaxed)) co_await yield();
}

/// A loop that never sleeps, so that it drains its inbox at once.
class busy_loop {
 public:
    busy_loop() {
        spawn_detached(context, yield_until(is_over_));
        loop_.emplace(context);
    }
    ~busy_loop() { finish(); }
    void finish() {
        is_over_ = true;
        loop_->finish();
    }
    io_context context;

 private:
    std::atomic<bool> is_over_{false};
    std::optional<loop_thread> loop_;
};

TEST(postpone_against_accept, what_was_postponed_before_it_was_accepted_does_not_fire_at_its_old_deadline) {
    watchdog guard("postpone later against accept", 20s);
    busy_loop busy;
    timers& all = busy.context.timers();
    random_source random(process_seed());
    std::uint64_t early = 0;
    std::uint64_t postponed = 0;
    std::array<timer_handle, batch_size> handles;
    std::array<bool, batch_size> is_postponed{};
    for (std::uint64_t batch = 0; batch < scaled(1'000'000) / batch_size; ++batch) {
        guard.pat();
        for (std::size_t i = 0; i < batch_size; ++i) {
            handles[i] = all.after(5us, [] {});
            spin(random.below(60));
            is_postponed[i] = all.postpone(handles[i], 1h);
        }
        spin(20'000);
        for (std::size_t i = 0; i < batch_size; ++i) {
            const cancel_result answer = all.cancel(handles[i]);
            if (!is_postponed[i]) continue;
            ++postponed;
            early += answer != cancel_result::cancelled ? 1U : 0U;
        }
    }
    busy.finish();
    EXPECT_EQ(early, 0U) << "fired an hour early; " << postponed << " were postponed; " << replay_hint();
    EXPECT_GT(postponed, 0U);
    check_ledger_at_rest(busy.context);
}

TEST(postpone_against_accept, what_was_made_earlier_before_it_was_accepted_fires_at_once) {
    watchdog guard("postpone earlier against accept: a timer is an hour late", 20s);
    busy_loop busy;
    timers& all = busy.context.timers();
    random_source random(process_seed());
    for (std::uint64_t batch = 0; batch < scaled(400'000) / batch_size; ++batch) {
        guard.pat();
        std::atomic<std::size_t> fired{0};
        for (std::size_t i = 0; i < batch_size; ++i) {
            const timer_handle which = all.after(1h, [&fired] { fired.fetch_add(1, std::memory_order_release); });
            spin(random.below(60));
            ASSERT_TRUE(all.postpone(which, 0s));
        }
        await_that([&] { return fired.load(std::memory_order_acquire) == batch_size; });
    }
    busy.finish();
    check_ledger_at_rest(busy.context);
}

TEST(postpone_against_arm, what_another_thread_makes_earlier_while_the_callback_that_armed_it_ends_fires_at_once) {
    watchdog guard("postpone against the end of the arming callback: a timer is lost", 20s);
    busy_loop busy;
    timers& all = busy.context.timers();
    random_source random(process_seed());
    constexpr std::size_t few = 8;
    std::array<timer_handle, few> handles;
    for (std::uint64_t batch = 0; batch < scaled(200'000) / few; ++batch) {
        guard.pat();
        std::atomic<std::size_t> armed{0};
        std::atomic<std::size_t> fired{0};
        const std::uint64_t pause = random.below(100);
        busy.context.post([&, pause] {
            for (std::size_t i = 0; i < few; ++i) {
                handles[i] = all.after(1h, [&fired] { fired.fetch_add(1, std::memory_order_release); });
                armed.store(i + 1, std::memory_order_release);
                spin(pause);
            }
        });
        for (std::size_t i = 0; i < few; ++i) {
            await_that([&] { return armed.load(std::memory_order_acquire) > i; });
            ASSERT_TRUE(all.postpone(handles[i], 0s)) << replay_hint();
        }
        await_that([&] { return fired.load(std::memory_order_acquire) == few; });
    }
    busy.finish();
    check_ledger_at_rest(busy.context);
}

TEST(postpone_against_fire, what_was_postponed_at_the_last_moment_does_not_fire) {
    watchdog guard("postpone against fire", 20s);
    busy_loop busy;
    timers& all = busy.context.timers();
    random_source random(process_seed());
    std::uint64_t early = 0;
    std::uint64_t postponed = 0;
    std::uint64_t missed = 0;
    std::array<timer_handle, batch_size> handles;
    std::array<bool, batch_size> is_postponed{};
    for (std::uint64_t batch = 0; batch < scaled(2'000'000) / batch_size; ++batch) {
        guard.pat();
        // All due at one moment, and so is the postponing: it takes as long as the firing.
        const time_point due = all.now() + 15us;
        for (timer_handle& each : handles) each = all.at(due, [] {});
        const time_point begin = due - nanoseconds{random.below(3'000)};
        while (all.now() < begin) {}
        for (std::size_t i = 0; i < batch_size; ++i) is_postponed[i] = all.postpone(handles[i], 1h);
        spin(5'000);
        for (std::size_t i = 0; i < batch_size; ++i) {
            const cancel_result answer = all.cancel(handles[i]);
            (is_postponed[i] ? postponed : missed) += 1;
            early += is_postponed[i] && answer != cancel_result::cancelled ? 1U : 0U;
        }
    }
    busy.finish();
    EXPECT_EQ(early, 0U) << "fired an hour early, of " << postponed << "; " << replay_hint();
    EXPECT_GT(postponed, 0U);
    EXPECT_GT(missed, 0U);
    check_ledger_at_rest(busy.context);
    std::cout << "seed " << process_seed() << ", postponed " << postponed << ", fired before " << missed << '\n';
}

TEST(postpone_against_move, the_last_of_many_postponements_is_the_one_that_counts) {
    watchdog guard("postpone against move: a timer is lost", 20s);
    busy_loop busy;
    timers& all = busy.context.timers();
    random_source random(process_seed());
    std::uint64_t early = 0;
    std::uint64_t late_ones = 0;
    for (std::uint64_t round = 0; round < scaled(15'000); ++round) {
        guard.pat();
        std::atomic<bool> has_fired{false};
        const timer_handle which = all.after(1h, [&has_fired] { has_fired.store(true, std::memory_order_release); });
        // Earlier and earlier, so that each of them is a command; then far away, or now.
        auto delay = 50min;
        for (std::uint64_t left = random.below(4); left != 0; --left) {
            ASSERT_TRUE(all.postpone(which, delay));
            delay -= 10min;
            spin(random.below(100));
        }
        if (random.one_in(2)) {
            ASSERT_TRUE(all.postpone(which, 0s));
            await_that([&] { return has_fired.load(std::memory_order_acquire); });
        } else if (all.postpone(which, 20us) && (spin(random.below(100)), all.postpone(which, 2h))) {
            ++late_ones;
            spin(60'000);
            early += all.cancel(which) != cancel_result::cancelled ? 1U : 0U;
        } else {
            all.cancel_and_wait(which);
        }
    }
    busy.finish();
    EXPECT_EQ(early, 0U) << "fired two hours early, of " << late_ones << "; " << replay_hint();
    check_ledger_at_rest(busy.context);
}

/// One of many timers that several threads fight for.
struct contested {
    std::atomic<std::uint64_t> handle_life{0};
    std::atomic<std::uint64_t> handle_rest{0};
    std::atomic<std::uint64_t> fired{0};

    void publish(timer_handle which) {
        handle_rest.store(std::uint64_t{which.runtime} << 32U | which.index, std::memory_order_relaxed);
        handle_life.store(which.life, std::memory_order_release);
    }
    /// May be put together of two handles; such a one is harmless.
    [[nodiscard]] timer_handle read() const {
        const std::uint64_t life = handle_life.load(std::memory_order_acquire);
        const std::uint64_t rest = handle_rest.load(std::memory_order_relaxed);
        return {.life = life,
                .index = static_cast<std::uint32_t>(rest),
                .runtime = static_cast<std::uint32_t>(rest >> 32U)};
    }
};

TEST(postpone_against_all, three_threads_and_the_loop_fight_for_the_same_timers) {
    const watchdog guard("postpone, cancel, fire, arm", 120s);
    io_context context;
    timers& all = context.timers();
    constexpr std::size_t places = 16;
    std::vector<contested> field(places);
    std::atomic<std::uint64_t> armed{0};
    std::atomic<std::uint64_t> cancelled{0};
    const auto delay_of = [](random_source& random) {
        const std::uint64_t kind = random.below(4);
        return kind == 0 ? nanoseconds{0} : kind == 1 ? nanoseconds{random.below(20'000)} : nanoseconds{1h};
    };
    const auto act = [&](random_source& random) {
        contested& its = field[random.below(places)];
        switch (random.below(4)) {
        case 0: {
            if (all.cancel(its.read()) == cancel_result::cancelled) cancelled.fetch_add(1);
            its.publish(all.after(delay_of(random), [&its] { its.fired.fetch_add(1); }));
            armed.fetch_add(1);
            break;
        }
        case 1:
            if (all.cancel(its.read()) == cancel_result::cancelled) cancelled.fetch_add(1);
            break;
        default: all.postpone(its.read(), delay_of(random)); break;
        }
    };
    loop_thread loop(context);
    std::vector<std::thread> fighters;
    for (std::uint64_t number = 0; number < 3; ++number) {
        fighters.emplace_back([&, number] {
            random_source random(process_seed() + number);
            for (std::uint64_t round = 0; round < scaled(1'000'000); ++round) act(random);
        });
    }
    // The loop fights along, from its own callbacks.
    random_source own(process_seed() + 99);
    const timer_handle beat = all.every(20us, missed_ticks::skip, [&] {
        for (int i = 0; i < 8; ++i) act(own);
    });
    for (std::thread& each : fighters) each.join();
    all.cancel_and_wait(beat);
    // Handles get lost in the fight, and their timers an hour away with them: everything stops.
    all.stop();
    loop.finish();
    std::uint64_t fired = 0;
    for (const contested& each : field) fired += each.fired.load();
    const timer_stats sums = all.stats();
    EXPECT_GE(sums.fired, fired);
    EXPECT_LE(fired + cancelled.load(), armed.load());
    EXPECT_GT(fired, 0U);
    EXPECT_GT(cancelled.load(), 0U);
    EXPECT_GT(sums.postponed, 0U);
    check_ledger_at_rest(context);
    std::cout << "seed " << process_seed() << ", armed " << armed.load() << ", fired " << fired << ", cancelled "
              << cancelled.load() << ", postponed " << sums.postponed << '\n';
}

}  // namespace
}  // namespace chime::test
