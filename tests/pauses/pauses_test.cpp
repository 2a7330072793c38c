// SPDX-License-Identifier: MIT
#include "base/atomic.hpp"

#include <chime/io_context.hpp>
#include <chime/timers.hpp>

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;

static_assert(sizeof(chime::base::atomic<std::uint32_t>) == 4 && sizeof(chime::base::atomic<void*>) == sizeof(void*));

TEST(pauses, come_now_and_then_before_an_atomic_step) {
    constexpr int steps = 100'000;
    const std::uint64_t before = chime::base::pauses::taken();
    chime::base::atomic<int> word{0};
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) word.fetch_add(1);
    const auto lasted = std::chrono::steady_clock::now() - began;
    const std::uint64_t taken = chime::base::pauses::taken() - before;
    EXPECT_EQ(word.load(), steps);
    EXPECT_GT(taken, 50U);
    EXPECT_LT(taken, 1000U);
    EXPECT_GT(lasted, 100us) << "ten nanoseconds a step would be no pause at all";
}

TEST(pauses, come_inside_of_the_library) {
    const std::uint64_t before = chime::base::pauses::taken();
    chime::io_context loop;
    for (int i = 0; i < 10'000; ++i) loop.timers().cancel(loop.timers().after(1h, [] {}));
    EXPECT_GT(chime::base::pauses::taken(), before);
}

}  // namespace
