// SPDX-License-Identifier: MIT

// What somebody else's program may look like: it takes every public header and something of the compiled library.

#include <chime/time.hpp>
#include <chime/version.hpp>
#include <chime/wheel.hpp>

#include <chrono>
#include <cstdio>
#include <string>

int main() {
    using namespace std::chrono_literals;
    const chime::time_point start{};
    chime::timer_wheel<std::string> wheel;
    wheel.arm(chime::deadline_after(start, 2s), "world");
    wheel.arm(chime::deadline_after(start, 1s), "hello, ");
    const chime::timer_id cancelled = wheel.arm(start, "cruel ");
    wheel.cancel(cancelled);

    std::string said;
    wheel.advance(start + 3s, [&](std::string&& word) { said += word; });
    std::printf("%s from chime %.*s\n", said.c_str(), static_cast<int>(chime::version().size()),
                chime::version().data());
    return said == "hello, world" && !chime::version().empty() ? 0 : 1;
}
