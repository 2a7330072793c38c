// SPDX-License-Identifier: MIT
// says: this is a source, and what is watched is a token of it: write source.token()
#include <chime/sleep.hpp>
#include <chime/task.hpp>

#include <chrono>

chime::task<> start(chime::cancel_source& source) {
#ifdef MISTAKE
    co_await chime::sleep_for(std::chrono::seconds{1}, source);
#else
    co_await chime::sleep_for(std::chrono::seconds{1}, source.token());
#endif
}
