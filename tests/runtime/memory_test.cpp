// SPDX-License-Identifier: MIT
//
// What a pending timer costs, and that cancelled ones cost nothing.

#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/random.hpp"
#include "task/task_slot.hpp"
#include "timer/callback.hpp"

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/testing.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <thread>
#include <vector>

#include <unistd.h>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

TEST(memory, a_pending_callback_and_a_task_have_the_sizes_that_were_promised) {
    EXPECT_LE(sizeof(detail::callback), 112U);
    EXPECT_EQ(sizeof(detail::task_slot), 64U);
    EXPECT_EQ(sizeof(timer_handle), 16U);
}

/// Memory of this process that is in use now.
std::size_t resident_bytes() {
    std::ifstream numbers("/proc/self/statm");
    std::size_t all = 0;
    std::size_t resident = 0;
    numbers >> all >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// A sanitizer keeps books of its own that grow.
constexpr bool measures_memory = CHIME_TEST_SCALE == 1;
constexpr std::size_t little = std::size_t{24} << 20U;

TEST(regression, b26_an_hour_long_timer_cancelled_by_the_loop_is_not_kept_for_an_hour) {
    testing::virtual_context context;
    timers& all = context->timers();
    std::uint64_t most_tickets = 0;
    std::size_t before = 0;
    const std::uint64_t batches = scaled(1'000'000) / 1'000;
    for (std::uint64_t batch = 0; batch < batches; ++batch) {
        if (batch == batches / 10) before = resident_bytes();
        context->post([&] {
            for (int i = 0; i < 1'000; ++i) {
                const timer_handle which = all.after(1h + i * 1s, [] {});
                if (i % 3 == 0) {
                    EXPECT_TRUE(all.postpone(which, 30min + i * 1s));
                }
                ASSERT_EQ(all.cancel(which), cancel_result::cancelled);
            }
        });
        context->poll();
        most_tickets = std::max(most_tickets, all.stats().tickets);
    }
    EXPECT_LE(most_tickets, 8'192U);
    if (measures_memory) {
        EXPECT_LT(resident_bytes(), before + little);
    }
    check_ledger_at_rest(*context);
}

TEST(regression, b26_a_few_at_a_time_leave_as_little_behind) {
    // Each turn arms some, lets their tickets get into the wheel, and cancels those of an earlier turn.
    testing::virtual_context context;
    timers& all = context->timers();
    std::vector<timer_handle> pending;
    std::size_t oldest = 0;
    std::uint64_t most_stale = 0;
    for (std::uint64_t turn = 0; turn < scaled(20'000); ++turn) {
        context->post([&] {
            for (int i = 0; i < 20; ++i) pending.push_back(all.after(1h + i * 1min, [] {}));
            while (pending.size() - oldest > 1'000) {
                ASSERT_EQ(all.cancel(pending[oldest++]), cancel_result::cancelled);
            }
        });
        context.advance(1ms);
        most_stale = std::max(most_stale, all.stats().stale_tickets);
    }
    EXPECT_LE(most_stale, 8'192U);
    EXPECT_LE(all.stats().pending, 1'020U);
    check_ledger(*context);
    all.stop();
    context.run();
    check_ledger_at_rest(*context);
}

TEST(regression, b26_an_hour_long_timer_cancelled_by_another_thread_is_not_kept_either) {
    const watchdog guard("arm and cancel from another thread");
    io_context context;
    timers& all = context.timers();
    loop_thread loop(context);
    std::uint64_t most_tickets = 0;
    std::size_t before = 0;
    const std::uint64_t rounds = scaled(1'000'000);
    for (std::uint64_t round = 0; round < rounds; ++round) {
        if (round == rounds / 10) before = resident_bytes();
        const timer_handle which = all.after(1h, [] {});
        ASSERT_EQ(all.cancel(which), cancel_result::cancelled);
        if (round % 1'000 == 0) most_tickets = std::max(most_tickets, all.stats().tickets);
    }
    EXPECT_LE(most_tickets, 8'192U);
    if (measures_memory) {
        EXPECT_LT(resident_bytes(), before + little) << "records of cancelled timers are not used again";
    }
    loop.finish();
    check_ledger_at_rest(context);
}

TEST(regression, b26_many_armed_at_once_and_cancelled_by_another_thread_are_used_again) {
    const watchdog guard("bursts from another thread");
    io_context context({.max_timers = 40'000});
    timers& all = context.timers();
    loop_thread loop(context);
    std::vector<timer_handle> armed;
    for (std::uint64_t burst = 0; burst < scaled(60); ++burst) {
        for (int i = 0; i < 20'000; ++i) {
            auto made = all.try_after(1h, [] {});
            // The owner may need a moment to clean up.
            for (int patience = 0; !made && patience < 1'000; ++patience) {
                std::this_thread::sleep_for(1ms);
                made = all.try_after(1h, [] {});
            }
            ASSERT_TRUE(made.has_value()) << "refused with " << all.stats().pending << " pending of 40000";
            armed.push_back(*made);
        }
        for (const timer_handle each : armed) ASSERT_EQ(all.cancel(each), cancel_result::cancelled);
        armed.clear();
    }
    loop.finish();
    check_ledger_at_rest(context);
}

task<> sleep_long(cancel_token token) {
    co_await sleep_for(1h, std::move(token));
}

TEST(regression, b26_cancelled_sleeps_leave_nothing_behind) {
    testing::virtual_context context;
    std::uint64_t most_tickets = 0;
    std::size_t before = 0;
    const std::uint64_t rounds = scaled(2'000);
    for (std::uint64_t round = 0; round < rounds; ++round) {
        if (round == rounds / 10) before = resident_bytes();
        cancel_source source;
        for (int i = 0; i < 100; ++i) spawn_detached(*context, sleep_long(source.token()));
        context.settle();
        most_tickets = std::max(most_tickets, context->timers().stats().tickets);
        source.request_cancel();
        context.settle();
    }
    EXPECT_LE(most_tickets, 8'192U);
    if (measures_memory) {
        EXPECT_LT(resident_bytes(), before + little);
    }
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
