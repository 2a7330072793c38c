// SPDX-License-Identifier: MIT
// says: a delay is a duration, and this is a time
#include <chime/task.hpp>
#include <chime/timers.hpp>

#include <chrono>

chime::task<> start(chime::timers& timers) {
#ifdef MISTAKE
    co_await timers.sleep_for(chime::clock::now());
#else
    co_await timers.sleep_until(chime::clock::now());
#endif
}
