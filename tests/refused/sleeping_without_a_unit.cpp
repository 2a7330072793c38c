// SPDX-License-Identifier: MIT
// says: a delay has a unit, and this is a number
#include <chime/sleep.hpp>
#include <chime/task.hpp>

#include <chrono>

chime::task<> start() {
#ifdef MISTAKE
    co_await chime::sleep_for(0.5);
#else
    co_await chime::sleep_for(std::chrono::duration<double>{0.5});
#endif
}
