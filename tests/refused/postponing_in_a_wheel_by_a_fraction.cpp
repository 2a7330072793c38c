// SPDX-License-Identifier: MIT
// says: bring what counts in floating point to nanoseconds with std::chrono::ceil
#include <chime/wheel.hpp>

#include <chrono>

bool put_off(chime::timer_wheel<int>& wheel, chime::timer_id id, std::chrono::steady_clock::time_point now) {
    using namespace std::chrono_literals;
#ifdef MISTAKE
    return wheel.postpone(id, now + 0.5s);
#else
    return wheel.postpone(id, now + std::chrono::ceil<std::chrono::nanoseconds>(0.5s));
#endif
}
