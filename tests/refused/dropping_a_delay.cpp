// SPDX-License-Identifier: MIT
// says: a delay does nothing until it is awaited
#include <chime/io_context.hpp>
#include <chime/task.hpp>
#include <chime/timer_cell.hpp>

#include <chrono>

chime::task<> start(chime::io_context& ctx) {
#ifdef MISTAKE
    chime::timer_delay(ctx.timers(), std::chrono::seconds{1});
    co_return;
#else
    co_await chime::timer_delay(ctx.timers(), std::chrono::seconds{1});
#endif
}
