// SPDX-License-Identifier: MIT
// says: a wheel takes times of std::chrono::steady_clock: write now + 5ms
#include <chime/wheel.hpp>

#include <chrono>

void turn(chime::timer_wheel<int>& wheel) {
    using namespace std::chrono_literals;
#ifdef MISTAKE
    wheel.advance(5ms, [](int) {});
#else
    wheel.advance(std::chrono::steady_clock::now() + 5ms, [](int) {});
#endif
}
