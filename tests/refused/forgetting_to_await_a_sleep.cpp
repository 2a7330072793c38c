// SPDX-License-Identifier: MIT
// says: a sleep does nothing until it is awaited
#include <chime/sleep.hpp>
#include <chime/task.hpp>

#include <chrono>

chime::task<> nap() {
#ifdef MISTAKE
    chime::sleep_for(std::chrono::seconds{1});
#endif
    co_await chime::sleep_for(std::chrono::seconds{1});
}
