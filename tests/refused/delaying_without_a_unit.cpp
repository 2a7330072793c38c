// SPDX-License-Identifier: MIT
// says: a delay has a unit, and this is a number
#include <chime/io_context.hpp>
#include <chime/timer_cell.hpp>

#include <chrono>

void start(chime::io_context& ctx) {
    using namespace std::chrono_literals;
#ifdef MISTAKE
    const chime::timer_delay tick(ctx.timers(), 5);
#else
    const chime::timer_delay tick(ctx.timers(), 5s);
#endif
}
