// SPDX-License-Identifier: MIT
// says: one that is cancelled is simply not called
#include <chime/io_context.hpp>

#include <chrono>
#include <system_error>

bool start(chime::io_context& ctx) {
    constexpr std::chrono::seconds period{1};
#ifdef MISTAKE
    return ctx.timers().try_every(period, chime::missed_ticks::skip, [](std::error_code) {}).has_value();
#else
    return ctx.timers().try_every(period, chime::missed_ticks::skip, [] {}).has_value();
#endif
}
