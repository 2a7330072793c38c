// SPDX-License-Identifier: MIT
// says: a delay has a unit, and this is a number
#include <chime/io_context.hpp>

#include <chrono>

void start(chime::io_context& ctx) {
#ifdef MISTAKE
    static_cast<void>(ctx.timers().try_after(5, [] {}));
#else
    static_cast<void>(ctx.timers().try_after(std::chrono::seconds{5}, [] {}));
#endif
}
