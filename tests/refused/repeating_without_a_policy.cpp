// SPDX-License-Identifier: MIT
// says: every(period, chime::missed_ticks::skip, function), or ::burst, or ::delay
#include <chime/io_context.hpp>

#include <chrono>

void start(chime::io_context& ctx) {
    constexpr std::chrono::seconds period{1};
#ifdef MISTAKE
    ctx.timers().every(period, [] {});
#else
    ctx.timers().every(period, chime::missed_ticks::skip, [] {});
#endif
}
