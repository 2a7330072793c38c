// SPDX-License-Identifier: MIT
//
// How a runtime ends: what becomes of sleepers, of tasks that do not want to end, of closures; in a forked child; and
// when it ends in the wrong place.

#include "runtime/watchdog.hpp"
#include "support/runtime_ledger.hpp"
#include "support/witness.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// What tasks have noted about their ends.
struct notes {
    std::atomic<int> asleep{0};
    std::atomic<int> elapsed{0};
    std::atomic<int> cancelled{0};
    std::atomic<int> went_on{0};
    witness_report frames;
};

task<> sleep_once(notes& its, duration delay) {
    const witness frame(its.frames);
    ++its.asleep;
    const wake_reason why = co_await sleep_for(delay);
    ++(why == wake_reason::elapsed ? its.elapsed : its.cancelled);
}

task<> sleep_twice(notes& its) {
    const witness frame(its.frames);
    ++its.asleep;
    const wake_reason why = co_await sleep_for(1h);
    ++(why == wake_reason::elapsed ? its.elapsed : its.cancelled);
    co_await sleep_for(0s);
    ++its.went_on;
}

TEST(shutdown, resumes_every_sleeper_once_with_cancelled) {
    const watchdog guard("shutdown with sleepers", 30s);
    for (const unsigned workers : {1U, 2U, 5U}) {
        notes its;
        runtime home({.workers = workers});
        constexpr int count = 3'000;
        for (int each = 0; each < count; ++each) spawn_detached(home, sleep_once(its, 1h));
        await_that([&] { return its.asleep == count; });
        check_ledger_after_shutdown(home);
        EXPECT_EQ(its.cancelled.load(), count);
        EXPECT_EQ(its.elapsed.load(), 0);
        EXPECT_EQ(its.frames.ends.load(), count);
        EXPECT_EQ(home.stats().timers.resumed_by_shutdown, static_cast<std::uint64_t>(count));
        EXPECT_EQ(home.stats().timers.destroyed, 0U);
    }
}

TEST(shutdown, destroys_a_task_that_sleeps_again_where_it_stands) {
    const watchdog guard("shutdown with tasks that sleep again", 30s);
    notes its;
    runtime home({.workers = 3});
    for (int each = 0; each < 500; ++each) spawn_detached(home, sleep_twice(its));
    await_that([&] { return its.asleep == 500; });
    check_ledger_after_shutdown(home);
    EXPECT_EQ(its.cancelled.load(), 500);
    EXPECT_EQ(its.went_on.load(), 0);
    EXPECT_EQ(its.frames.ends.load(), 500);
}

task<> wait_for_another(notes& its, join_handle<void> other) {
    const witness frame(its.frames);
    ++its.asleep;
    co_await other;
    ++its.went_on;
}

TEST(shutdown, lets_those_go_on_who_wait_for_a_sleeper_that_ends) {
    const watchdog guard("shutdown with joins", 30s);
    notes its;
    runtime home({.workers = 2});
    for (int each = 0; each < 200; ++each) {
        spawn_detached(home, wait_for_another(its, home.spawn(sleep_once(its, 1h))));
    }
    await_that([&] { return its.asleep == 400; });
    check_ledger_after_shutdown(home);
    EXPECT_EQ(its.cancelled.load(), 200);
    EXPECT_EQ(its.went_on.load(), 200);
    EXPECT_EQ(its.frames.ends.load(), 400);
}

TEST(shutdown, destroys_a_task_that_waits_for_something_that_never_comes) {
    const watchdog guard("shutdown with a join for ever", 30s);
    notes its;
    notes others;
    runtime other({.workers = 1});
    {
        runtime home({.workers = 2});
        for (int each = 0; each < 50; ++each) {
            spawn_detached(home, wait_for_another(its, other.spawn(sleep_once(others, 1h))));
        }
        await_that([&] { return its.asleep == 50 && others.asleep == 50; });
        check_ledger_after_shutdown(home);
        EXPECT_EQ(home.stats().timers.destroyed, 50U);
    }
    EXPECT_EQ(its.went_on.load(), 0);
    EXPECT_EQ(its.frames.ends.load(), 50);
    EXPECT_EQ(others.frames.ends.load(), 0);
    check_ledger_after_shutdown(other);
    EXPECT_EQ(others.cancelled.load(), 50);
}

