// SPDX-License-Identifier: MIT

// The bare wheel, in a loop that has nothing else to do.

#include <chime/wheel.hpp>

#include <chrono>
#include <cstdio>
#include <thread>

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

int main() {
    chime::timer_wheel<const char*> timers({.start = clock_type::now()});

    const chime::timer_id tea = timers.arm(clock_type::now() + 20ms, "tea");
    const chime::timer_id train = timers.arm(clock_type::now() + 1h, "the train");
    timers.arm(clock_type::now() + 30ms, "cake");

    timers.postpone(tea, clock_type::now() + 40ms);  // In place, to later or earlier.
    if (const auto what = timers.cancel(train)) std::printf("not waiting for %s\n", *what);

    while (const auto deadline = timers.next_deadline()) {  // Your loop: epoll, a GUI, the frames of a game.
        std::this_thread::sleep_until(*deadline);
        timers.advance(clock_type::now(), [](const char* what) { std::printf("time for %s\n", what); });
    }
}
