// SPDX-License-Identifier: MIT
//
// What a runtime refuses, and how it says so; and what comes too late, or from the wrong thread.

#include "runtime/watchdog.hpp"
#include "support/refusal.hpp"
#include "support/runtime_ledger.hpp"
#include "support/witness.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <sched.h>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// Refused, and the message names the field that is to be changed.
void expect_bad(const runtime_config& config, const std::string& field) {
    EXPECT_NE(config.validate().find("runtime_config::" + field), std::string::npos) << config.validate();
    try {
        const runtime refused(config);
        ADD_FAILURE() << field << " was accepted";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), errc::bad_configuration);
        EXPECT_NE(std::string(error.what()).find(field), std::string::npos) << error.what();
    }
}

TEST(runtime_config, of_no_workers_means_one_for_each_processor) {
    const watchdog guard("workers by default", 20s);
    cpu_set_t usable;
    CPU_ZERO(&usable);
    ASSERT_EQ(::sched_getaffinity(0, sizeof usable, &usable), 0);
    runtime home({.workers = 0});
    EXPECT_EQ(home.stats().workers.size(), static_cast<std::size_t>(CPU_COUNT(&usable)));
    EXPECT_EQ(home.stats().workers_added, home.stats().workers.size());
    check_ledger_after_shutdown(home);
}

TEST(runtime_config, that_makes_no_sense_is_refused_and_says_which_field) {
    constexpr std::size_t absurd = std::numeric_limits<std::size_t>::max();
    EXPECT_EQ(runtime_config{}.validate(), "");
    expect_bad({.workers = 513}, "workers");
    expect_bad({.workers = std::numeric_limits<unsigned>::max()}, "workers");
    expect_bad({.max_timers = 0}, "max_timers");
    expect_bad({.max_timers = absurd}, "max_timers");
    expect_bad({.max_tasks = 0}, "max_tasks");
    expect_bad({.max_tasks = absurd}, "max_tasks");
    expect_bad({.resolution = 0ns}, "resolution");
    expect_bad({.resolution = -1ns}, "resolution");
    expect_bad({.resolution = std::chrono::nanoseconds::max()}, "resolution");
    expect_bad({.slack = -1ns}, "slack");
    expect_bad({.slack = std::chrono::nanoseconds::min()}, "slack");
    expect_bad({.crowd_slack = -1ns}, "crowd_slack");
    expect_bad({.timer_budget = 0}, "timer_budget");
    expect_bad({.timer_budget = absurd}, "timer_budget");
    expect_bad({.task_budget = 0}, "task_budget");
    expect_bad({.task_budget = absurd}, "task_budget");
    expect_bad({.inline_budget = absurd}, "inline_budget");
    expect_bad({.stale_slack = 0}, "stale_slack");
    expect_bad({.stale_slack = absurd}, "stale_slack");
    expect_bad({.scrub_budget = 31}, "scrub_budget");
    expect_bad({.scrub_budget = absurd}, "scrub_budget");
    expect_bad({.on_stuck = [](const stuck_worker&) {}}, "on_stuck");
    expect_bad({.on_metrics = [](const runtime_stats&) {}}, "on_stuck");
    expect_bad({.metronome = true, .metronome_period = 99us}, "metronome_period");
    expect_bad({.metronome = true, .metronome_period = -1ns}, "metronome_period");
    expect_bad({.metronome = true, .stuck_after = 0ns}, "stuck_after");
}

TEST(runtime_config, at_its_limits_is_accepted) {
    const watchdog guard("limits of a configuration", 30s);
    runtime home({.workers = 1,
                  .pin_workers = true,
                  .max_timers = 1,
                  .max_tasks = 1,
                  .resolution = 1ns,
                  .timer_budget = 1,
                  .task_budget = 1,
                  .inline_budget = 0,
                  .stale_slack = 64,
                  .metronome = true,
                  .metronome_period = 100us,
                  .stuck_after = 1ns});
    std::atomic<int> fired{0};
    for (int round = 0; round < 20; ++round) {
        // The only record may be in the reserve of the worker, which is asked for it.
        await_that([&] { return home.timers().try_after(10us, [&] { ++fired; }).has_value(); });
        await_that([&] { return fired == round + 1 && home.stats().timers.pending == 0; });
    }
    check_ledger_after_shutdown(home);
}

