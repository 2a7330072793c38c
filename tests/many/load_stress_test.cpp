// SPDX-License-Identifier: MIT
//
// Much at once: bursts at a stuck worker, the first burst of many fresh runtimes, a million sleepers at the end, and timers
// that are cancelled as fast as they are armed. CHIME_LONG in the environment makes ten times as many fresh runtimes.

#include "runtime/watchdog.hpp"
#include "support/random.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// What this process has in memory.
std::size_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    std::size_t all = 0;
    std::size_t resident = 0;
    file >> all >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(a_stuck_worker, takes_ten_million_arms_of_others_in_one_burst_and_loses_none) {
    watchdog guard("a burst at a stuck worker", 60s);
    const std::uint64_t count = scaled(10'000'000);
    runtime home({.workers = 1, .max_timers = count + 10'000});  // And what the threads hold in reserve.
    std::atomic<std::uint64_t> fired{0};
    std::atomic<int> stage{0};
    home.timers().after(0s, [&] {
        stage = 1;
        while (stage != 2) std::this_thread::sleep_for(1ms);
    });
    await_that([&] { return stage == 1; });
    std::array<std::thread, 2> threads;
    for (std::size_t number = 0; number < threads.size(); ++number) {
        threads[number] = std::thread([&, number] {
            for (std::uint64_t each = number; each < count; each += threads.size()) {
                if (each % 4'096 < 2) guard.pat();
                const std::chrono::microseconds delay{each % 1'000};
                home.timers().after(delay, [&] { fired.fetch_add(1, std::memory_order_relaxed); });
            }
        });
    }
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(home.stats().timers.pending, count) << "nothing has been accepted, and nothing was forgotten";
    EXPECT_EQ(home.stats().timers.refused, 0U);
    EXPECT_EQ(fired.load(), 0U);
    stage = 2;
    std::uint64_t seen = 0;
    await_that([&] {
        const std::uint64_t now = fired;
        if (std::exchange(seen, now) != now) guard.pat();
        return seen == count;
    });
    check_ledger_after_shutdown(home);
    EXPECT_EQ(home.stats().timers.fired, count + 1);
    EXPECT_EQ(home.stats().timers.tickets, 0U);
}

TEST(a_stuck_worker, takes_ten_million_arms_of_others_in_waves_that_are_cancelled_before_it_has_seen_them) {
    watchdog guard("arms at a stuck worker", 60s);
    // What a worker has taken back it keeps in reserve: each wave needs room of its own.
    constexpr std::size_t waves = 10;
    const std::size_t wave_size = scaled(1'000'000);
    runtime home({.workers = 1});
    std::uint64_t fired_wanted = 0;
    std::uint64_t armed = 0;
    std::atomic<std::uint64_t> fired{0};
    std::vector<timer_handle> handles(wave_size);
    for (std::size_t wave = 0; wave < waves; ++wave) {
        std::atomic<int> stage{0};
        home.timers().after(0s, [&] {
            stage = 1;
            while (stage != 2) std::this_thread::sleep_for(1ms);
        });
        await_that([&] { return stage == 1; });
        std::array<std::thread, 2> threads;
        for (std::size_t number = 0; number < threads.size(); ++number) {
            threads[number] = std::thread([&, number] {
                for (std::size_t each = number; each < wave_size; each += threads.size()) {
                    if (each % 4'096 < 2) guard.pat();
                    // One in a hundred is to run.
                    const bool shall_run = each % 100 == 0;
                    const auto delay = shall_run ? chime::duration{1ms} : chime::duration{1h};
                    handles[each] = home.timers().after(delay, [&] { fired.fetch_add(1, std::memory_order_relaxed); });
                }
                for (std::size_t each = number; each < wave_size; each += threads.size()) {
                    if (each % 100 == 0) continue;
                    ASSERT_EQ(home.timers().cancel(handles[each]), cancel_result::cancelled);
                }
            });
        }
        for (std::thread& each : threads) each.join();
        armed += wave_size + 1;
        fired_wanted += (wave_size + 99) / 100;
        EXPECT_EQ(home.stats().timers.pending, (wave_size + 99) / 100);
        stage = 2;
        await_that([&] {
            guard.pat();
            return fired == fired_wanted && home.stats().timers.commands >= armed;
        });
    }
    check_ledger_after_shutdown(home);
    EXPECT_EQ(home.stats().timers.armed, armed);
}

task<> count_one(std::atomic<std::uint64_t>& ended) {
    ended.fetch_add(1, std::memory_order_relaxed);
    co_return;
}

TEST(tasks, that_are_spawned_outside_and_end_leave_no_memory_behind_however_many_they_are) {
    watchdog guard("spawning from outside", 60s);
    constexpr std::uint64_t most_at_a_time = 20'000;
    const std::uint64_t count = scaled(6'000'000);
    std::atomic<std::uint64_t> ended{0};
    std::size_t before = 0;
    runtime home({.workers = 2});
    for (std::uint64_t spawned = 0; spawned < count; ++spawned) {
        if (spawned == count / 10) before = resident_bytes();
        if (spawned % 4'096 == 0) guard.pat();
        spawn_detached(home, count_one(ended));
        if (spawned + 1 - ended > most_at_a_time) await_that([&] { return spawned + 1 - ended < most_at_a_time / 2; });
    }
    await_that([&] { return ended == count; });
    if (CHIME_TEST_SCALE == 1) {  // A sanitizer keeps books of its own that grow.
        EXPECT_LT(resident_bytes(), before + (std::size_t{8} << 20U));
    }
    check_ledger_after_shutdown(home);
}

task<> sleep_for_an_hour(std::atomic<std::uint64_t>& asleep, std::atomic<std::uint64_t>& cancelled) {
    asleep.fetch_add(1, std::memory_order_relaxed);
    const wake_reason why = co_await sleep_for(1h);
    if (why == wake_reason::cancelled) cancelled.fetch_add(1, std::memory_order_relaxed);
}

task<> spawn_sleepers(runtime& home, std::uint64_t count, std::atomic<std::uint64_t>& asleep,
                      std::atomic<std::uint64_t>& cancelled) {
    for (std::uint64_t each = 0; each < count; ++each) {
        spawn_detached(home, sleep_for_an_hour(asleep, cancelled));
        if (each % 128 == 0) co_await yield();
    }
}

TEST(a_million_sleepers, are_resumed_by_a_shutdown_within_two_seconds) {
    const watchdog guard("shutdown with a million sleepers", 60s);
    const std::uint64_t count = scaled(1'000'000);
    std::atomic<std::uint64_t> asleep{0};
    std::atomic<std::uint64_t> cancelled{0};
    runtime home({.workers = 2});
    home.block_on(spawn_sleepers(home, count, asleep, cancelled));
    await_that([&] { return asleep == count && home.stats().timers.pending == count; });
    const auto begun = std::chrono::steady_clock::now();
    home.shutdown();
    const auto taken = std::chrono::steady_clock::now() - begun;
    std::cout << count << " sleepers: " << std::chrono::duration_cast<std::chrono::milliseconds>(taken).count()
              << " ms\n";
    EXPECT_LT(taken, 2s);
    EXPECT_EQ(cancelled.load(), count);
    check_ledger_after_shutdown(home);
}

task<> count_up(std::atomic<int>& ran) {
    ran.fetch_add(1, std::memory_order_relaxed);
    co_return;
}

TEST(the_first_burst, wakes_somebody_on_every_fresh_runtime) {
    watchdog guard("first bursts", 20s);
    random_source random(process_seed());
    const std::uint64_t rounds = scaled(std::getenv("CHIME_LONG") != nullptr ? 100'000 : 10'000);
    for (std::uint64_t round = 0; round < rounds; ++round) {
        guard.pat();
        std::atomic<int> ran{0};
        runtime home({.workers = 1 + static_cast<unsigned>(round % 3), .huge_pages = false});
        spin(random.below(100'000));  // Workers may be beginning, looking, or asleep.
        for (int count = 0; count < 8; ++count) {
            spawn_detached(home, count_up(ran));
            home.timers().after(0s, [&] { ran.fetch_add(1, std::memory_order_relaxed); });
        }
        await_that([&] { return ran == 16; });
        if (round % 16 == 0) check_ledger_after_shutdown(home);
    }
}

task<> arm_and_cancel(runtime& home, std::uint64_t count, std::atomic<std::uint64_t>& most_tickets) {
    for (std::uint64_t each = 0; each < count; ++each) {
        const timer_handle made = home.timers().after(1h, [] {});
        if (home.timers().cancel(made) != cancel_result::cancelled) ADD_FAILURE() << "not cancelled";
        if (each % 1'024 == 0) {
            most_tickets = std::max(most_tickets.load(), home.stats().timers.tickets);
            co_await yield();
        }
    }
}

TEST(timers_of_an_hour, armed_and_cancelled_at_full_speed_leave_nothing_behind) {
    watchdog guard("timers that are cancelled at once", 60s);
    runtime home({.workers = 2});
    const std::uint64_t count = scaled(3'000'000);
    std::atomic<std::uint64_t> most_tickets{0};
    const auto work = [&](std::uint64_t times) {
        auto inside = home.spawn(arm_and_cancel(home, times, most_tickets));
        for (std::uint64_t each = 0; each < times; ++each) {
            // A parked worker may not have got to what was cancelled; the cap is far away.
            if (home.timers().cancel(home.timers().after(1h, [] {})) != cancel_result::cancelled) {
                ADD_FAILURE() << "not cancelled";
            }
            if (each % 65'536 == 0) {
                guard.pat();
                most_tickets = std::max(most_tickets.load(), home.stats().timers.tickets);
            }
        }
        inside.wait();
    };
    work(count);
    constexpr std::size_t room_mb = CHIME_TEST_SCALE == 1 ? 16 : 64;  // A sanitizer has books of its own to keep.
    // That was to warm up. A worker that loses its processor for a while makes others take more records, once; what is left
    // behind grows every time.
    bool has_grown = true;
    for (int round = 0; has_grown && round < 3; ++round) {
        const std::size_t before = resident_bytes();
        work(count);
        const std::size_t after = resident_bytes();
        std::cout << "resident " << before / 1'024 << " kB, then " << after / 1'024 << " kB; tickets at most "
                  << most_tickets << '\n';
        has_grown = after >= before + (room_mb << 20U);
    }
    EXPECT_FALSE(has_grown);
    EXPECT_LE(most_tickets.load(), 2 * (4'096 + 8'192));
    EXPECT_EQ(home.stats().timers.pending, 0U);
    check_ledger_after_shutdown(home);
}

}  // namespace
}  // namespace chime::test
