// SPDX-License-Identifier: MIT
// says: a deadline is a time, and this is a number
#include <chime/io_context.hpp>

#include <chrono>

void start(chime::io_context& ctx) {
    using namespace std::chrono_literals;
#ifdef MISTAKE
    ctx.timers().at(5, [] {});
#else
    ctx.timers().at(chime::clock::now() + 5s, [] {});
#endif
}