TEST(retiring_a_worker, that_is_not_there_or_must_stay_is_refused) {
    const watchdog guard("retiring whom one cannot", 20s);
    runtime home({.workers = 2});
    expect_refused(errc::no_such_worker, [&] { home.retire_worker(2); });
    expect_refused(errc::no_such_worker, [&] { home.retire_worker(std::numeric_limits<worker_id>::max()); });
    home.retire_worker(0);
    expect_refused(errc::no_such_worker, [&] { home.retire_worker(0); });
    expect_refused(errc::last_worker, [&] { home.retire_worker(1); });
    EXPECT_EQ(home.add_worker(), 2U);
    home.retire_worker(1);
    expect_refused(errc::last_worker, [&] { home.retire_worker(2); });
    EXPECT_EQ(home.stats().workers_retired, 2U);
    check_ledger_after_shutdown(home);
}

task<> hold_worker(std::atomic<int>& busy, const std::atomic<bool>& may_end) {
    ++busy;
    while (!may_end) std::this_thread::yield();
    co_return;
}

TEST(retiring_a_worker, that_is_retiring_already_is_refused) {
    const watchdog guard("retiring twice at once", 20s);
    runtime home({.workers = 2});
    std::atomic<int> busy{0};
    std::atomic<bool> may_end{false};
    for (int count = 0; count < 2; ++count) spawn_detached(home, hold_worker(busy, may_end));
    while (busy != 2) std::this_thread::yield();
    // One of them waits for the worker, which is busy; the other one is told so.
    std::atomic<int> refused{0};
    const auto retire = [&] {
        try {
            home.retire_worker(0);
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), errc::no_such_worker) << error.what();
            ++refused;
        }
    };
    std::thread one(retire);
    std::thread other(retire);
    while (refused == 0) std::this_thread::yield();
    may_end = true;
    one.join();
    other.join();
    EXPECT_EQ(refused, 1);
    EXPECT_EQ(home.stats().workers_retired, 1U);
    check_ledger_after_shutdown(home);
}

/// Retires every worker that it can, from wherever it runs.
task<int> retire_everybody(runtime& home, worker_id count) {
    int refused = 0;
    for (worker_id each = 0; each < count; ++each) {
        try {
            home.retire_worker(each);
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), errc::on_a_worker) << error.what();
            ++refused;
        }
    }
    co_return refused;
}

TEST(retiring_a_worker, from_itself_is_refused_and_from_another_one_is_not) {
    const watchdog guard("retiring oneself", 20s);
    runtime home({.workers = 3});
    EXPECT_EQ(home.block_on(retire_everybody(home, 3)), 1);
    EXPECT_EQ(home.stats().workers.size(), 1U);
    EXPECT_EQ(home.stats().workers_retired, 2U);
    check_ledger_after_shutdown(home);
}

task<int> answer() {
    co_return 42;
}

TEST(after_the_shutdown, everything_new_is_refused_and_everything_old_is_gone) {
    const watchdog guard("after the shutdown", 20s);
    runtime home({.workers = 2});
    const timer_handle pending = home.timers().after(1h, [] {});
    const timer_handle repeating = home.timers().every(1h, missed_ticks::skip, [] {});
    home.shutdown();
    constexpr std::string_view over = "the runtime was shut down";
    expect_refused(errc::stopped, over, [&] { static_cast<void>(home.spawn(answer())); });
    expect_refused(errc::stopped, over, [&] { spawn_detached(home, answer()); });
    expect_refused(errc::stopped, over, [&] { static_cast<void>(home.block_on(answer())); });
    expect_refused(errc::stopped, over, [&] { home.timers().after(1s, [] {}); });
    expect_refused(errc::stopped, over, [&] { home.timers().at(chime::clock::now(), [] {}); });
    expect_refused(errc::stopped, over, [&] { home.timers().every(1s, missed_ticks::burst, [] {}); });
    expect_refused(errc::stopped, over, [&] { home.add_worker(); });
    expect_refused(errc::stopped, over, [&] { home.retire_worker(0); });
    witness_report report;
    auto closure = [seen = witness(report)] { static_cast<void>(seen); };
    EXPECT_EQ(home.timers().try_after(1s, std::move(closure)), std::nullopt);
    EXPECT_EQ(report.ends.load(), 0) << "the closure was moved from";
    for (const timer_handle each : {pending, repeating}) {
        EXPECT_EQ(home.timers().cancel(each), cancel_result::gone);
        EXPECT_EQ(home.timers().cancel_and_wait(each), cancel_result::gone);
        EXPECT_FALSE(home.timers().postpone(each, 1s));
    }
    std::ostringstream dump;
    home.dump_pending(dump);
    EXPECT_EQ(dump.str().find("chime runtime "), 0U) << dump.str();
    EXPECT_NE(dump.str().find(": 0 timers, 0 tasks\n"), std::string::npos) << dump.str();
    home.timers().stop();
    check_ledger_after_shutdown(home);
}

