// SPDX-License-Identifier: MIT
#include "base/timer_descriptor.hpp"

#include "base/clock.hpp"

#include <chrono>
#include <cstdlib>
#include <system_error>

#include <poll.h>
#include <sys/resource.h>

#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;
using chime::base::now;
using chime::base::timer_descriptor;

bool is_readable(int fd, int timeout_ms = 0) {
    pollfd entry{fd, POLLIN, 0};
    return ::poll(&entry, 1, timeout_ms) == 1;
}

/// Leaves with 0 when the constructor refuses with the right error; no new descriptor can be had meanwhile.
void construct_without_descriptors() {
    // A sanitizer needs a descriptor when it meets the category of an error for the first time.
    if (std::make_error_code(std::errc::too_many_files_open).message().empty()) std::_Exit(3);
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    rlimit none = before;
    none.rlim_cur = 0;
    ::setrlimit(RLIMIT_NOFILE, &none);
    try {
        const timer_descriptor refused;
    } catch (const std::system_error& error) {
        ::setrlimit(RLIMIT_NOFILE, &before);  // For the sanitizer again.
        std::_Exit(error.code() == std::errc::too_many_files_open ? 0 : 2);
    }
    std::_Exit(1);
}

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
    EXPECT_EXIT(construct_without_descriptors(), testing::ExitedWithCode(0), "");
}
