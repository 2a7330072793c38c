// SPDX-License-Identifier: MIT
// says: a delay is a duration, and this is a time
#include <chime/io_context.hpp>

#include <chrono>

void start(chime::io_context& ctx) {
#ifdef MISTAKE
    static_cast<void>(ctx.timers().try_after(chime::clock::now(), [] {}));
#else
    static_cast<void>(ctx.timers().try_at(chime::clock::now(), [] {}));
#endif
}