task<> go_to(runtime& other) {
    co_await other.get_scheduler().schedule();
}

TEST(a_refusal, calls_a_runtime_a_runtime) {
    const watchdog guard("a refusal", 20s);
    runtime full({.workers = 1, .max_timers = 1, .max_tasks = 1});
    full.timers().at(never, [] {});
    const auto only = full.spawn(sleep_until(never));
    expect_refused(errc::too_many_timers, "the runtime holds as many timers as it may",
                   [&] { full.timers().after(1s, [] {}); });
    expect_refused(errc::too_many_tasks, "this runtime has no place for another task",
                   [&] { spawn_detached(full, answer()); });
    io_context context;
    expect_refused(errc::too_many_tasks, "as many tasks live as the runtime to go to may hold",
                   [&] { block_on(context, go_to(full)); });
    full.timers().stop();
    const char* const stopped = "the timers of this runtime were stopped";
    expect_refused(errc::stopped, stopped, [&] { full.timers().after(1s, [] {}); });
    expect_refused(errc::stopped, stopped, [&] { spawn_detached(full, answer()); });
    expect_refused(errc::stopped, stopped, [&] { block_on(context, go_to(full)); });
    context.timers().stop();
    expect_refused(errc::stopped, "the timers of this context were stopped",
                   [&] { context.timers().after(1s, [] {}); });
}

task<> shut_down_from_a_task(runtime& home) {
    home.shutdown();
    co_return;
}

task<> block_on_itself(runtime& home) {
    EXPECT_TRUE(home.is_on_a_worker());
    static_cast<void>(home.block_on(answer()));
    co_return;
}

TEST(on_a_worker, what_would_wait_for_itself_is_refused) {
    const watchdog guard("waiting for oneself", 20s);
    runtime home({.workers = 2});
    EXPECT_FALSE(home.is_on_a_worker());
    expect_refused(errc::on_a_worker, [&] { home.block_on(shut_down_from_a_task(home)); });
    expect_refused(errc::on_a_worker, [&] { home.block_on(block_on_itself(home)); });
    std::atomic<bool> has_run{false};
    home.timers().after(0s, [&] {
        expect_refused(errc::on_a_worker, [&] { home.shutdown(); });
        expect_refused(errc::on_a_worker, [&] { static_cast<void>(home.block_on(answer())); });
        auto joined = home.spawn(sleep_for(1h));
        expect_refused(errc::on_a_worker, [&] { joined.wait(); });
        joined.cancel();
        has_run = true;
    });
    await_that([&] { return has_run.load(); });
    EXPECT_EQ(home.block_on(answer()), 42);
    check_ledger_after_shutdown(home);
}

TEST(a_handle, of_another_runtime_or_of_none_is_gone) {
    const watchdog guard("foreign handles", 20s);
    runtime first({.workers = 2});
    runtime second({.workers = 2});
    std::vector<timer_handle> own;
    std::vector<timer_handle> others;
    for (int count = 0; count < 100; ++count) {
        own.push_back(first.timers().after(1h, [] {}));
        others.push_back(second.timers().after(1h, [] {}));
    }
    for (timer_handle each : others) {
        EXPECT_EQ(first.timers().cancel(each), cancel_result::gone);
        EXPECT_EQ(first.timers().cancel_and_wait(each), cancel_result::gone);
        EXPECT_FALSE(first.timers().postpone(each, 0s));
        each.runtime = own.front().runtime;
        each.life ^= std::uint64_t{1} << 53U;
        EXPECT_EQ(first.timers().cancel(each), cancel_result::gone);
        each.index = std::numeric_limits<std::uint32_t>::max();
        EXPECT_EQ(first.timers().cancel(each), cancel_result::gone);
        EXPECT_FALSE(first.timers().postpone(each, 0s));
    }
    EXPECT_EQ(first.timers().cancel({}), cancel_result::gone);
    EXPECT_EQ(first.stats().timers.pending, 100U);
    for (const timer_handle each : own) {
        EXPECT_EQ(first.timers().cancel(each), cancel_result::cancelled);
        EXPECT_EQ(first.timers().cancel(each), cancel_result::gone);
    }
    EXPECT_EQ(second.stats().timers.pending, 100U);
    check_ledger_after_shutdown(first);
    check_ledger_after_shutdown(second);
}

