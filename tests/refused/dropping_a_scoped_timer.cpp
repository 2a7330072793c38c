// SPDX-License-Identifier: MIT
// says: a scoped_timer that is dropped at once cancels its timer
#include <chime/io_context.hpp>

#include <chrono>

void start(chime::io_context& ctx) {
#ifdef MISTAKE
    chime::scoped_timer(ctx.timers(), ctx.timers().after(std::chrono::seconds{1}, [] {}));
#else
    const chime::scoped_timer kept(ctx.timers(), ctx.timers().after(std::chrono::seconds{1}, [] {}));
#endif
}
