// SPDX-License-Identifier: MIT
//
// After a fork the child may exec, end, or destroy what it has inherited while threads of the parent were using it.

#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/runtime_ledger.hpp"
#include "support/witness.hpp"

#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// What became of a child that does this; -1: it did not come to its end by itself.
int exit_code_of(const std::function<int()>& life) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(life());
    int status = 0;
    for (int waits = 0; waits < 2'000; ++waits) {
        if (::waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        std::this_thread::sleep_for(10ms);
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return -1;
}

task<> sleep_long(witness) {
    auto pause = sleep_for(1h);
    co_await pause;
}

TEST(a_forked_child, destroys_a_context_that_nobody_runs_with_all_that_is_in_it) {
    witness_report report;
    auto context = std::make_unique<io_context>();
    context->timers().after(1h, [kept = witness(report)] {});
    spawn_detached(*context, sleep_long(witness(report)));
    context->poll();
    EXPECT_EQ(exit_code_of([&] {
                  context.reset();
                  return report.ends == 2 ? 17 : 18;
              }),
              17);
    EXPECT_EQ(report.ends.load(), 0);
    context.reset();
    EXPECT_EQ(report.ends.load(), 2);
}

TEST(a_forked_child, may_destroy_a_context_that_a_thread_of_the_parent_guards) {
    auto context = std::make_unique<io_context>();
    std::optional<io_context::work_guard> of_a_thread(std::in_place, *context);
    EXPECT_EQ(exit_code_of([&] {
                  context.reset();
                  return 17;
              }),
              17);
    of_a_thread.reset();
}

TEST(a_forked_child, may_destroy_a_context_whose_pool_works_in_the_parent) {
    const watchdog guard("fork with a pool", 60s);
    auto context = std::make_unique<io_context>(io_context_config{.pool_threads = 2});
    std::atomic<bool> has_begun{false};
    std::atomic<bool> may_end{false};
    auto job = context->cpu_pool().submit([&] {
        has_begun = true;
        await_that([&] { return may_end.load(); });
    });
    await_that([&] { return has_begun.load(); });
    EXPECT_EQ(exit_code_of([&] {
                  context.reset();
                  return 17;
              }),
              17);
    may_end = true;
    context->run();
    EXPECT_TRUE(job.is_done());
    check_ledger_at_rest(*context);
}

TEST(a_forked_child, may_destroy_a_context_under_virtual_time_whose_pool_has_threads) {
    const watchdog guard("fork with virtual time", 60s);
    auto context = std::make_unique<testing::virtual_context>();
    auto job = (*context)->cpu_pool().submit([] {});
    context->run();
    EXPECT_EQ(exit_code_of([&] {
                  context.reset();
                  return 17;
              }),
              17);
    check_ledger_at_rest(**context);
}

TEST(a_forked_child, may_destroy_a_context_that_another_thread_runs_in_the_parent) {
    const watchdog guard("fork with a loop", 60s);
    auto context = std::make_unique<io_context>();
    auto loop = std::make_unique<loop_thread>(*context);
    std::atomic<int> beats{0};
    const timer_handle beating = context->timers().every(1ms, missed_ticks::skip, [&] { ++beats; });
    await_that([&] { return beats > 3; });
    for (int round = 0; round < 10; ++round) {
        EXPECT_EQ(exit_code_of([&] {
                      context.reset();
                      return 17;
                  }),
                  17);
    }
    const int before = beats;
    await_that([&] { return beats > before + 3; });
    context->timers().cancel(beating);
    loop->finish();
    check_ledger_at_rest(*context);
}

task<> nothing() {
    co_return;
}

TEST(a_forked_child, makes_and_destroys_frames_whatever_the_threads_of_the_parent_were_doing) {
    std::atomic<bool> is_over{false};
    // More frames at a time than a thread keeps for itself: the others get some, and get at their lock.
    const auto churn = [] {
        std::vector<task<>> frames;
        for (int count = 0; count < 500; ++count) frames.push_back(nothing());
    };
    std::jthread other([&] {
        while (!is_over) churn();
    });
    for (int forks = 0; forks < 150 && !HasFailure(); ++forks) {
        EXPECT_EQ(exit_code_of([&] {
                      churn();
                      return 17;
                  }),
                  17);
    }
    is_over = true;
}

/// Registered before the library registers anything, so it is called between the library's two calls.
std::unique_ptr<io_context> destroyed_in_the_child;
[[maybe_unused]] const int registered = ::pthread_atfork(nullptr, nullptr, [] { destroyed_in_the_child.reset(); });

TEST(a_forked_child, destroys_frames_also_in_what_somebody_else_has_called_around_the_fork) {
    witness_report report;
    destroyed_in_the_child = std::make_unique<io_context>();
    for (int count = 0; count < 1'000; ++count) spawn_detached(*destroyed_in_the_child, sleep_long(witness(report)));
    destroyed_in_the_child->poll();
    EXPECT_EQ(exit_code_of([&] { return report.ends == 1'000 ? 17 : 18; }), 17);
    EXPECT_EQ(report.ends.load(), 0);
    destroyed_in_the_child.reset();
}

TEST(a_forked_child, may_exec_or_end_from_anywhere) {
    const watchdog guard("fork and exec", 60s);
    runtime home({.workers = 2, .metronome = true});
    std::atomic<int> code{0};
    std::atomic<bool> is_over{false};
    EXPECT_EQ(exit_code_of([] {
                  ::execl("/bin/sh", "sh", "-c", "exit 23", nullptr);
                  return 1;
              }),
              23);
    home.timers().after(1ms, [&] {  // On a worker.
        code = exit_code_of([] {
            ::execl("/bin/sh", "sh", "-c", "exit 24", nullptr);
            return 1;
        });
        is_over = true;
    });
    await_that([&] { return is_over.load(); });
    EXPECT_EQ(code.load(), 24);
    is_over = false;
    home.timers().after(1ms, [&] {
        code = exit_code_of([] { return 25; });
        is_over = true;
    });
    await_that([&] { return is_over.load(); });
    EXPECT_EQ(code.load(), 25);
    check_ledger_after_shutdown(home);
}

TEST(a_forked_child, may_destroy_timers_that_it_has_inherited_an_owner_of) {
    const watchdog guard("fork with a scoped_timer", 60s);
    runtime home({.workers = 2});
    std::atomic<bool> is_running{false};
    std::atomic<bool> may_end{false};
    auto owner = std::make_unique<scoped_timer>(home.timers(), home.timers().after(0s, [&] {
        is_running = true;
        await_that([&] { return may_end.load(); });
    }));
    await_that([&] { return is_running.load(); });
    EXPECT_EQ(exit_code_of([&] {
                  owner.reset();  // Does not wait for a callback that nobody runs here.
                  return 17;
              }),
              17);
    may_end = true;
    owner.reset();
    check_ledger_after_shutdown(home);
}

}  // namespace
}  // namespace chime::test
