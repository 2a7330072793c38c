// SPDX-License-Identifier: MIT
//
// Several threads, and no memory for any of them: what needs none goes on, what needs some is refused, and everything can
// still be ended.

#include "faults/injection.hpp"
#include "faults/shortage.hpp"
#include "runtime/small_tasks.hpp"
#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/random.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/cancel.hpp>
#include <chime/cpu_pool.hpp>
#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// Something that every hot operation has a part in: callbacks with and without tokens, periodic ones, postponed ones, sleeps.
class busy_work {
 public:
    explicit busy_work(timers& home) : home_(home) {}

    void one_round() {
        const timer_handle plain = home_.after(1h, [this] { ++fired_; });
        const timer_handle watched = home_.after(
            1h, [this] { ++fired_; }, source_.token());
        const timer_handle periodic = home_.every(1h, missed_ticks::skip, [this] { ++fired_; });
        is_right_ = is_right_ && home_.postpone(plain, 2h) && home_.postpone(plain, 1us);
        is_right_ = is_right_ && home_.cancel(watched) == cancel_result::cancelled;
        is_right_ = is_right_ && home_.cancel(periodic) == cancel_result::cancelled;
    }

    [[nodiscard]] bool is_right() const { return is_right_; }
    [[nodiscard]] int fired() const { return fired_; }

 private:
    timers& home_;
    cancel_source source_;
    std::atomic<int> fired_{0};
    bool is_right_ = true;
};

task<> sleep_often(int naps, std::atomic<int>& over, cancel_token token) {
    for (int count = 0; count < naps; ++count) {
        auto pause = sleep_for(1us, token);
        co_await pause;
        co_await yield();
    }
    ++over;
}

TEST(after_warm_up, hot_operations_of_a_loop_need_no_memory_at_all) {
    testing::virtual_context context;
    busy_work inside(context->timers());
    busy_work outside(context->timers());
    cancel_source source;
    std::atomic<int> over{0};
    const auto round = [&] {
        context->post([&] { inside.one_round(); });
        outside.one_round();
        spawn_detached(*context, sleep_often(20, over, source.token()));
        context.advance(10ms);
    };
    for (int count = 0; count < 200; ++count) round();
    faults::allocations.fail_after(0);
    faults::mappings.fail_after(0);
    faults::commits.fail_after(0);
    for (int count = 0; count < 200; ++count) round();
    faults::allocations.recover();
    faults::mappings.recover();
    faults::commits.recover();
    EXPECT_TRUE(inside.is_right() && outside.is_right());
    EXPECT_EQ(inside.fired(), 400);
    EXPECT_EQ(outside.fired(), 400);
    EXPECT_EQ(over.load(), 400);
    EXPECT_EQ(faults::allocations.refusals() + faults::commits.refusals(), 0U);
    context.run();
    check_ledger_at_rest(*context);
}

