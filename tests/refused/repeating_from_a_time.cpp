// SPDX-License-Identifier: MIT
// says: a period is a duration, and this is a time
#include <chime/io_context.hpp>

#include <chrono>

void start(chime::io_context& ctx) {
    using namespace std::chrono_literals;
#ifdef MISTAKE
    ctx.timers().every(chime::clock::now() + 5s, chime::missed_ticks::skip, [] {});
#else
    ctx.timers().every(5s, chime::missed_ticks::skip, [] {});
#endif
}
