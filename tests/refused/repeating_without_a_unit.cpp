// SPDX-License-Identifier: MIT
// says: a delay has a unit, and this is a number
#include <chime/io_context.hpp>

#include <chrono>

void start(chime::io_context& ctx) {
#ifdef MISTAKE
    ctx.timers().every(5, chime::missed_ticks::skip, [] {});
#else
    ctx.timers().every(std::chrono::seconds{5}, chime::missed_ticks::skip, [] {});
#endif
}
