// SPDX-License-Identifier: MIT
#pragma once

#include <chime/timers.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <thread>

inline constexpr int churn_rounds = 5'000;
inline constexpr std::size_t churn_batch = 64;
inline constexpr std::uint64_t churn_count = 2 * churn_rounds * churn_batch;

/// Arms and cancels, on two threads of its own: one of them has a number that one of the other copy has as well.
inline void churn(chime::timers& timers) {
    const auto lane = [&timers] {
        std::array<chime::timer_handle, churn_batch> armed;
        for (int round = 0; round < churn_rounds; ++round) {
            for (chime::timer_handle& each : armed) each = timers.after(std::chrono::hours{1}, [] {});
            for (const chime::timer_handle each : armed) timers.cancel(each);
        }
    };
    std::thread second(lane);
    std::thread(lane).join();
    second.join();
}
