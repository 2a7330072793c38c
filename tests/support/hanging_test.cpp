// SPDX-License-Identifier: MIT
//
// Tests that never end, on two threads, to see what they say when their time is up.

#include "runtime/watchdog.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

std::atomic<bool> is_over{false};

[[gnu::noinline]] void waits_for_ever() {
    is_over.wait(false);
    is_over.wait(false);  // Not the last call: it must be on the stack.
}

[[gnu::noinline]] void spins_for_ever() {
    while (!is_over) {}
}

[[gnu::noinline]] void waits_and_spins_for_ever() {
    std::thread other(waits_for_ever);
    spins_for_ever();
    other.join();
}

TEST(test, that_hangs) {
    waits_and_spins_for_ever();
}

TEST(test, that_hangs_under_a_watchdog) {
    const chime::test::watchdog guard("watched", std::chrono::seconds{1});
    waits_and_spins_for_ever();
}

TEST(test, whose_child_hangs) {
    const pid_t child = ::fork();
    if (child == 0) waits_and_spins_for_ever();
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}