TEST(shutdown, the_second_time_does_nothing_and_two_at_once_both_return) {
    watchdog guard("shutdown twice", 30s);
    for (int round = 0; round < 50; ++round) {
        guard.pat();
        notes its;
        runtime home({.workers = 2});
        for (int each = 0; each < 20; ++each) spawn_detached(home, sleep_once(its, 1h));
        await_that([&] { return its.asleep == 20; });
        std::thread another([&] { home.shutdown(); });
        home.shutdown();
        another.join();
        home.shutdown();
        EXPECT_EQ(its.cancelled.load(), 20);
        check_ledger_after_shutdown(home);
    }
}

TEST(shutdown, destroys_pending_closures_once_without_running_them) {
    const watchdog guard("shutdown with closures", 30s);
    witness_report report;
    {
        runtime home({.workers = 3});
        for (int each = 0; each < 300; ++each) {
            home.timers().after(1h, [seen = witness(report)] { FAIL() << "ran before its time"; });
            home.timers().every(1h, missed_ticks::skip, [seen = witness(report)] { FAIL() << "ran before its time"; });
        }
        check_ledger_after_shutdown(home);
        EXPECT_EQ(report.ends.load(), 600);
        EXPECT_EQ(home.stats().timers.cancelled, 600U);
    }
    EXPECT_EQ(report.ends.load(), 600);
}

TEST(shutdown, waits_for_user_code_that_runs) {
    const watchdog guard("shutdown against a callback", 30s);
    std::atomic<bool> has_begun{false};
    std::atomic<bool> has_ended{false};
    runtime home({.workers = 2});
    home.timers().after(0s, [&] {
        has_begun = true;
        std::this_thread::sleep_for(30ms);
        has_ended = true;
    });
    await_that([&] { return has_begun.load(); });
    home.shutdown();
    EXPECT_TRUE(has_ended.load());
    check_ledger_after_shutdown(home);
}

task<int> spawn_until_refused(runtime& home, notes& its) {
    int spawned = 0;
    for (;;) {
        try {
            spawn_detached(home, sleep_once(its, 1h));
            ++spawned;
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), errc::stopped) << error.what();
            co_return spawned;
        }
        co_await yield();
    }
}

TEST(shutdown, against_spawns_refuses_them_or_sees_them_through) {
    watchdog guard("shutdown against spawns", 30s);
    for (int round = 0; round < 30; ++round) {
        guard.pat();
        notes its;
        runtime home({.workers = 2});
        auto spawning = home.spawn(spawn_until_refused(home, its));
        std::this_thread::sleep_for(round * 50us);
        check_ledger_after_shutdown(home);
        ASSERT_TRUE(spawning.is_done());
        EXPECT_EQ(its.frames.ends.load(), spawning.take());
    }
}

TEST(a_runtime, that_is_destroyed_ends_everything_by_itself) {
    const watchdog guard("destroying without shutdown", 30s);
    notes its;
    witness_report closures;
    std::optional<join_handle<void>> outlives;
    {
        runtime home({.workers = 2});
        outlives = home.spawn(sleep_twice(its));
        home.timers().after(1h, [seen = witness(closures)] {});
        await_that([&] { return its.asleep == 1; });
        check_ledger_at_rest(home);
    }
    EXPECT_EQ(its.frames.ends.load(), 1);
    EXPECT_EQ(closures.ends.load(), 1);
    EXPECT_TRUE(outlives->is_done());
    EXPECT_FALSE(outlives->cancel());
    EXPECT_THROW(outlives->take(), std::system_error);
}

