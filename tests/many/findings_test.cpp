// SPDX-License-Identifier: MIT
//
// What once went wrong with many workers, each as small as it can be told.

#include "runtime/small_tasks.hpp"
#include "runtime/watchdog.hpp"
#include "support/random.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

void spin_for(std::chrono::nanoseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {}
}

TEST(many_findings, the_cap_refuses_and_no_more_when_a_worker_has_retired) {
    const watchdog guard("the cap after a retirement", 20s);
    runtime home({.workers = 2, .max_timers = 100});
    home.retire_worker(1);
    std::vector<timer_handle> armed;
    for (int tries = 0; tries < 300; ++tries) {
        if (const auto made = home.timers().try_after(1h, [] {})) armed.push_back(*made);
    }
    EXPECT_LE(armed.size(), 100U);
    EXPECT_GE(armed.size(), 30U);
    EXPECT_EQ(home.stats().timers.refused, 300 - armed.size());
    for (const timer_handle each : armed) EXPECT_EQ(home.timers().cancel(each), cancel_result::cancelled);
    check_ledger_after_shutdown(home);
}

task<> set(std::atomic<bool>& flag) {
    flag = true;
    co_return;
}

task<bool> spawn_and_spin(runtime& home) {
    spin_for(50ms);  // The other worker goes to sleep meanwhile.
    std::atomic<bool> has_run{false};
    const auto inner = home.spawn(set(has_run));
    const auto end = std::chrono::steady_clock::now() + 5s;
    while (!has_run && std::chrono::steady_clock::now() < end) {}
    const bool is_helped = has_run;
    while (!inner.is_done()) co_await sleep_for(1ms);
    co_return is_helped;
}

TEST(many_findings, a_worker_that_sleeps_is_called_for_what_a_busy_one_has_spawned) {
    const watchdog guard("a spawn on a busy worker", 30s);
    runtime home({.workers = 2});
    EXPECT_TRUE(home.block_on(spawn_and_spin(home)));
    check_ledger_after_shutdown(home);
}

task<> sleep_and_count(time_point until, std::atomic<int>& asleep, std::atomic<int>& resumed) {
    ++asleep;
    co_await sleep_until(until);
    ++resumed;
}

task<> spawn_sleepers(runtime& home, time_point until, std::atomic<int>& asleep, std::atomic<int>& resumed) {
    for (int count = 0; count < 8; ++count) spawn_detached(home, sleep_and_count(until, asleep, resumed));
    co_return;
}

TEST(many_findings, sleepers_that_are_due_do_not_wait_for_a_callback_that_takes_long) {
    const watchdog guard("sleepers behind a callback", 30s);
    std::atomic<int> asleep{0};
    std::atomic<int> resumed{0};
    std::atomic<int> stuck_for_nothing{0};
    std::atomic<bool> is_over{false};
    runtime home({.workers = 2, .inline_budget = 0});
    const time_point until = chime::clock::now() + 300ms;
    home.block_on(spawn_sleepers(home, until, asleep, resumed));
    await_that([&] { return asleep == 8; });
    home.timers().at(until + 1us, [&] {
        const auto end = std::chrono::steady_clock::now() + 5s;
        while (resumed != 8 && std::chrono::steady_clock::now() < end) {}
        if (resumed != 8) ++stuck_for_nothing;
        is_over = true;
    });
    await_that([&] { return is_over.load(); });
    EXPECT_EQ(stuck_for_nothing.load(), 0);
    await_that([&] { return resumed == 8; });
    check_ledger_after_shutdown(home);
}

TEST(many_findings, what_a_retiring_worker_had_not_accepted_comes_behind_what_it_had) {
    const watchdog guard("order over a retirement", 30s);
    std::mutex mutex;
    std::vector<int> order;
    std::atomic<int> stage{0};
    runtime home({.workers = 2});
    const time_point deadline = chime::clock::now() + 300ms;
    const auto note = [&](int number) {
        return [&mutex, &order, number] {
            const std::lock_guard lock(mutex);
            order.push_back(number);
        };
    };
    timer_handle first;
    for (int number = 0; number < 10; ++number) first = home.timers().at(deadline, note(number));
    home.timers().after(0s, [&] {  // The same thread, so the same worker.
        stage = 1;
        while (stage != 2) std::this_thread::yield();
    });
    await_that([&] { return stage == 1; });
    for (int number = 10; number < 15; ++number) home.timers().at(deadline, note(number));
    std::thread retiring([&] { home.retire_worker(first.worker_hint()); });
    std::this_thread::sleep_for(20ms);
    stage = 2;
    retiring.join();
    await_that([&] {
        const std::lock_guard lock(mutex);
        return order.size() == 15;
    });
    for (int number = 0; number < 15; ++number) EXPECT_EQ(order[static_cast<std::size_t>(number)], number);
    check_ledger_after_shutdown(home);
}

