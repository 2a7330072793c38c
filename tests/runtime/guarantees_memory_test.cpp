// SPDX-License-Identifier: MIT
//
// G9 bounded memory.
#include "support/ledger.hpp"

#include <chime/io_context.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

TEST(guarantee, g9_the_cap_is_never_exceeded) {
    constexpr std::uint64_t cap = 100;
    testing::virtual_context context({.max_timers = cap});
    timers& timers = context->timers();
    std::uint64_t accepted = 0;
    for (std::uint64_t asked = 0; asked < 3 * cap; ++asked) {
        if (timers.try_after(1s, [] {})) ++accepted;
        ASSERT_LE(timers.stats().pending, cap);
    }
    EXPECT_EQ(accepted, cap) << "nobody else holds any in reserve";
    check_ledger(*context);
}

TEST(guarantee, g9_cancelled_records_return_at_once_inside_the_loop) {
    testing::virtual_context context({.max_timers = 10});
    timers& timers = context->timers();
    context->post([&] {
        for (int count = 0; count < 100'000; ++count) {
            const timer_handle armed = timers.after(1h, [] {});
            ASSERT_EQ(timers.cancel(armed), cancel_result::cancelled);
        }
    });
    context.settle();
    EXPECT_EQ(timers.stats().cancelled, 100'000U);
    EXPECT_LE(timers.stats().tickets, 5000U);
    check_ledger_at_rest(*context);
}

TEST(guarantee, g9_cancelled_records_return_at_the_next_drain_when_cancelled_from_outside) {
    testing::virtual_context context({.max_timers = 1000});
    timers& timers = context->timers();
    for (int round = 0; round < 20; ++round) {
        std::vector<timer_handle> handles;
        for (int count = 0; count < 900; ++count) handles.push_back(timers.after(1h, [] {}));
        for (const timer_handle which : handles) ASSERT_EQ(timers.cancel(which), cancel_result::cancelled);
        context.settle();
        ASSERT_EQ(timers.stats().pending, 0U);
    }
    check_ledger_at_rest(*context);
}

TEST(guarantee, g9_a_cap_that_is_free_again_can_be_used_again_from_outside_of_the_loop) {
    // Nothing is pending after each round; there is no reason to refuse the next one.
    testing::virtual_context context({.max_timers = 1000, .max_tasks = 1000});
    timers& timers = context->timers();
    int ran = 0;
    for (int round = 0; round < 3; ++round) {
        for (int count = 0; count < 1000; ++count) {
            ASSERT_TRUE(timers.try_after(1s, [&] { ++ran; })) << "round " << round << ", timer " << count;
        }
        context.run();
        ASSERT_EQ(timers.stats().pending, 0U);
    }
    EXPECT_EQ(ran, 3000);
    check_ledger_at_rest(*context);
}

TEST(guarantee, g9_stale_tickets_never_exceed_live_ones_plus_a_constant) {
    testing::virtual_context context({.stale_slack = 64});
    timers& timers = context->timers();
    std::vector<timer_handle> kept;
    context->post([&] {
        for (int count = 0; count < 1000; ++count) kept.push_back(timers.after(1h, [] {}));
    });
    context.settle();
    // Timeouts of an hour that are cancelled at once, as a server has them all day.
    for (int round = 0; round < 100; ++round) {
        context->post([&] {
            std::vector<timer_handle> handles;
            for (int count = 0; count < 500; ++count) {
                handles.push_back(timers.after(1h + std::chrono::milliseconds{count}, [] {}));
            }
            for (const timer_handle which : handles) timers.cancel(which);
        });
        context.advance(1ms);
        const timer_stats sums = timers.stats();
        ASSERT_EQ(sums.pending, 1000U);
        ASSERT_LE(sums.tickets, 2 * sums.pending + 1024);
    }
    for (const timer_handle which : kept) timers.cancel(which);
    context.settle();
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
