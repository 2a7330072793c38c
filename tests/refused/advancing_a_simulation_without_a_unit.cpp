// SPDX-License-Identifier: MIT
// says: a delay has a unit, and this is a number
#include <chime/testing.hpp>

#include <chrono>

void start(chime::testing::simulation& sim) {
#ifdef MISTAKE
    sim.advance(5);
#else
    sim.advance(std::chrono::seconds{5});
#endif
}
