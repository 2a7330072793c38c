// SPDX-License-Identifier: MIT
//
// What a runtime counts beside its timers, for all workers together and for each; and on which processors they run.

#include "runtime/watchdog.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// Returns when no worker has made a turn for a while, because all sleep.
void wait_until_parked(const runtime& home) {
    std::uint64_t seen = 0;
    for (int quiet = 0; quiet < 10; ++quiet) {
        const timer_stats sums = home.stats().timers;
        if (sums.parks == 0 || sums.turns != seen) quiet = 0;
        seen = sums.turns;
        std::this_thread::sleep_for(2ms);
    }
}

TEST(longest_turn, of_a_runtime_is_that_of_the_worker_that_took_longest) {
    const watchdog guard("the longest turn", 30s);
    for (const bool is_timed : {true, false}) {
        testing::virtual_clock clock(testing::when_idle::stand_still);
        runtime home({.workers = 2, .time_callbacks = is_timed, .clock = &clock});
        std::atomic<int> ran{0};
        for (const auto taken : {3s, 4s}) {
            home.timers().after(1min, [&, taken] {
                clock.advance(taken);
                ++ran;
            });
        }
        wait_until_parked(home);
        clock.advance(1min);
        await_that([&] { return ran == 2; });
        wait_until_parked(home);
        clock.advance(1s);  // A short turn after the long one.
        wait_until_parked(home);
        const runtime_stats all = home.stats();
        // One thread has armed both, so one worker has both.
        EXPECT_EQ(all.timers.longest_callback, is_timed ? 4s : 0s);
        EXPECT_EQ(all.timers.longest_turn, is_timed ? 7s : 0s);
        std::chrono::nanoseconds longest{};
        for (const worker_stats& each : all.workers) longest = std::max(longest, each.timers.longest_turn);
        EXPECT_EQ(longest, all.timers.longest_turn);
        check_ledger_after_shutdown(home);
    }
}

task<> sleep_until_then(time_point then, std::atomic<int>& asleep, std::atomic<int>& woken) {
    ++asleep;
    co_await sleep_until(then);
    ++woken;
}

/// Ten sleepers of one worker that are due at once: what was counted while they were resumed.
timer_stats after_ten_sleepers(runtime_config config) {
    testing::virtual_clock clock(testing::when_idle::stand_still);
    config.workers = 1;
    config.clock = &clock;
    runtime home(config);
    std::atomic<int> asleep{0};
    std::atomic<int> woken{0};
    for (int each = 0; each < 10; ++each) spawn_detached(home, sleep_until_then(clock.now() + 1h, asleep, woken));
    await_that([&] { return asleep == 10 && home.stats().timers.pending == 10; });
    wait_until_parked(home);
    const timer_stats before = home.stats().timers;
    EXPECT_EQ(before.resumed_queued, 10U) << "every task begins in the queue";
    clock.advance(1h);
    await_that([&] { return woken == 10; });
    check_ledger_after_shutdown(home);
    timer_stats after = home.stats().timers;
    EXPECT_EQ(after.resumed_inline + after.resumed_queued, after.resumed());
    return after -= before;
}

TEST(resumed_queued, of_a_runtime_counts_sleepers_beyond_the_budget) {
    const watchdog guard("sleepers that are queued", 30s);
    EXPECT_EQ(after_ten_sleepers({}).resumed_inline, 10U);
    EXPECT_EQ(after_ten_sleepers({}).resumed_queued, 0U);
    EXPECT_EQ(after_ten_sleepers({.inline_budget = 3}).resumed_inline, 3U);
    EXPECT_EQ(after_ten_sleepers({.inline_budget = 3}).resumed_queued, 7U);
    EXPECT_EQ(after_ten_sleepers({.inline_resumption = false}).resumed_inline, 0U);
    EXPECT_EQ(after_ten_sleepers({.inline_resumption = false}).resumed_queued, 10U);
}

task<> arm_and_cancel(runtime& home, std::size_t count) {
    std::vector<timer_handle> all(count);
    for (timer_handle& each : all) each = home.timers().after(1h, [] {});
    co_await yield();
    for (const timer_handle each : all) EXPECT_EQ(home.timers().cancel(each), cancel_result::cancelled);
    co_await yield();
}

