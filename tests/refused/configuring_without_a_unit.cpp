// SPDX-License-Identifier: MIT
// says: a delay has a unit, and this is a number
#include <chime/runtime.hpp>

using namespace std::chrono_literals;

void start() {
    chime::runtime_config config;
#ifdef MISTAKE
    config.slack = 1;
#else
    config.slack = 0.5ms;
#endif
}
