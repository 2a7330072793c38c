// SPDX-License-Identifier: MIT
// says: a delay is a duration, and this is a time
#include <chime/testing.hpp>

#include <chrono>

void go_on(chime::testing::virtual_context& ctx) {
    using namespace std::chrono_literals;
#ifdef MISTAKE
    ctx.advance(ctx.now() + 5s);
#else
    ctx.advance_to(ctx.now() + 5s);
#endif
}
