// SPDX-License-Identifier: MIT
// says: a guard that is dropped at once guards nothing
#include <chime/io_context.hpp>

void wait(chime::io_context& ctx) {
#ifdef MISTAKE
    ctx.make_work_guard();
#endif
    const auto guard = ctx.make_work_guard();
    ctx.run();
}