TEST(many_findings, shutting_down_while_a_worker_retires_resumes_all_of_its_sleepers) {
    watchdog guard("shutdown against retirement", 60s);
    for (int round = 0; round < 6; ++round) {
        guard.pat();
        std::atomic<int> asleep{0};
        std::atomic<int> resumed{0};
        runtime home({.workers = 2});
        {  // Many records for a retiring worker to look at.
            std::vector<timer_handle> all;
            for (std::uint64_t count = 0; count < scaled(200'000); ++count) {
                all.push_back(home.timers().after(1h, [] {}));
            }
            for (const timer_handle each : all) home.timers().cancel(each);
        }
        constexpr int count = 200;
        for (int each = 0; each < count; ++each) {
            spawn_detached(home, sleep_and_count(chime::clock::now() + 1h, asleep, resumed));
        }
        await_that([&] { return asleep == count; });
        std::thread retiring([&] {
            try {
                home.retire_worker(static_cast<worker_id>(round % 2));
            } catch (const std::system_error& error) {
                EXPECT_EQ(error.code(), errc::stopped) << error.what();
            }
        });
        std::this_thread::sleep_for(round * 300us);
        check_ledger_after_shutdown(home);
        retiring.join();
        EXPECT_EQ(resumed.load(), count) << "round " << round;
        EXPECT_EQ(home.stats().timers.destroyed, 0U);
    }
}

task<int> one() {
    co_return 1;
}

TEST(many_findings, block_on_returns_or_is_refused_when_everything_is_shut_down_meanwhile) {
    watchdog guard("block_on against shutdown", 20s);
    const auto end = std::chrono::steady_clock::now() + 2s;
    for (unsigned round = 0; std::chrono::steady_clock::now() < end; ++round) {
        guard.pat();
        runtime home({.workers = 1});
        std::atomic<int> ready{0};
        std::array<std::thread, 2> callers;
        for (std::thread& each : callers) {
            each = std::thread([&] {
                ++ready;
                try {
                    for (;;) EXPECT_EQ(home.block_on(one()), 1);
                } catch (const std::system_error& error) {
                    EXPECT_TRUE(error.code() == errc::stopped || error.code() == errc::cancelled) << error.what();
                }
            });
        }
        await_that([&] { return ready == 2; });
        spin(round * 7 % 5'000);
        check_ledger_after_shutdown(home);
        for (std::thread& each : callers) each.join();
    }
}

task<int> count_starts(std::atomic<int>& started) {
    ++started;
    co_return 7;
}

task<int> block_on_another(runtime& other, std::atomic<int>& started) {
    co_return other.block_on(count_starts(started));
}

TEST(many_findings, block_on_of_another_runtime_is_allowed_on_a_worker) {
    const watchdog guard("block_on of another runtime", 20s);
    std::atomic<int> started{0};
    runtime other({.workers = 1});
    runtime home({.workers = 1});
    EXPECT_EQ(home.block_on(block_on_another(other, started)), 7);
    EXPECT_EQ(started.load(), 1);
    check_ledger_after_shutdown(home);
    check_ledger_after_shutdown(other);
}

/// A closure that takes its time to be moved.
class slow_to_move {
 public:
    slow_to_move(std::atomic<int>& stage, std::atomic<int>& ends) : stage_(&stage), ends_(&ends) {}
    slow_to_move(slow_to_move&& other) noexcept : stage_(other.stage_), ends_(std::exchange(other.ends_, nullptr)) {
        *stage_ = 1;
        while (*stage_ != 2) std::this_thread::yield();
    }
    ~slow_to_move() {
        if (ends_ != nullptr) ++*ends_;
    }
    void operator()() const { ADD_FAILURE() << "ran after the shutdown"; }

 private:
    std::atomic<int>* stage_;
    std::atomic<int>* ends_;
};

TEST(many_findings, what_is_being_armed_during_a_shutdown_is_cancelled_or_refused) {
    const watchdog guard("arming during a shutdown", 20s);
    std::atomic<int> stage{0};
    std::atomic<int> ends{0};
    {
        runtime home({.workers = 2});
        std::thread arming([&] {
            try {
                home.timers().after(1ms, slow_to_move(stage, ends));
            } catch (const std::system_error& error) {
                EXPECT_EQ(error.code(), errc::stopped) << error.what();
            }
        });
        await_that([&] { return stage == 1; });
        home.shutdown();
        stage = 2;
        arming.join();
        EXPECT_EQ(ends.load(), 1);
        check_ledger_after_shutdown(home);
    }
    EXPECT_EQ(ends.load(), 1);
}

task<int> nap_for_hours(testing::virtual_clock& clock) {
    int early = 0;
    for (int naps = 0; naps < 100; ++naps) {
        const time_point deadline = clock.now() + 1h;
        co_await sleep_until(deadline);
        if (clock.now() < deadline) ++early;
    }
    co_return early;
}

TEST(many_findings, virtual_time_jumps_for_several_workers_and_is_never_early) {
    const watchdog guard("virtual time with three workers", 30s);
    testing::virtual_clock clock;
    runtime home({.workers = 3, .clock = &clock});
    auto first = home.spawn(nap_for_hours(clock));
    auto second = home.spawn(nap_for_hours(clock));
    EXPECT_EQ(home.block_on(nap_for_hours(clock)), 0);
    first.wait();
    second.wait();
    EXPECT_EQ(first.take() + second.take(), 0);
    EXPECT_GE(clock.now().time_since_epoch(), 100h);
    check_ledger_after_shutdown(home);
}

task<> nap() {
    co_await sleep_for(1ms);
}

TEST(many_findings, a_new_worker_in_a_used_seat_begins_to_count_at_zero) {
    const watchdog guard("counts of a new worker", 20s);
    runtime home({.workers = 2});
    for (int count = 0; count < 200; ++count) spawn_detached(home, nap());
    await_that([&] { return home.stats().timers.tasks == 0; });
    home.retire_worker(1);
    const worker_id added = home.add_worker();
    EXPECT_EQ(added, 2U);
    const runtime_stats all = home.stats();
    ASSERT_EQ(all.workers.size(), 2U);
    EXPECT_EQ(all.workers[1].worker, added);
    EXPECT_EQ(all.workers[1].timers.armed, 0U);
    EXPECT_EQ(all.workers[1].timers.fired, 0U);
    EXPECT_EQ(all.timers.fired, 200U);
    check_ledger_after_shutdown(home);
}

}  // namespace
}  // namespace chime::test
