// SPDX-License-Identifier: MIT
//
// The metronome: who is stuck is reported, numbers are handed out, and while all sleep so does it.

#include "runtime/watchdog.hpp"
#include "support/refusal.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// What the hooks were told.
class told {
 public:
    void add(const stuck_worker& report) {
        const std::lock_guard lock(mutex_);
        reports_.push_back(report);
    }
    std::vector<stuck_worker> all() const {
        const std::lock_guard lock(mutex_);
        return reports_;
    }

 private:
    mutable std::mutex mutex_;
    std::vector<stuck_worker> reports_;
};

TEST(the_metronome, moves_the_coarse_time_of_a_worker_that_is_busy) {
    const watchdog guard("coarse time", 30s);
    runtime home({.workers = 1, .metronome = true, .metronome_period = 1ms});
    std::atomic<bool> has_moved{false};
    home.timers().after(0s, [&] {
        const time_point before = this_task::coarse_now();
        EXPECT_LE(before, this_task::now());
        time_point seen = before;
        while (seen < before + 10ms) {  // Only somebody else can move it.
            const time_point next = this_task::coarse_now();
            EXPECT_GE(next, seen) << "it runs back";
            EXPECT_LE(next, this_task::now()) << "it is ahead";
            seen = next;
        }
        has_moved = true;
    });
    await_that([&] { return has_moved.load(); });
    check_ledger_after_shutdown(home);
}

TEST(the_metronome, reports_a_stuck_worker_with_its_number_and_again_when_it_has_taken_twice_as_long) {
    const watchdog guard("a stuck worker", 30s);
    told reports;
    runtime_config config{.workers = 2, .metronome = true, .metronome_period = 1ms, .stuck_after = 50ms};
    config.on_stuck = [&](const stuck_worker& report) { reports.add(report); };
    runtime home(config);
    // In a seat that was somebody else's, so that seat and number are not the same.
    home.retire_worker(0);
    EXPECT_EQ(home.add_worker(), 2U);
    home.retire_worker(1);
    await_that([&] { return home.stats().workers.front().timers.parks != 0; });
    std::atomic<int> stage{0};
    home.timers().after(0s, [&] {
        stage = 1;
        while (stage != 2) std::this_thread::sleep_for(1ms);
    });
    await_that([&] { return stage == 1; });
    home.timers().after(0s, [] {});
    await_that([&] { return !reports.all().empty(); });
    home.timers().after(0s, [] {});
    await_that([&] { return reports.all().size() >= 3; });
    stage = 2;
    const auto counts_anew = [&] {
        const std::vector<stuck_worker> so_far = reports.all();
        return so_far.back().since < so_far[so_far.size() - 2].since;
    };
    while (!counts_anew()) {
        stage = 2;
        home.timers().after(0s, [&] {
            std::this_thread::sleep_for(70ms);
            stage = 3;
        });
        await_that([&] { return stage == 3; });
    }
    check_ledger_after_shutdown(home);

    const std::vector<stuck_worker> all = reports.all();
    EXPECT_EQ(all.front().worker, 2U);
    EXPECT_GE(all.front().since, 50ms);
    EXPECT_GT(all.front().overdue, 0ns) << "also of what another thread has sent to it meanwhile";
    EXPECT_EQ(all.front().overdue_timers, 1U);
    for (std::size_t next : {1U, 2U}) {
        EXPECT_GE(all[next].since, 2 * all[next - 1].since) << "not all the time, however long it takes";
        EXPECT_GT(all[next].overdue, all[next - 1].overdue);
    }
    EXPECT_EQ(all[2].overdue_timers, 2U) << "and of what has come due since";
    EXPECT_GE(all.back().since, 50ms) << "another piece of code counts anew";
    EXPECT_EQ(home.stats().stuck_reports, all.size());
}

