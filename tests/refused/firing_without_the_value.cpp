// SPDX-License-Identifier: MIT
// says: on_due is called as on_due(value) or on_due(value, deadline)
#include <chime/wheel.hpp>

#include <string>

std::size_t fire(chime::timer_wheel<std::string>& wheel, std::chrono::steady_clock::time_point now) {
#ifdef MISTAKE
    return wheel.advance(now, [](std::string&) {});
#else
    return wheel.advance(now, [](const std::string&) {});
#endif
}
