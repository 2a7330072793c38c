// SPDX-License-Identifier: MIT
#include "base/timer_descriptor.hpp"

#include "base/clock.hpp"

#include <chrono>

#include <gtest/gtest.h>

#include "support/descriptors.hpp"

namespace {

using chime::test::construct_without_descriptors;
using chime::test::is_readable;
using namespace std::chrono_literals;
using chime::base::now;
using chime::base::timer_descriptor;

}  // namespace

TEST(timer_descriptor, is_silent_until_it_is_set) {
    const timer_descriptor timer;
    EXPECT_FALSE(is_readable(timer.get()));
    EXPECT_FALSE(timer.drain());
}

TEST(timer_descriptor, becomes_readable_at_its_deadline_and_never_before) {
    const timer_descriptor timer;
    for (int round = 0; round < 10; ++round) {
        const chime::time_point deadline = now() + 2ms;
        timer.set(deadline);
        ASSERT_TRUE(is_readable(timer.get(), -1));
        ASSERT_GE(now(), deadline);
        ASSERT_TRUE(timer.drain());
        ASSERT_FALSE(timer.drain());
    }
}

TEST(timer_descriptor, is_readable_at_once_for_any_passed_deadline) {
    const timer_descriptor timer;
    for (const chime::time_point past :
         {now() - 1s, chime::time_point{1ns}, chime::time_point{}, chime::time_point{-1ns}, chime::time_point::min()}) {
        timer.set(past);
        EXPECT_TRUE(is_readable(timer.get(), -1));
        EXPECT_TRUE(timer.drain());
    }
}

TEST(timer_descriptor, never_comes_for_never) {
    const timer_descriptor timer;
    timer.set(now() - 1s);
    EXPECT_TRUE(is_readable(timer.get(), -1));
    timer.set(chime::never);
    EXPECT_FALSE(is_readable(timer.get()));
    EXPECT_FALSE(timer.drain());
}

TEST(timer_descriptor, forgets_the_deadline_before) {
    const timer_descriptor timer;
    timer.set(now() - 1s);
    timer.set(now() + 1h);
    EXPECT_FALSE(is_readable(timer.get()));
    timer.set(now());
    EXPECT_TRUE(is_readable(timer.get(), -1));
}

TEST(timer_descriptor, takes_the_last_time_that_there_is_before_never) {
    const timer_descriptor timer;
    timer.set(chime::never - 1ns);
    EXPECT_FALSE(is_readable(timer.get()));
}

TEST(timer_descriptor_death_test, refuses_with_the_reason_when_no_descriptor_is_left) {
    EXPECT_EXIT(construct_without_descriptors<timer_descriptor>(), testing::ExitedWithCode(0), "");
}
