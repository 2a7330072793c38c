// SPDX-License-Identifier: MIT
// says: a delay is a duration, and this is a time
#include <chime/sleep.hpp>
#include <chime/task.hpp>

#include <chrono>

chime::task<> start() {
#ifdef MISTAKE
    co_await chime::sleep_for(chime::clock::now());
#else
    co_await chime::sleep_until(chime::clock::now());
#endif
}