/// Waits for a child for ten seconds at most; answers its status.
int status_of(pid_t child) {
    int status = 0;
    for (int waits = 0; waits < 1'000; ++waits) {
        if (::waitpid(child, &status, WNOHANG) == child) return status;
        std::this_thread::sleep_for(10ms);
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return status;
}

TEST(a_forked_child, may_destroy_the_runtime_while_the_parent_goes_on) {
    const watchdog guard("fork", 60s);
    notes its;
    auto home = std::make_unique<runtime>(runtime_config{.workers = 2, .metronome = true});
    std::atomic<int> beats{0};
    home->timers().every(1ms, missed_ticks::skip, [&] { ++beats; });
    for (int each = 0; each < 20; ++each) spawn_detached(*home, sleep_once(its, 1h));
    await_that([&] { return its.asleep == 20 && beats > 3; });
    const pid_t child = ::fork();
    if (child == 0) {
        home.reset();
        ::_exit(its.frames.ends.load() == 0 ? 17 : 18);
    }
    ASSERT_GT(child, 0);
    const int status = status_of(child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 17);
    const int before = beats;
    await_that([&] { return beats > before + 3; });
    check_ledger_after_shutdown(*home);
    EXPECT_EQ(its.cancelled.load(), 20);
}

#if defined(__has_feature)
constexpr bool threads_are_watched = __has_feature(thread_sanitizer);
#else
constexpr bool threads_are_watched = false;
#endif

TEST(a_forked_child, has_no_thread_that_counts_as_a_worker) {
    if (threads_are_watched) GTEST_SKIP() << "the thread sanitizer lets a child start no threads";
    const watchdog guard("fork", 60s);
    runtime home({.workers = 3});
    const pid_t child = ::fork();
    if (child == 0) {
        std::atomic<int> mistaken{0};
        std::vector<std::thread> threads;  // Where the workers are in the parent.
        for (int each = 0; each < 6; ++each) {
            threads.emplace_back([&] { mistaken += home.is_on_a_worker() ? 1 : 0; });
        }
        for (std::thread& each : threads) each.join();
        ::_exit(17 + mistaken);
    }
    ASSERT_GT(child, 0);
    const int status = status_of(child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 17);
}

/// The system gives a new thread the memory of the one that ended last, and that was the metronome.
TEST(a_thread_where_the_metronome_was, is_not_taken_for_it) {
    auto home = std::make_unique<runtime>(runtime_config{.workers = 1, .metronome = true});
    home->shutdown();
    std::thread([&] { EXPECT_NO_THROW(home->shutdown()); }).join();
    auto another = std::make_unique<runtime>(runtime_config{.workers = 1, .metronome = true});
    another->shutdown();
    std::thread([&] { another.reset(); }).join();
}

/// What became of it: the code of the error with which it was refused.
template <class Call>
bool is_refused_as_stopped(Call call) {
    try {
        call();
    } catch (const std::system_error& error) {
        return error.code() == errc::stopped;
    }
    return false;
}

TEST(a_forked_child, is_refused_what_only_the_workers_of_its_parent_could_do) {
    const watchdog guard("fork", 60s);
    notes its;
    runtime home({.workers = 2});
    const pid_t child = ::fork();
    if (child == 0) {
        const bool is_refused = is_refused_as_stopped([&] { home.block_on(sleep_once(its, 1ms)); }) &&
                                is_refused_as_stopped([&] { home.add_worker(); }) &&
                                is_refused_as_stopped([&] { home.retire_worker(0); }) && !home.try_add_worker() &&
                                !home.try_retire_worker(0);
        home.shutdown();  // Leaves everything as it is.
        ::_exit(is_refused ? 17 : 18);
    }
    ASSERT_GT(child, 0);
    const int status = status_of(child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 17);
    home.block_on(sleep_once(its, 1ms));
    check_ledger_after_shutdown(home);
}

void destroy_inside_its_own_callback() {
    auto* const home = new runtime({.workers = 2});
    home->timers().after(0s, [home] { delete home; });
    std::this_thread::sleep_for(20s);
}

task<> destroy_from_a_task(runtime* home) {
    delete home;
    co_return;
}

void destroy_inside_its_own_task() {
    auto* const home = new runtime({.workers = 2});
    spawn_detached(*home, destroy_from_a_task(home));
    std::this_thread::sleep_for(20s);
}

void exit_on_a_worker() {
    static runtime home({.workers = 2});
    home.timers().after(0s, [] { std::exit(0); });
    std::this_thread::sleep_for(20s);
}

void throw_without_a_hook() {
    runtime home({.workers = 2});
    home.timers().after(0s, [] { throw std::runtime_error("nobody catches this"); });
    std::this_thread::sleep_for(20s);
}

task<> throw_from_a_task() {
    throw std::runtime_error("nobody catches this");
    co_return;
}

void throw_from_a_detached_task() {
    runtime home({.workers = 2});
    spawn_detached(home, throw_from_a_task());
    std::this_thread::sleep_for(20s);
}

TEST(runtime_death_test, destroying_it_inside_its_own_callback_or_task_aborts) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const char* const destroyed_inside =
        "chime: misuse: a runtime is not destroyed from inside one of its own callbacks or tasks: destroy it on a thread";
    EXPECT_DEATH(destroy_inside_its_own_callback(), destroyed_inside);
    EXPECT_DEATH(destroy_inside_its_own_task(), destroyed_inside);
    EXPECT_DEATH(exit_on_a_worker(), "std::exit\\(\\) on a worker does that to a static one: call shutdown\\(\\)");
}

TEST(runtime_death_test, an_exception_without_a_hook_ends_the_program_and_says_which) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(throw_without_a_hook(), "runtime_config::on_exception is empty(.|\n)*nobody catches this");
    EXPECT_DEATH(throw_from_a_detached_task(), "nobody catches this");
}

}  // namespace
}  // namespace chime::test