TEST(the_metronome, tells_what_is_overdue_by_the_clock_of_the_runtime) {
    const watchdog guard("a stuck worker under virtual time", 30s);
    told reports;
    testing::virtual_clock clock(testing::when_idle::stand_still);
    runtime_config config{.workers = 1, .metronome = true, .metronome_period = 1ms, .stuck_after = 5ms};
    config.clock = &clock;
    config.on_stuck = [&](const stuck_worker& report) { reports.add(report); };
    runtime home(config);
    std::atomic<bool> may_end{false};
    home.timers().after(1s, [] {});
    const auto hold = [&] {
        while (!may_end) std::this_thread::sleep_for(1ms);
    };
    home.timers().after(0s, hold);
    await_that([&] { return !reports.all().empty(); });
    EXPECT_EQ(reports.all().front().overdue, 0ns) << "its clock stands still";
    EXPECT_EQ(reports.all().front().overdue_timers, 0U);
    may_end = true;
    home.shutdown();
    check_ledger_after_shutdown(home);
}

TEST(the_metronome, tells_of_what_is_overdue_since_the_beginning_of_time_as_much_as_can_be_told) {
    const watchdog guard("a stuck worker with an ancient timer", 30s);
    told reports;
    runtime_config config{.workers = 1, .metronome = true, .metronome_period = 1ms, .stuck_after = 20ms};
    config.on_stuck = [&](const stuck_worker& report) { reports.add(report); };
    runtime home(config);
    std::atomic<int> stage{0};
    home.timers().after(0s, [&] {
        stage = 1;
        while (stage != 2) std::this_thread::sleep_for(1ms);
    });
    await_that([&] { return stage == 1; });
    home.timers().at(time_point::min(), [] {});
    await_that([&] { return !reports.all().empty(); });
    EXPECT_EQ(reports.all().front().overdue_timers, 1U);
    EXPECT_EQ(reports.all().front().overdue, std::chrono::nanoseconds::max());
    stage = 2;
    check_ledger_after_shutdown(home);
}

TEST(the_metronome, that_looks_once_in_a_lifetime_does_not_look_all_the_time) {
    const watchdog guard("a metronome with the longest period", 30s);
    runtime home({.workers = 1, .metronome = true, .metronome_period = std::chrono::nanoseconds::max()});
    std::atomic<bool> has_run{false};
    home.timers().after(0s, [&] {
        std::this_thread::sleep_for(100ms);
        has_run = true;
    });
    await_that([&] { return has_run.load(); });
    EXPECT_LT(home.stats().metronome_beats, 20U);
    check_ledger_after_shutdown(home);
}

TEST(the_metronome, counts_a_stuck_worker_also_when_nobody_wants_to_be_told) {
    const watchdog guard("a stuck worker without a hook", 30s);
    runtime home({.workers = 2, .metronome = true, .metronome_period = 1ms, .stuck_after = 20ms});
    std::atomic<bool> may_end{false};
    home.timers().after(0s, [&] {
        while (!may_end) std::this_thread::sleep_for(1ms);
    });
    await_that([&] { return home.stats().stuck_reports != 0; });
    may_end = true;
    check_ledger_after_shutdown(home);
}

TEST(the_metronome, may_not_shut_down_what_it_watches) {
    const watchdog guard("a shutdown by the metronome", 30s);
    std::atomic<runtime*> shown{nullptr};
    std::atomic<int> refused{0};
    runtime_config config{.workers = 1, .metronome = true, .metronome_period = 1ms};
    config.on_metrics = [&](const runtime_stats&) {
        runtime* const home = shown;
        if (home == nullptr) return;
        expect_refused(errc::on_a_worker, [&] { home->shutdown(); });
        ++refused;
    };
    runtime home(config);
    shown = &home;
    const timer_handle repeating = home.timers().every(1ms, missed_ticks::skip, [] {});
    await_that([&] { return refused != 0; });
    home.timers().cancel_and_wait(repeating);
    check_ledger_after_shutdown(home);
}

