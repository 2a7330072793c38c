// SPDX-License-Identifier: MIT
#include "soak/trouble.hpp"

#include "faults/injection.hpp"

#include <array>
#include <chrono>
#include <thread>

namespace chime::soak {

using namespace std::chrono_literals;

void trouble::strike() {
    if (random_.one_in(2)) withhold_memory();
    if (random_.one_in(3)) jump_ahead();
}

void trouble::withhold_memory() {
    const std::array<test::failing_point*, 4> kinds{&test::faults::allocations, &test::faults::frames,
                                                    &test::faults::mappings, &test::faults::commits};
    // All of it, or some: then who has got the first of what he needs may not get the second.
    constexpr std::array<std::uint64_t, 4> odds{1, 2, 3, 8};
    const std::uint64_t one_in = odds[random_.below(odds.size())];
    for (test::failing_point* const each : kinds) each->fail_one_in(one_in);
    std::this_thread::sleep_for(std::chrono::microseconds{random_.below(4'000)});
    for (test::failing_point* const each : kinds) {
        each->recover();
        refusals_ += each->refusals();
    }
}

void trouble::jump_ahead() {
    constexpr auto day = 24h;
    constexpr std::array<duration, 8> steps{1ns, 1ms, 1ms, 1s, 1s, 1h, 13 * day, 365 * day};
    constexpr duration most = 200 * 365 * day;  // It can show 292 years, and a soak may take days.
    const duration step = steps[random_.below(steps.size())];
    if (rig_.jumping().ahead() > most && step > 1s) return;
    rig_.jumping().jump(step);
    ++jumps_;
}

}  // namespace chime::soak
