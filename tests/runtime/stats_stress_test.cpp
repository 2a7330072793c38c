// SPDX-License-Identifier: MIT
//
// Statistics that are read while others count.

#include "support/ledger.hpp"

#include <chime/io_context.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

// What is pending of other threads is a difference of two sums. Whoever loses the processor between them, for as long as
// others need for thousands of timers, does not take those for pending.
TEST(stats, of_what_others_arm_and_cancel_are_of_one_moment) {
    constexpr std::uint64_t few = 1000;
    io_context context;
    std::atomic<bool> is_over{false};
    std::array<std::thread, 3> others;
    for (std::thread& each : others) {
        each = std::thread([&] {
            while (!is_over.load(std::memory_order_relaxed)) {
                context.timers().cancel(context.timers().after(1h, [] {}));
            }
        });
    }
    std::uint64_t most = 0;
    const auto end = std::chrono::steady_clock::now() + 1500ms;
    while (std::chrono::steady_clock::now() < end) {
        for (int count = 0; count < 1000; ++count) most = std::max(most, context.timers().stats().pending);
    }
    is_over.store(true);
    for (std::thread& each : others) each.join();
    EXPECT_LT(most, few) << "there were never more than three";
    context.poll();
    EXPECT_EQ(context.timers().stats().pending, 0U);
    check_ledger_at_rest(context);
}

}  // namespace
}  // namespace chime::test
