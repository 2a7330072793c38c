// SPDX-License-Identifier: MIT
// says: this is a source, and what is watched is a token of it: write source.token()
#include <chime/timers.hpp>

#include <chrono>
#include <stop_token>

void start(chime::timers& timers, std::stop_source& source) {
#ifdef MISTAKE
    timers.after(
        std::chrono::seconds{1}, [] {}, source);
#else
    timers.after(
        std::chrono::seconds{1}, [] {}, source.get_token());
#endif
}
