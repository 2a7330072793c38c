// SPDX-License-Identifier: MIT
// says: a delay has a unit, and this is a number
#include <chime/testing.hpp>

#include <chrono>

void start(chime::testing::virtual_context& ctx) {
#ifdef MISTAKE
    ctx.advance(5);
#else
    ctx.advance(std::chrono::seconds{5});
#endif
}