/// Lets the wheels of two workers become larger than they will have to be, whatever the threads do.
void grow_wheels(timers& home) {
    const auto arm_many = [&home] {
        std::vector<timer_handle> armed;
        for (int count = 0; count < 3'000; ++count) armed.push_back(home.after(1h + count * 1s, [] {}));
        std::atomic<bool> are_accepted{false};
        home.after(0s, [&] { are_accepted = true; });
        await_that([&] { return are_accepted.load(); });
        for (const timer_handle& timer : armed) EXPECT_EQ(home.cancel(timer), cancel_result::cancelled);
    };
    std::array<std::thread, 2> threads;  // Each of two that are started together has another worker.
    for (std::thread& thread : threads) thread = std::thread(arm_many);
    for (std::thread& thread : threads) thread.join();
}

TEST(after_warm_up, workers_go_on_without_any_memory) {
    watchdog guard("workers without memory", 60s);
    std::atomic<int> thrown{0};  // To say more would need memory.
    // With few stale tickets a wheel is soon as large as it gets.
    runtime home({.workers = 2, .stale_slack = 64, .on_exception = [&](const std::exception_ptr&) { ++thrown; }});
    busy_work outside(home.timers());
    cancel_source source;
    std::atomic<int> over{0};
    const auto rounds = [&](int count) {
        const int before = outside.fired();
        for (int made = 0; made < count; ++made) outside.one_round();
        await_that([&] { return outside.fired() == before + count || thrown != 0; });
    };
    for (int count = 0; count < 8; ++count)
        spawn_detached(home, sleep_often(static_cast<int>(scaled(40'000)), over, {}));
    grow_wheels(home.timers());
    for (int count = 0; count < 300; ++count) rounds(20);
    faults::allocations.fail_after(0);
    faults::mappings.fail_after(0);
    for (int count = 0; count < 100; ++count) rounds(20);
    await_that([&] { return over == 8 || thrown != 0; });
    faults::allocations.recover();
    faults::mappings.recover();
    EXPECT_TRUE(outside.is_right());
    EXPECT_EQ(thrown.load(), 0);
    EXPECT_EQ(faults::allocations.refusals() + faults::mappings.refusals(), 0U);
    check_ledger_after_shutdown(home);
}

task<int> give_large() {
    std::array<char, 2'000> large{};
    large[0] = 7;
    asm volatile("" ::"r"(large.data()) : "memory");  // So that no compiler keeps only a part of it.
    auto pause = sleep_for(100us);
    co_await pause;
    asm volatile("" ::"r"(large.data()) : "memory");
    co_return large[0];
}

TEST(workers, without_memory_refuse_what_is_new_and_take_it_later) {
    watchdog guard("requests to workers", 60s);
    only_shortage thrown;
    runtime home({.workers = 2, .on_exception = std::ref(thrown)});
    std::atomic<int> fired{0};
    int expected = 0;
    cancel_source source;
    const auto arm = [&] {
        std::array<char, 2'000> large{};
        home.timers().after(100us, [&fired, large] { fired += 1 + large[0]; });
    };
    const auto arm_with_token = [&] {
        std::array<char, 2'000> large{};
        home.timers().after(
            100us, [&fired, large] { fired += 1 + large[0]; }, source.token());
    };
    const auto look = [&](bool is_through) {
        guard.pat();
        if (is_through) ++expected;
        await_that([&] { return fired == expected && home.stats().timers.pending == 0; });
    };
    EXPECT_GT(fail_at_each(faults::allocations, arm, look), 0U);
    EXPECT_GT(fail_at_each(faults::allocations, arm_with_token, look), 0U);
    join_handle<int> joined;
    const auto refused = fail_at_each(
        faults::allocations, [&] { joined = home.spawn(give_large()); },
        [&](bool is_through) {
            guard.pat();
            if (is_through) {
                joined.wait();
                try {
                    EXPECT_EQ(joined.take(), 7);
                } catch (const std::bad_alloc&) {
                    // It ran at once, and there was no memory for its sleep: whoever joins it is told.
                }
            }
            EXPECT_EQ(home.block_on(give_large()), 7);
            await_that([&] { return home.stats().timers.tasks == 0; });  // It is counted a moment later.
        });
    EXPECT_GT(refused, 0U);
    thrown.expect_nothing_else();
    check_ledger_after_shutdown(home);
}

TEST(a_cpu_pool, without_memory_or_threads_refuses_the_job_and_takes_the_next_one) {
    const watchdog guard("a pool", 60s);
    for (failing_point* const kind : {&faults::allocations, &faults::threads}) {
        std::optional<io_context> context;
        context.emplace(io_context_config{.pool_threads = 3});
        const auto submit = [&] {
            std::array<char, 2'000> large{};
            large[0] = 7;
            attempt_with_threads([&] {
                auto job = context->cpu_pool().submit([large] { return large[0]; });
                static_cast<void>(job);
            });
        };
        const auto refused = fail_at_each(*kind, submit, [&](bool) {
            std::atomic<bool> has_run{false};
            auto job = context->cpu_pool().submit([&] { has_run = true; });
            context->run();
            EXPECT_TRUE(has_run);
            EXPECT_TRUE(job.is_done());
            check_ledger_at_rest(*context);
            context.emplace(io_context_config{.pool_threads = 3});
        });
        EXPECT_GT(refused, 0U);
    }
}

TEST(a_cpu_pool, without_threads_answers_who_only_tries_and_leaves_him_the_function) {
    const watchdog guard("a pool", 60s);
    std::optional<io_context> context;
    context.emplace(io_context_config{.pool_threads = 3});
    bool was_refused = false;
    const auto try_it = [&] {
        auto function = [kept = std::make_unique<int>(7)] { return *kept; };
        const auto job = context->cpu_pool().try_submit(std::move(function));
        was_refused = !job.has_value();
        if (!was_refused) return;
        EXPECT_EQ(function(), 7);  // NOLINT(bugprone-use-after-move): what is refused was not moved from.
        throw std::bad_alloc();    // For who counts the refusals.
    };
    const auto refused = fail_at_each(faults::threads, try_it, [&](bool) {
        context->run();
        check_ledger_at_rest(*context);
        context.emplace(io_context_config{.pool_threads = 3});
    });
    EXPECT_GT(refused, 0U);
    EXPECT_FALSE(was_refused) << "with threads it is taken in the end";
}

TEST(cancel_and_join, without_memory_to_wait_has_not_cancelled) {
    const watchdog guard("cancel_and_join", 60s);
    io_context home;
    io_context other;
    loop_thread loop(home);
    std::atomic<int> runs{0};
    std::atomic<bool> may_end{false};
    const timer_handle periodic = home.timers().every(1ms, missed_ticks::skip, [&] {
        ++runs;
        await_that([&] { return may_end.load(); });
    });
    await_that([&] { return runs == 1; });
    const auto join_it = [&]() -> task<bool> {
        bool is_refused = false;
        try {
            auto joined = home.timers().cancel_and_join(periodic);
            faults::allocations.fail_after(0);
            static_cast<void>(co_await joined);
        } catch (const std::bad_alloc&) {
            is_refused = true;
        }
        faults::allocations.recover();
        co_return is_refused;
    };
    auto joined = spawn(other, join_it());
    other.poll();
    faults::allocations.recover();
    may_end = true;
    other.run();
    if (joined.take()) {
        await_that([&] { return runs >= 3; });  // Refused, so it goes on.
        EXPECT_NE(home.timers().cancel_and_wait(periodic), cancel_result::gone);
    }
    loop.finish();
    check_ledger_at_rest(home);
    check_ledger_at_rest(other);
}

TEST(the_metronome, without_memory_leaves_out_a_report_and_goes_on) {
    const watchdog guard("the metronome", 60s);
    std::atomic<int> reports{0};
    runtime_config config;
    config.workers = 2;
    config.metronome = true;
    config.metronome_period = 1ms;
    config.on_metrics = [&](const runtime_stats&) { ++reports; };
    runtime home(config);
    std::atomic<bool> is_over{false};
    home.timers().after(0s, [&] {  // While somebody is awake, it beats.
        await_that([&] { return is_over.load(); });
    });
    await_that([&] { return reports > 2; });
    faults::allocations.fail_after(0);
    const std::uint64_t seen = faults::allocations.refusals();
    await_that([&] { return faults::allocations.refusals() > seen + 5; });
    faults::allocations.recover();
    const int before = reports;
    await_that([&] { return reports > before + 2; });
    is_over = true;
    check_ledger_after_shutdown(home);
}

TEST(a_shutdown, comes_to_its_end_without_memory_however_much_is_in_the_inboxes) {
    watchdog guard("a shutdown without memory", 60s);
    for (const bool is_accepted : {true, false}) {
        std::atomic<int> thrown{0};
        std::atomic<bool> is_stuck{false};
        std::atomic<bool> may_go_on{false};
        runtime home({.workers = 1, .on_exception = [&](const std::exception_ptr&) { ++thrown; }});
        home.timers().after(0s, [&] {
            is_stuck = true;
            await_that([&] { return may_go_on.load(); });
        });
        await_that([&] { return is_stuck.load(); });
        const std::uint64_t count = 50'000;
        for (std::uint64_t made = 0; made < count; ++made) home.timers().after(1h + 1ms * made, [] {});
        if (is_accepted) {
            may_go_on = true;
            await_that([&] { return home.stats().timers.tickets >= count; });
        }
        std::atomic<bool> has_begun{false};
        std::thread waker([&] {
            await_that([&] { return has_begun.load(); });
            std::this_thread::sleep_for(20ms);
            may_go_on = true;
        });
        faults::allocations.fail_after(0);
        has_begun = true;
        home.shutdown();
        faults::allocations.recover();
        waker.join();
        EXPECT_LT(thrown.load(), 1'000) << "told once, not for ever";
        check_ledger_after_shutdown(home);
        guard.pat();
    }
}

TEST(a_stopped_loop, comes_to_its_end_without_memory_however_much_is_in_the_inbox) {
    const watchdog guard("a stop without memory", 60s);
    testing::virtual_context context;
    for (int made = 0; made < 50'000; ++made) context->timers().after(1h + 1ms * made, [] {});
    context->timers().stop();
    faults::allocations.fail_after(0);
    int thrown = 0;
    while (!context->is_out_of_work() && thrown < 10) {
        try {
            context.run();
        } catch (const std::bad_alloc&) {
            ++thrown;
        }
    }
    faults::allocations.recover();
    EXPECT_EQ(thrown, 0);
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
