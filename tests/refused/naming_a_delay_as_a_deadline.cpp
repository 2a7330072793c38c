// SPDX-License-Identifier: MIT
// says: a deadline is a time, and this is a delay
#include <chime/io_context.hpp>

#include <chrono>

void start(chime::io_context& ctx) {
#ifdef MISTAKE
    ctx.timers().at(std::chrono::seconds{1}, [] {});
#else
    ctx.timers().after(std::chrono::seconds{1}, [] {});
#endif
}
