// SPDX-License-Identifier: MIT
//
// A test that never ends, on two threads, to see what it says when its time is up.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

std::atomic<bool> is_over{false};

[[gnu::noinline]] void waits_for_ever() {
    is_over.wait(false);
    is_over.wait(false);  // Not the last call: it must be on the stack.
}

[[gnu::noinline]] void spins_for_ever() {
    while (!is_over) {}
}

TEST(test, that_hangs) {
    std::thread other(waits_for_ever);
    spins_for_ever();
    other.join();
}
