// SPDX-License-Identifier: MIT
// says: a callback is called without arguments, so without an error_code, too
#include <chime/io_context.hpp>

#include <chrono>
#include <system_error>

void start(chime::io_context& ctx) {
#ifdef MISTAKE
    ctx.timers().after(std::chrono::seconds{1}, [](std::error_code) {});
#else
    ctx.timers().after(std::chrono::seconds{1}, [] {});
#endif
}
