// SPDX-License-Identifier: MIT
// says: a delay is a duration, and this is a time
#include <chime/io_context.hpp>

#include <chrono>

void start(chime::io_context& ctx) {
#ifdef MISTAKE
    ctx.run_for(chime::clock::now());
#else
    ctx.run_until(chime::clock::now());
#endif
}
