// SPDX-License-Identifier: MIT
//
// Threads that are in the middle of a call to a context when it ends, and closures that take part in that end. Each was wrong
// once.

#include "runtime/small_tasks.hpp"
#include "runtime/watchdog.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// Does something when it goes.
class at_the_end {
 public:
    explicit at_the_end(std::function<void()> what) : what_(std::move(what)) {}
    at_the_end(at_the_end&& other) noexcept : what_(std::exchange(other.what_, nullptr)) {}
    ~at_the_end() {
        if (what_) what_();
    }
    void operator()() const noexcept {}

 private:
    std::function<void()> what_;
};

void await_flag(const std::atomic<bool>& flag) {
    while (!flag) std::this_thread::yield();
}

task<> sleep_for_an_hour() {
    co_await sleep_for(1h);
}

task<> wait_for(join_handle<> other) {
    co_await other;
}

TEST(shutdown, ends_although_a_closure_that_goes_elsewhere_waits_for_a_task_that_only_it_destroys) {
    const watchdog guard("a closure that waits for a task", 30s);
    std::atomic<bool> is_ending{false};
    io_context never_run;
    runtime home({.workers = 2});
    auto waiting = std::make_shared<join_handle<>>(home.spawn(wait_for(spawn(never_run, sleep_for_an_hour()))));
    const timer_handle armed = home.timers().after(1h, at_the_end([&is_ending, waiting] {
                                                       is_ending = true;
                                                       waiting->wait();
                                                   }));
    std::thread elsewhere([&] { EXPECT_EQ(home.timers().cancel(armed), cancel_result::cancelled); });
    await_flag(is_ending);
    check_ledger_after_shutdown(home);
    elsewhere.join();
}

TEST(shutdown, may_be_asked_for_by_a_closure_that_goes_on_a_thread_outside) {
    const watchdog guard("a closure that shuts down", 30s);
    runtime home({.workers = 2});
    const timer_handle armed = home.timers().after(1h, at_the_end([&home] { home.shutdown(); }));
    std::thread elsewhere([&] { EXPECT_EQ(home.timers().cancel(armed), cancel_result::cancelled); });
    elsewhere.join();
    EXPECT_FALSE(home.timers().try_after(1h, [] {}).has_value());
    check_ledger_after_shutdown(home);
}

TEST(shutdown, may_be_asked_for_by_a_closure_while_another_thread_shuts_down) {
    const watchdog guard("two that shut down", 30s);
    std::atomic<bool> is_ending{false};
    runtime home({.workers = 2});
    const timer_handle armed = home.timers().after(1h, at_the_end([&] {
                                                       is_ending = true;
                                                       std::this_thread::sleep_for(20ms);
                                                       home.shutdown();
                                                   }));
    std::thread elsewhere([&] { EXPECT_EQ(home.timers().cancel(armed), cancel_result::cancelled); });
    await_flag(is_ending);
    home.shutdown();
    elsewhere.join();
    check_ledger_after_shutdown(home);
}

/// Runs a loop whose last timer is ended by `end_it` on another thread while it runs, and destroys the loop as soon as it returns.
template <class EndIt>
void end_last_run_elsewhere(EndIt end_it) {
    const watchdog guard("a last run", 60s);
    for (int round = 0; round < 30; ++round) {
        std::atomic<bool> is_running{false};
        std::optional<std::thread> elsewhere;
        {
            io_context home({.max_timers = 64, .max_tasks = 64});
            const timer_handle armed = home.timers().every(100us, missed_ticks::skip, [&] {
                is_running = true;
                std::this_thread::sleep_for(1ms);
            });
            elsewhere.emplace([&] {
                await_flag(is_running);
                end_it(home.timers(), armed);
            });
            home.run();
        }
        elsewhere->join();
    }
}

TEST(a_loop, that_ends_with_its_last_run_waits_for_who_waits_for_that) {
    end_last_run_elsewhere([](timers& its, timer_handle armed) { its.cancel_and_wait(armed); });
}

task<> join(timers& its, timer_handle armed) {
    auto end = its.cancel_and_join(armed);
    co_await end;
}

TEST(a_loop, that_ends_with_its_last_run_is_left_alone_by_a_task_elsewhere_that_was_told_of_it) {
    end_last_run_elsewhere([](timers& its, timer_handle armed) {
        io_context other({.max_timers = 64, .max_tasks = 64});
        block_on(other, join(its, armed));
    });
}

/// A closure that is moved into its timer for as long as it takes, and takes its time to end.
class slow {
 public:
    slow(std::atomic<bool>& is_arming, const std::atomic<bool>& may_go) noexcept
        : is_arming_(is_arming), may_go_(may_go) {}
    slow(slow&& other) noexcept : is_arming_(other.is_arming_), may_go_(other.may_go_), is_armed_(true) {
        is_arming_ = true;
        while (!may_go_) {}
    }
    ~slow() {
        if (is_armed_) std::this_thread::sleep_for(3ms);
    }
    void operator()() const noexcept {}

 private:
    std::atomic<bool>& is_arming_;
    const std::atomic<bool>& may_go_;
    bool is_armed_ = false;
};

task<> wait_and_let_go(std::atomic<bool>& may_go, int delay, join_handle<> other) {
    const at_the_end last([&may_go, delay] {
        may_go = true;
        for (std::atomic<int> count = 0; count < delay; ++count) {}
    });
    co_await other;
}

TEST(cancel_and_join, ends_if_a_shutdown_destroys_the_closure_that_it_waits_for) {
    const watchdog guard("who waits for a closure", 60s);
    for (int round = 0; round < 200; ++round) {
        std::atomic<bool> is_arming{false};
        std::atomic<bool> may_go{false};
        io_context never_run;
        runtime home({.workers = 1, .max_timers = 1000, .max_tasks = 1000});
        home.spawn(wait_and_let_go(may_go, round * 7, spawn(never_run, sleep_for_an_hour()))).detach();
        std::thread elsewhere([&] {
            if (const auto armed = home.timers().try_after(1h, slow(is_arming, may_go))) {
                io_context other;
                block_on(other, join(home.timers(), *armed));
            }
        });
        while (!is_arming || home.stats().timers.resumed_by_completion == 0) std::this_thread::yield();
        home.shutdown();
        elsewhere.join();
    }
}

}  // namespace
}  // namespace chime::test
