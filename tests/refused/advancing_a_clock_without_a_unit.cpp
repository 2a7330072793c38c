// SPDX-License-Identifier: MIT
// says: a delay has a unit, and this is a number
#include <chime/testing.hpp>

#include <chrono>

void start(chime::testing::virtual_clock& clock) {
#ifdef MISTAKE
    clock.advance(5);
#else
    clock.advance(std::chrono::seconds{5});
#endif
}
