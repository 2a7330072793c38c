// SPDX-License-Identifier: MIT
//
// Workers that come and go: what they had goes on elsewhere, in time and in order.

#include "runtime/watchdog.hpp"
#include "support/random.hpp"
#include "support/refusal.hpp"
#include "support/runtime_ledger.hpp"
#include "support/witness.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

std::set<worker_id> workers_of(const runtime& home) {
    std::set<worker_id> there;
    for (const worker_stats& each : home.stats().workers) there.insert(each.worker);
    return there;
}

/// When things happened, compared with when they should have.
struct punctuality {
    std::atomic<int> happened{0};
    std::atomic<int> early{0};
    std::atomic<std::int64_t> latest_ns{0};

    void note(time_point deadline) {
        const std::int64_t late_ns = (chime::clock::now() - deadline).count();
        if (late_ns < 0) ++early;
        std::int64_t seen = latest_ns.load();
        while (seen < late_ns && !latest_ns.compare_exchange_weak(seen, late_ns)) {}
        ++happened;
    }
};

task<> sleep_and_note(time_point deadline, punctuality& its, std::atomic<int>& asleep) {
    ++asleep;
    co_await sleep_until(deadline);
    its.note(deadline);
}

TEST(a_worker_that_retires, leaves_timers_and_sleepers_that_keep_their_time) {
    const watchdog guard("retirement with timers", 30s);
    runtime home({.workers = 3});
    punctuality its;
    std::atomic<int> asleep{0};
    const time_point base = chime::clock::now() + 80ms;
    constexpr int count = 500;
    for (int number = 0; number < count; ++number) {
        const time_point deadline = base + std::chrono::microseconds{number * 13 % 20'000};
        spawn_detached(home, sleep_and_note(deadline, its, asleep));
    }
    std::vector<std::thread> threads;
    for (int number = 0; number < 3; ++number) {  // Each thread's timers are with another worker.
        threads.emplace_back([&] {
            for (int each = 0; each < count; ++each) {
                const time_point deadline = base + std::chrono::microseconds{each * 17 % 20'000};
                home.timers().at(deadline, [&its, deadline] { its.note(deadline); });
            }
        });
    }
    for (std::thread& each : threads) each.join();
    await_that([&] { return asleep == count; });
    home.retire_worker(0);
    home.retire_worker(2);
    EXPECT_EQ(workers_of(home), std::set<worker_id>{1});
    EXPECT_EQ(home.add_worker(), 3U);
    home.retire_worker(1);
    EXPECT_EQ(workers_of(home), std::set<worker_id>{3});
    await_that([&] { return its.happened == 4 * count; });
    EXPECT_EQ(its.early.load(), 0);
    EXPECT_LT(its.latest_ns.load(), 2'000'000'000);
    EXPECT_GT(home.stats().timers.migrated, 0U);
    check_ledger_after_shutdown(home);
    EXPECT_EQ(its.happened.load(), 4 * count);
}

TEST(a_worker_that_retires, leaves_handles_that_still_cancel_and_postpone) {
    const watchdog guard("handles over a retirement", 30s);
    runtime home({.workers = 2});
    witness_report report;
    std::atomic<int> fired{0};
    std::vector<timer_handle> handles;
    for (int number = 0; number < 2; ++number) {
        std::thread([&] {
            for (int count = 0; count < 200; ++count) {
                handles.push_back(home.timers().after(1h, [&fired, seen = witness(report)] { ++fired; }));
            }
        }).join();
    }
    for (int round = 0; round < 6; ++round) {
        const worker_id oldest = *workers_of(home).begin();
        home.add_worker();
        home.retire_worker(oldest);
    }
    for (std::size_t each = 0; each < handles.size(); ++each) {
        if (each % 2 == 0) {
            EXPECT_EQ(home.timers().cancel(handles[each]), cancel_result::cancelled);
        } else {
            EXPECT_TRUE(home.timers().postpone(handles[each], 1ms));
        }
    }
    await_that([&] { return fired == 200; });
    EXPECT_EQ(home.stats().timers.postponed, 200U);
    check_ledger_after_shutdown(home);
    EXPECT_EQ(report.ends.load(), 400);
}

TEST(a_worker_that_retires, keeps_a_repeating_timer_in_its_rhythm) {
    const watchdog guard("every over retirements", 30s);
    runtime home({.workers = 2});
    std::atomic<int> ticks{0};
    std::atomic<int> early{0};
    const time_point begun = chime::clock::now();
    const timer_handle which = home.timers().every(2ms, missed_ticks::burst, [&] {
        if (chime::clock::now() < begun + ++ticks * 2ms) ++early;
    });
    while (ticks < 50) {
        const worker_id oldest = *workers_of(home).begin();
        home.add_worker();
        home.retire_worker(oldest);
        std::this_thread::sleep_for(1ms);
    }
    home.timers().cancel_and_wait(which);
    EXPECT_EQ(early.load(), 0);
    check_ledger_after_shutdown(home);
}

TEST(a_worker_that_retires, waits_for_the_piece_of_user_code_that_it_is_in) {
    const watchdog guard("retirement of a busy worker", 30s);
    runtime home({.workers = 2});
    std::atomic<bool> has_begun{false};
    std::atomic<bool> has_ended{false};
    const timer_handle busy = home.timers().after(0s, [&] {
        has_begun = true;
        std::this_thread::sleep_for(20ms);
        has_ended = true;
    });
    await_that([&] { return has_begun.load(); });
    home.retire_worker(busy.worker_hint());
    EXPECT_TRUE(has_ended.load());
    check_ledger_after_shutdown(home);
}

TEST(workers, may_retire_several_at_once_and_one_stays) {
    watchdog guard("all but one retire at once", 30s);
    for (int round = 0; round < 20; ++round) {
        guard.pat();
        constexpr unsigned count = 6;
        runtime home({.workers = count});
        punctuality its;
        std::atomic<int> asleep{0};
        const time_point deadline = chime::clock::now() + 5ms;
        for (int each = 0; each < 100; ++each) {
            spawn_detached(home, sleep_and_note(deadline, its, asleep));
            home.timers().at(deadline, [&its, deadline] { its.note(deadline); });
        }
        std::atomic<int> retired{0};
        std::atomic<int> refused{0};
        std::vector<std::thread> threads;
        for (worker_id each = 0; each < count; ++each) {
            threads.emplace_back([&, each] {
                try {
                    home.retire_worker(each);
                    ++retired;
                } catch (const std::system_error& error) {
                    EXPECT_EQ(error.code(), errc::last_worker) << error.what();
                    ++refused;
                }
            });
        }
        for (std::thread& each : threads) each.join();
        EXPECT_EQ(retired.load(), static_cast<int>(count) - 1);
        EXPECT_EQ(refused.load(), 1);
        EXPECT_EQ(home.stats().workers.size(), 1U);
        await_that([&] { return its.happened == 200; });
        EXPECT_EQ(its.early.load(), 0);
        check_ledger_after_shutdown(home);
    }
}

TEST(workers, come_and_go_two_hundred_times_and_no_number_is_used_again) {
    watchdog guard("two hundred rounds", 30s);
    runtime home({.workers = 1});
    std::atomic<int> fired{0};
    int armed = 0;
    for (worker_id round = 0; round < 200; ++round) {
        guard.pat();
        EXPECT_EQ(home.add_worker(), round + 1);
        if (round % 3 == 0) {
            home.timers().after(std::chrono::microseconds{round * 10}, [&] { ++fired; });
            ++armed;
        }
        home.retire_worker(round % 2 == 0 ? round + 1 : *workers_of(home).begin());
        if (round % 2 == 1) expect_refused(errc::no_such_worker, [&] { home.retire_worker(0); });
        EXPECT_EQ(home.stats().workers.size(), 1U);
    }
    await_that([&] { return fired == armed; });
    EXPECT_EQ(home.stats().workers_added, 201U);
    EXPECT_EQ(home.stats().workers_retired, 200U);
    check_ledger_after_shutdown(home);
}

task<int> add_and_retire_from_a_task(runtime& home, int rounds) {
    int done = 0;
    for (int round = 0; round < rounds; ++round) {
        const worker_id added = home.add_worker();
        try {
            home.retire_worker(added);
            ++done;
        } catch (const std::system_error& error) {
            EXPECT_TRUE(error.code() == errc::on_a_worker) << error.what();
        }
        co_await yield();
    }
    co_return done;
}

TEST(workers, may_be_added_and_retired_by_tasks) {
    const watchdog guard("retirement from tasks", 30s);
    runtime home({.workers = 2});
    auto other = home.spawn(add_and_retire_from_a_task(home, 20));
    const int done = home.block_on(add_and_retire_from_a_task(home, 20));
    other.wait();
    EXPECT_EQ(home.stats().workers_retired, static_cast<std::uint64_t>(done + other.take()));
    check_ledger_after_shutdown(home);
}

TEST(workers, are_512_at_most) {
    const watchdog guard("too many workers", 60s);
    runtime home({.workers = 2});
    std::size_t there = 2;
    try {
        for (; there < 600; ++there) home.add_worker();
        ADD_FAILURE() << "600 workers";
    } catch (const std::system_error& error) {
        EXPECT_TRUE(error.code() == errc::too_many_workers || there < 512) << error.what();
    }
    EXPECT_LE(there, 512U);
    EXPECT_EQ(home.stats().workers.size(), there);
    home.retire_worker(1);
    EXPECT_EQ(home.add_worker(), there);
    EXPECT_EQ(home.block_on(sleep_for(1ms)), wake_reason::elapsed);
    check_ledger_after_shutdown(home);
}

}  // namespace
}  // namespace chime::test
