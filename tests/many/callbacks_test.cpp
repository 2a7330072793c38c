// SPDX-License-Identifier: MIT
//
// Callbacks on many workers: armed, cancelled and postponed from outside, from the worker that owns them, and from
// another one.

#include "runtime/watchdog.hpp"
#include "support/runtime_ledger.hpp"
#include "support/witness.hpp"

#include <chime/cancel.hpp>
#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// Does something on a worker, and waits until it is done.
template <class Function>
task<> do_it(Function function) {
    function();
    co_return;
}
template <class Function>
void on_some_worker(runtime& home, Function function) {
    home.block_on(do_it(std::move(function)));
}

/// From this thread, and from a worker.
template <class Function>
void from_everywhere(runtime& home, Function function) {
    function();
    on_some_worker(home, function);
}

TEST(a_callback, armed_from_anywhere_runs_once_and_never_early) {
    const watchdog guard("callbacks", 30s);
    runtime home({.workers = 3});
    std::atomic<int> fired{0};
    std::atomic<int> early{0};
    std::atomic<int> elsewhere{0};
    const auto arm_many = [&] {
        for (int number = 0; number < 500; ++number) {
            const duration delay = std::chrono::microseconds{number * 7 % 2'000};
            const time_point deadline = chime::clock::now() + delay;
            const auto run = [&, deadline] {
                if (chime::clock::now() < deadline) ++early;
                if (!home.is_on_a_worker()) ++elsewhere;
                ++fired;
            };
            if (number % 2 == 0) {
                home.timers().after(delay, run);
            } else {
                home.timers().at(deadline, run);
            }
        }
    };
    from_everywhere(home, arm_many);
    std::vector<std::thread> threads;
    for (int number = 0; number < 3; ++number) threads.emplace_back(arm_many);
    for (std::thread& each : threads) each.join();
    await_that([&] { return home.stats().timers.pending == 0 && fired == 2'500; });
    EXPECT_EQ(early.load(), 0);
    EXPECT_EQ(elsewhere.load(), 0);
    check_ledger_after_shutdown(home);
    EXPECT_EQ(home.stats().timers.fired, 2'500U);
}

TEST(a_callback, can_be_cancelled_from_any_thread_and_its_closure_ends_there_once) {
    const watchdog guard("cancelling", 30s);
    runtime home({.workers = 3});
    witness_report report;
    std::vector<timer_handle> armed;
    const auto arm_many = [&] {
        for (int count = 0; count < 100; ++count) {
            armed.push_back(home.timers().after(1h, [seen = witness(report)] { FAIL() << "it was cancelled"; }));
        }
    };
    from_everywhere(home, arm_many);
    std::size_t next = 0;
    const auto cancel_some = [&] {
        for (int count = 0; count < 100; ++count, ++next) {
            const int before = report.ends;
            EXPECT_EQ(home.timers().cancel(armed[next]), cancel_result::cancelled);
            EXPECT_EQ(report.ends.load(), before + 1);
            EXPECT_EQ(report.thread.load(), std::this_thread::get_id());
            EXPECT_EQ(home.timers().cancel(armed[next]), cancel_result::gone);
        }
    };
    from_everywhere(home, cancel_some);
    EXPECT_EQ(report.ends.load(), 200);
    check_ledger_after_shutdown(home);
}

TEST(a_callback, that_ran_or_is_running_says_so_when_it_is_cancelled) {
    const watchdog guard("cancelling what runs", 30s);
    runtime home({.workers = 2});
    std::atomic<int> stage{0};
    witness_report report;
    const timer_handle running = home.timers().after(0s, [&, seen = witness(report)] {
        stage = 1;
        while (stage != 2) std::this_thread::yield();
    });
    await_that([&] { return stage == 1; });
    EXPECT_EQ(home.timers().cancel(running), cancel_result::running);
    EXPECT_FALSE(home.timers().postpone(running, 1h));
    std::thread releasing([&] {
        std::this_thread::sleep_for(5ms);
        stage = 2;
    });
    EXPECT_NE(home.timers().cancel_and_wait(running), cancel_result::cancelled);
    EXPECT_EQ(stage.load(), 2);
    await_that([&] { return report.ends == 1; });
    EXPECT_EQ(home.timers().cancel(running), cancel_result::gone);
    releasing.join();
    check_ledger_after_shutdown(home);
}

TEST(a_callback, can_be_postponed_both_ways_from_any_thread) {
    const watchdog guard("postponing", 30s);
    // Time stands, so that nothing comes due before it was postponed.
    testing::virtual_clock clock(testing::when_idle::stand_still);
    runtime home({.workers = 3, .clock = &clock});
    std::atomic<int> sooner_fired{0};
    std::atomic<int> later_fired{0};
    std::atomic<int> early{0};
    const time_point later = clock.now() + 40ms;
    std::vector<timer_handle> sooner_ones;
    std::vector<timer_handle> later_ones;
    const auto arm_many = [&] {
        for (int count = 0; count < 100; ++count) {
            sooner_ones.push_back(home.timers().after(1h, [&] { ++sooner_fired; }));
            later_ones.push_back(home.timers().after(20ms, [&, later] {
                if (clock.now() < later) ++early;
                ++later_fired;
            }));
        }
    };
    from_everywhere(home, arm_many);
    for (std::size_t each = 0; each < 200; each += 2) {
        on_some_worker(home, [&, each] {
            EXPECT_TRUE(home.timers().postpone(sooner_ones[each], 0s));
            EXPECT_TRUE(home.timers().postpone_until(later_ones[each], later));
        });
        EXPECT_TRUE(home.timers().postpone(sooner_ones[each + 1], 30ms));
        EXPECT_TRUE(home.timers().postpone_until(later_ones[each + 1], later));
    }
    await_that([&] { return sooner_fired == 100; });
    clock.advance_to(later - 1ns);
    await_that([&] { return sooner_fired == 200; });
    // On each worker they would have come before those of 30 ms.
    EXPECT_EQ(later_fired.load(), 0);
    clock.advance_to(later);
    await_that([&] { return later_fired == 200; });
    EXPECT_EQ(early.load(), 0);
    EXPECT_EQ(sooner_fired.load(), 200);
    EXPECT_EQ(home.stats().timers.postponed, 400U);
    for (const timer_handle each : sooner_ones) EXPECT_FALSE(home.timers().postpone(each, 0s));
    check_ledger_after_shutdown(home);
}

TEST(timers_with_one_deadline, of_one_thread_fire_in_the_order_of_arming) {
    const watchdog guard("order", 30s);
    runtime home({.workers = 3});
    std::mutex mutex;
    std::vector<std::vector<int>> orders(4);
    std::vector<std::thread> threads;
    const time_point deadline = chime::clock::now() + 60ms;
    constexpr int count = 300;
    for (std::size_t number = 0; number < orders.size(); ++number) {
        threads.emplace_back([&, number] {
            for (int each = 0; each < count; ++each) {
                home.timers().at(deadline, [&mutex, &order = orders[number], each] {
                    const std::lock_guard lock(mutex);
                    order.push_back(each);
                });
            }
        });
    }
    for (std::thread& each : threads) each.join();
    await_that([&] { return home.stats().timers.fired == count * orders.size(); });
    check_ledger_after_shutdown(home);
    for (const std::vector<int>& order : orders) {
        ASSERT_EQ(order.size(), static_cast<std::size_t>(count));
        for (int each = 0; each < count; ++each) ASSERT_EQ(order[static_cast<std::size_t>(each)], each);
    }
}

TEST(a_thread_that_exits, leaves_its_timers_to_fire_in_time) {
    const watchdog guard("threads that exit", 30s);
    runtime home({.workers = 2});
    std::atomic<int> fired{0};
    std::vector<timer_handle> cancellable;
    for (int number = 0; number < 50; ++number) {
        std::thread([&] {
            for (int count = 0; count < 20; ++count) home.timers().after(5ms, [&] { ++fired; });
            cancellable.push_back(home.timers().after(1h, [] {}));
        }).join();
    }
    await_that([&] { return fired == 1'000; });
    for (const timer_handle each : cancellable) EXPECT_EQ(home.timers().cancel(each), cancel_result::cancelled);
    check_ledger_after_shutdown(home);
}

TEST(a_callback_with_a_token, is_skipped_when_the_token_is_cancelled_first) {
    const watchdog guard("tokens of callbacks", 30s);
    runtime home({.workers = 3});
    cancel_source source;
    witness_report report;
    const auto arm_many = [&] {
        for (int count = 0; count < 100; ++count) {
            home.timers().after(
                1h, [seen = witness(report)] { FAIL() << "it was cancelled"; }, source.token());
        }
    };
    from_everywhere(home, arm_many);
    EXPECT_EQ(report.ends.load(), 0);
    source.request_cancel();
    EXPECT_EQ(report.ends.load(), 200);
    from_everywhere(home, arm_many);  // Cancelled already.
    std::this_thread::sleep_for(2ms);
    EXPECT_EQ(report.ends.load(), 400);
    EXPECT_EQ(home.stats().timers.pending, 0U);
    check_ledger_after_shutdown(home);
}

TEST(every, goes_on_until_it_is_cancelled_from_inside_or_outside) {
    const watchdog guard("every", 30s);
    runtime home({.workers = 2});
    std::atomic<int> outside{0};
    std::atomic<int> inside{0};
    std::atomic<bool> has_handle{false};
    timer_handle itself;
    const timer_handle which = home.timers().every(1ms, missed_ticks::burst, [&] { ++outside; });
    itself = home.timers().every(1ms, missed_ticks::skip, [&] {
        while (!has_handle) std::this_thread::yield();
        if (++inside < 5) return;
        EXPECT_EQ(home.timers().cancel_and_wait(itself), cancel_result::running);
    });
    has_handle = true;
    await_that([&] { return outside >= 10 && inside >= 5; });
    home.timers().cancel_and_wait(which);
    const int seen = outside;
    std::this_thread::sleep_for(5ms);
    EXPECT_EQ(outside.load(), seen);
    EXPECT_EQ(inside.load(), 5);
    EXPECT_EQ(home.timers().cancel(which), cancel_result::gone);
    EXPECT_EQ(home.timers().cancel(itself), cancel_result::gone);
    check_ledger_after_shutdown(home);
}

task<> throw_later() {
    co_await sleep_for(1ms);
    throw std::runtime_error("from a detached task");
}

TEST(on_exception, gets_what_callbacks_and_detached_tasks_throw_and_every_goes_on) {
    const watchdog guard("on_exception", 30s);
    std::mutex mutex;
    std::vector<std::string> caught;
    std::atomic<int> ticks{0};
    std::atomic<int> fired{0};
    runtime_config config{.workers = 2};
    config.on_exception = [&](std::exception_ptr thrown) {
        try {
            std::rethrow_exception(std::move(thrown));
        } catch (const std::exception& error) {
            const std::lock_guard lock(mutex);
            caught.emplace_back(error.what());
        }
    };
    runtime home(config);
    const time_point deadline = chime::clock::now() + 5ms;
    for (int count = 0; count < 50; ++count) {
        home.timers().at(deadline, [] { throw std::runtime_error("from a callback"); });
        home.timers().at(deadline, [&] { ++fired; });
        spawn_detached(home, throw_later());
    }
    const timer_handle repeating = home.timers().every(1ms, missed_ticks::skip, [&] {
        ++ticks;
        throw std::runtime_error("from a tick");
    });
    const auto count_of = [&](const std::string& what) {
        const std::lock_guard lock(mutex);
        return std::count(caught.begin(), caught.end(), what);
    };
    await_that([&] { return fired == 50 && ticks >= 5; });
    home.timers().cancel_and_wait(repeating);
    await_that([&] { return count_of("from a callback") == 50 && count_of("from a detached task") == 50; });
    await_that([&] { return count_of("from a tick") == ticks; });
    check_ledger_after_shutdown(home);
}

TEST(a_callback, may_arm_itself_again_with_no_delay_and_others_still_run) {
    const watchdog guard("a zero-delay loop", 30s);
    runtime home({.workers = 1});
    std::atomic<bool> is_over{false};
    std::atomic<bool> has_ended{false};
    std::atomic<int> rounds{0};
    struct again {
        runtime* home;
        std::atomic<bool>* is_over;
        std::atomic<bool>* has_ended;
        std::atomic<int>* rounds;
        void operator()() const {
            ++*rounds;
            if (*is_over) {
                *has_ended = true;
            } else {
                home->timers().after(0s, *this);
            }
        }
    };
    home.timers().after(0s, again{&home, &is_over, &has_ended, &rounds});
    std::atomic<int> fired{0};
    for (int count = 0; count < 20; ++count) home.timers().after(1ms, [&] { ++fired; });
    EXPECT_EQ(home.block_on(sleep_for(1ms)), wake_reason::elapsed);
    await_that([&] { return fired == 20 && rounds > 100; });
    is_over = true;
    await_that([&] { return has_ended.load(); });  // Whoever arms while a runtime shuts down is refused.
    check_ledger_after_shutdown(home);
}

}  // namespace
}  // namespace chime::test
