// SPDX-License-Identifier: MIT
// says: every(period, chime::missed_ticks::skip, function), or ::burst, or ::delay
#include <chime/io_context.hpp>

#include <chrono>

bool start(chime::io_context& ctx, const chime::cancel_token& token) {
    constexpr std::chrono::seconds period{1};
#ifdef MISTAKE
    return ctx.timers()
        .try_every(
            period, [] {}, chime::missed_ticks::delay, token)
        .has_value();
#else
    const auto beat = [] {};
    return ctx.timers().try_every(period, chime::missed_ticks::delay, beat, token).has_value();
#endif
}