TEST(scrubbed_and_cascaded, of_a_runtime_are_the_sums_of_its_workers) {
    const watchdog guard("tickets of cancelled timers", 30s);
    testing::virtual_clock clock(testing::when_idle::stand_still);
    runtime home({.workers = 1, .stale_slack = 64, .clock = &clock});
    home.block_on(arm_and_cancel(home, 2'000));
    wait_until_parked(home);
    const timer_stats cancelled = home.stats().timers;
    EXPECT_GE(cancelled.scrubbed, 2'000U - 64);
    EXPECT_EQ(cancelled.scrubbed + cancelled.stale_dropped + cancelled.stale_tickets, 2'000U);
    EXPECT_EQ(cancelled.cascaded, 0U);
    EXPECT_EQ(home.stats().workers.front().timers.scrubbed, cancelled.scrubbed);
    std::atomic<int> fired{0};
    for (int each = 0; each < 10; ++each) home.timers().after(2h, [&] { ++fired; });
    wait_until_parked(home);
    clock.advance(2h);
    await_that([&] { return fired == 10; });
    wait_until_parked(home);
    EXPECT_GE(home.stats().timers.cascaded, 10U);
    EXPECT_EQ(home.stats().workers.front().timers.cascaded, home.stats().timers.cascaded);
    // Another worker takes over; what was counted stays counted.
    const timer_stats before = home.stats().timers;
    home.add_worker();
    home.retire_worker(0);
    EXPECT_EQ(home.stats().timers.scrubbed + home.stats().timers.stale_dropped, before.scrubbed + before.stale_dropped);
    EXPECT_EQ(home.stats().timers.cascaded, before.cascaded);
    EXPECT_EQ(home.stats().workers.front().timers.scrubbed, 0U);
    // Nor does it count for whoever has the seat next.
    home.add_worker();
    EXPECT_EQ(home.stats().workers.back().timers.scrubbed, 0U);
    EXPECT_EQ(home.stats().workers.back().timers.cascaded, 0U);
    check_ledger_after_shutdown(home);
}

TEST(idle_wakeups, of_a_runtime_count_a_worker_that_wakes_up_for_a_timer_that_was_postponed_meanwhile) {
    const watchdog guard("waking up for nothing", 30s);
    testing::virtual_clock clock(testing::when_idle::stand_still);
    runtime home({.workers = 1, .clock = &clock});  // A clock of this kind wakes everybody.
    std::atomic<bool> has_fired{false};
    const timer_handle which = home.timers().after(1h, [&] { has_fired = true; });
    wait_until_parked(home);
    const timer_stats before = home.stats().timers;
    ASSERT_TRUE(home.timers().postpone(which, 2h));  // Later: that is no reason to wake anybody.
    clock.advance(1h);
    await_that([&] { return home.stats().timers.turns != before.turns; });
    wait_until_parked(home);
    EXPECT_EQ(home.stats().timers.idle_wakeups, before.idle_wakeups + 1);
    EXPECT_EQ(home.stats().timers.wakeups, before.wakeups + 1) << "by the clock";
    clock.advance(1h);
    await_that([&] { return has_fired.load(); });
    wait_until_parked(home);
    EXPECT_EQ(home.stats().timers.idle_wakeups, before.idle_wakeups + 1) << "what fires is not nothing";
    check_ledger_after_shutdown(home);
}

// --- Processors.

std::vector<int> processors_of_this_thread() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    EXPECT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
    std::vector<int> processors;
    for (int each = 0; each < CPU_SETSIZE; ++each) {
        if (CPU_ISSET(static_cast<std::size_t>(each), &allowed)) processors.push_back(each);
    }
    return processors;
}

bool may_pin() {
    bool may = false;
    std::thread([&] {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<std::size_t>(processors_of_this_thread().front()), &one);
        may = ::sched_setaffinity(0, sizeof one, &one) == 0;
    }).join();
    return may;
}

/// Where the workers may run, by the names of their threads.
class places {
 public:
    void note() {
        std::array<char, 16> name{};
        EXPECT_EQ(::pthread_getname_np(::pthread_self(), name.data(), name.size()), 0);
        const std::lock_guard lock(mutex_);
        all_[name.data()] = processors_of_this_thread();
    }
    [[nodiscard]] std::size_t count() const {
        const std::lock_guard lock(mutex_);
        return all_.size();
    }
    [[nodiscard]] std::vector<int> of(const std::string& name) const {
        const std::lock_guard lock(mutex_);
        const auto found = all_.find(name);
        return found == all_.end() ? std::vector<int>{} : found->second;
    }

 private:
    mutable std::mutex mutex_;
    std::map<std::string, std::vector<int>> all_;
};

/// Keeps its worker until all of them have one like it.
task<> note_and_hold(places& seen, std::size_t workers) {
    seen.note();
    while (seen.count() != workers) std::this_thread::yield();
    co_return;
}

TEST(pin_workers, keeps_each_worker_on_one_processor_in_turn) {
    const watchdog guard("pinned workers", 30s);
    if (!may_pin()) GTEST_SKIP() << "the system does not let a thread choose its processor";
    const std::vector<int> usable = processors_of_this_thread();
    const std::size_t workers = usable.size() + 1;
    for (const bool is_pinned : {true, false}) {
        runtime home({.workers = static_cast<unsigned>(workers), .pin_workers = is_pinned});
        places seen;
        for (std::size_t each = 0; each < workers; ++each) spawn_detached(home, note_and_hold(seen, workers));
        await_that([&] { return home.stats().timers.tasks == 0; });
        for (std::size_t each = 0; each < workers; ++each) {
            const std::vector<int> wanted = is_pinned ? std::vector{usable[each % usable.size()]} : usable;
            EXPECT_EQ(seen.of("chime-" + std::to_string(each)), wanted) << each;
        }
        EXPECT_EQ(processors_of_this_thread(), usable) << "who makes the runtime stays where he was";
        // The next one has the next number.
        home.add_worker();
        for (std::size_t each = 0; each < workers; ++each) home.retire_worker(each);
        places later;
        home.block_on(note_and_hold(later, 1));
        EXPECT_EQ(later.of("chime-" + std::to_string(workers)),
                  is_pinned ? std::vector{usable[workers % usable.size()]} : usable);
        check_ledger_after_shutdown(home);
    }
}

TEST(pin_workers, also_when_a_worker_adds_another_gives_it_a_processor_of_its_own) {
    const watchdog guard("pinned workers that add others", 30s);
    if (!may_pin()) GTEST_SKIP() << "the system does not let a thread choose its processor";
    const std::vector<int> usable = processors_of_this_thread();
    runtime home({.workers = 1, .pin_workers = true});
    const auto add = [&]() -> task<> {
        home.add_worker();
        co_return;
    };
    home.block_on(add());
    home.retire_worker(0);
    places seen;
    home.block_on(note_and_hold(seen, 1));
    EXPECT_EQ(seen.of("chime-1"), std::vector{usable[1 % usable.size()]});
    check_ledger_after_shutdown(home);
}

}  // namespace
}  // namespace chime::test