TEST(a_function, that_is_empty_and_a_period_of_nothing_are_refused) {
    const watchdog guard("nothing to call", 20s);
    runtime home({.workers = 2});
    expect_refused(errc::empty_function, [&] { home.timers().after(1s, std::function<void()>()); });
    expect_refused(errc::bad_period, [&] { home.timers().every(0s, missed_ticks::skip, [] {}); });
    expect_refused(errc::bad_period, [&] { home.timers().every(-1s, missed_ticks::skip, [] {}); });
    expect_refused(std::errc::invalid_argument, [&] {
        home.timers().after(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN()), [] {});
    });
    expect_refused(errc::empty_task, [&] {
        task<int> moved = answer();
        const task<int> kept = std::move(moved);
        static_cast<void>(home.spawn(std::move(moved)));
    });
    EXPECT_EQ(home.stats().timers.armed, 0U);
    check_ledger_after_shutdown(home);
}

TEST(the_cap_on_timers, is_not_exceeded_by_four_threads_at_once) {
    watchdog guard("the cap from four threads", 30s);
    constexpr std::size_t cap = 1'000;
    runtime home({.workers = 2, .max_timers = cap});
    std::atomic<std::int64_t> held{0};
    std::atomic<std::int64_t> most{0};
    std::atomic<std::uint64_t> refused{0};
    std::barrier all_of_them(4);
    std::vector<std::thread> threads;
    for (int number = 0; number < 4; ++number) {
        threads.emplace_back([&] {
            std::vector<timer_handle> mine;
            for (int round = 0; round < 30; ++round) {
                guard.pat();
                all_of_them.arrive_and_wait();
                for (int count = 0; count < 400; ++count) {
                    const auto made = home.timers().try_after(1h, [] {});
                    if (!made) {
                        ++refused;
                        continue;
                    }
                    const std::int64_t now_held = ++held;
                    std::int64_t seen = most.load();
                    while (seen < now_held && !most.compare_exchange_weak(seen, now_held)) {}
                    mine.push_back(*made);
                }
                all_of_them.arrive_and_wait();
                for (const timer_handle each : mine) {
                    --held;
                    EXPECT_EQ(home.timers().cancel(each), cancel_result::cancelled);
                }
                mine.clear();
            }
        });
    }
    for (std::thread& each : threads) each.join();
    EXPECT_LE(most.load(), static_cast<std::int64_t>(cap));
    EXPECT_GT(most.load(), 400);
    EXPECT_GT(refused.load(), 0U);
    EXPECT_EQ(home.stats().timers.refused, refused.load());
    check_ledger_after_shutdown(home);
}

TEST(the_cap_on_tasks, may_be_one_for_block_on) {
    const watchdog guard("a cap of one task", 20s);
    runtime home({.workers = 2, .max_tasks = 1});
    EXPECT_EQ(home.block_on(answer()), 42);
    check_ledger_after_shutdown(home);
}

TEST(the_cap_on_tasks, refuses_the_next_one_and_gives_its_place_back) {
    const watchdog guard("the cap on tasks", 20s);
    runtime home({.workers = 2, .max_tasks = 50});
    std::vector<join_handle<wake_reason>> all;
    for (int count = 0; count < 200; ++count) {
        try {
            all.push_back(home.spawn(sleep_for(1h)));
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), errc::too_many_tasks) << error.what();
        }
    }
    EXPECT_LE(all.size(), 50U);
    EXPECT_GE(all.size(), 10U);
    for (auto& each : all) {
        each.cancel();
        each.wait();
        EXPECT_EQ(each.take(), wake_reason::cancelled);
    }
    await_that([&] { return home.stats().timers.tasks == 0; });
    await_that([&] {  // Free slots may be in the reserves of the workers, which are asked for them.
        try {
            return home.block_on(answer()) == 42;
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), errc::too_many_tasks) << error.what();
            return false;
        }
    });
    check_ledger_after_shutdown(home);
}

}  // namespace
}  // namespace chime::test
