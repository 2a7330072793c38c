// SPDX-License-Identifier: MIT
// says: a deadline is a time of chime::clock, which is std::chrono::steady_clock
#include <chime/io_context.hpp>

#include <chrono>

void start(chime::io_context& ctx) {
    constexpr std::chrono::hours later{1};
#ifdef MISTAKE
    ctx.timers().at(std::chrono::system_clock::now() + later, [] {});
#else
    ctx.timers().at(chime::clock::now() + later, [] {});
#endif
}
