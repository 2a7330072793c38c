// SPDX-License-Identifier: MIT
// says: a wheel takes times of std::chrono::steady_clock: write now + 5ms
#include <chime/wheel.hpp>

#include <chrono>

void start(chime::timer_wheel<int>& wheel) {
    using namespace std::chrono_literals;
#ifdef MISTAKE
    wheel.arm(5ms, 1);
#else
    wheel.arm(std::chrono::steady_clock::now() + 5ms, 1);
#endif
}
