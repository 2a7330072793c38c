// SPDX-License-Identifier: MIT
#include "base/clock.hpp"

#include "base/thread.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;
using chime::base::to_timespec;

constexpr chime::time_point at(std::chrono::nanoseconds since_epoch) {
    return chime::time_point{since_epoch};
}

}  // namespace

TEST(clock, never_runs_back) {
    chime::time_point last = chime::base::now();
    for (int reading = 0; reading < 10'000; ++reading) {
        const chime::time_point next = chime::base::now();
        ASSERT_GE(next, last);
        last = next;
    }
}

TEST(clock, is_the_monotonic_clock_of_the_kernel) {
    timespec before{};
    timespec after{};
    ASSERT_EQ(clock_gettime(CLOCK_MONOTONIC, &before), 0);
    const timespec ours = to_timespec(chime::base::now());
    ASSERT_EQ(clock_gettime(CLOCK_MONOTONIC, &after), 0);
    const auto nanoseconds = [](const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; };
    EXPECT_LE(nanoseconds(before), nanoseconds(ours));
    EXPECT_LE(nanoseconds(ours), nanoseconds(after));
}

TEST(clock, converts_times_for_the_kernel_without_loss) {
    const timespec time = to_timespec(at(3s + 7ns));
    EXPECT_EQ(time.tv_sec, 3);
    EXPECT_EQ(time.tv_nsec, 7);
    const timespec last = to_timespec(chime::never);
    EXPECT_EQ(last.tv_sec, 9'223'372'036);
    EXPECT_EQ(last.tv_nsec, 854'775'807);
}

TEST(clock, gives_the_kernel_no_negative_time) {
    for (const chime::time_point past : {at(0ns), at(-1ns), at(-1h), chime::time_point::min()}) {
        const timespec time = to_timespec(past);
        EXPECT_EQ(time.tv_sec, 0);
        EXPECT_EQ(time.tv_nsec, 0);
    }
}

TEST(timer_slack, is_set_for_the_calling_thread_alone) {
    const auto before = chime::base::timer_slack();
    ASSERT_TRUE(before.has_value());
    chime::base::thread([] {
        EXPECT_TRUE(chime::base::set_timer_slack(1ns));
        EXPECT_EQ(chime::base::timer_slack(), 1ns);
        EXPECT_TRUE(chime::base::set_timer_slack(2us));
        EXPECT_EQ(chime::base::timer_slack(), 2us);
    }).join();
    EXPECT_EQ(chime::base::timer_slack(), before);
}

TEST(timer_slack, of_many_seconds_is_read_back_whole) {
    chime::base::thread([] {
        ASSERT_TRUE(chime::base::set_timer_slack(5s));
        EXPECT_EQ(chime::base::timer_slack(), 5s);
    }).join();
}

TEST(timer_slack, refuses_a_negative_one_and_changes_nothing) {
    chime::base::thread([] {
        ASSERT_TRUE(chime::base::set_timer_slack(3us));
        EXPECT_FALSE(chime::base::set_timer_slack(-1ns));
        EXPECT_EQ(chime::base::timer_slack(), 3us);
    }).join();
}