TEST(the_metronome, does_not_report_many_short_pieces_of_user_code) {
    const watchdog guard("busy, but not stuck", 30s);
    told reports;
    runtime_config config{.workers = 1, .metronome = true, .metronome_period = 1ms, .stuck_after = 150ms};
    config.on_stuck = [&](const stuck_worker& report) { reports.add(report); };
    runtime home(config);
    std::atomic<int> ran{0};
    for (int count = 0; count < 100; ++count) {
        home.timers().after(0s, [&] {
            std::this_thread::sleep_for(4ms);
            ++ran;
        });
    }
    await_that([&] { return ran == 100; });
    EXPECT_TRUE(reports.all().empty());
    check_ledger_after_shutdown(home);
}

TEST(the_metronome, is_silent_while_all_sleep_and_wakes_with_them) {
    const watchdog guard("silence", 30s);
    runtime home({.workers = 2, .metronome = true, .metronome_period = 1ms});
    home.timers().after(1h, [] {});
    // Comes to rest, sooner or later; then nothing moves for 300 ms.
    bool is_silent = false;
    for (int tries = 0; tries < 10 && !is_silent; ++tries) {
        std::this_thread::sleep_for(30ms);
        const runtime_stats before = home.stats();
        std::this_thread::sleep_for(300ms);
        const runtime_stats after = home.stats();
        is_silent = before.metronome_beats == after.metronome_beats && before.timers.turns == after.timers.turns;
    }
    EXPECT_TRUE(is_silent);
    const std::uint64_t before = home.stats().metronome_beats;
    std::atomic<bool> has_run{false};
    home.timers().after(0s, [&] {
        std::this_thread::sleep_for(50ms);
        has_run = true;
    });
    await_that([&] { return has_run.load(); });
    EXPECT_GT(home.stats().metronome_beats, before + 3);
    check_ledger_after_shutdown(home);
}

TEST(the_metronome, hands_out_numbers_while_somebody_is_awake) {
    const watchdog guard("metrics", 30s);
    std::atomic<int> calls{0};
    std::atomic<std::uint64_t> fired{0};
    std::atomic<bool> is_on_a_worker{false};
    runtime* shown = nullptr;
    std::atomic<bool> is_shown{false};
    runtime_config config{.workers = 2, .metronome = true, .metronome_period = 1ms};
    config.on_metrics = [&](const runtime_stats& now) {
        if (!is_shown) return;
        if (shown->is_on_a_worker()) is_on_a_worker = true;
        fired = now.timers.fired;
        ++calls;
    };
    runtime home(config);
    shown = &home;
    is_shown = true;
    const timer_handle repeating =
        home.timers().every(1ms, missed_ticks::skip, [] { std::this_thread::sleep_for(2ms); });
    await_that([&] { return calls > 10 && fired > 3; });
    home.timers().cancel_and_wait(repeating);
    EXPECT_FALSE(is_on_a_worker.load());
    check_ledger_after_shutdown(home);
    const int seen = calls;
    std::this_thread::sleep_for(10ms);
    EXPECT_EQ(calls.load(), seen);
}

TEST(an_idle_runtime, makes_no_turns_however_many_workers_it_has) {
    const watchdog guard("idle workers", 30s);
    runtime home({.workers = 6});
    home.timers().after(10min, [] {});
    EXPECT_EQ(home.block_on(sleep_for(1ms)), wake_reason::elapsed);
    bool is_idle = false;
    for (int tries = 0; tries < 10 && !is_idle; ++tries) {
        std::this_thread::sleep_for(30ms);
        const std::uint64_t before = home.stats().timers.turns;
        std::this_thread::sleep_for(200ms);
        is_idle = home.stats().timers.turns == before;
    }
    EXPECT_TRUE(is_idle);
    check_ledger_after_shutdown(home);
}

}  // namespace
}  // namespace chime::test
