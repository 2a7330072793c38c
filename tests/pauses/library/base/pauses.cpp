// SPDX-License-Identifier: MIT
#include "base/atomic.hpp"

#include <chrono>
#include <thread>

namespace chime::inline v0::base {

namespace {

constexpr std::uint32_t mean_steps_between = 512;
constexpr std::uint64_t longest_ns = 10'000;

std::atomic<std::uint64_t> threads_seen{0};
std::atomic<std::uint64_t> pauses_taken{0};

thread_local std::uint64_t state = 0;

/// Every thread draws from a sequence of its own (SplitMix64).
std::uint64_t draw() noexcept {
    if (state == 0) state = (threads_seen.fetch_add(1, std::memory_order_relaxed) + 1) << 40U;
    state += 0x9e3779b97f4a7c15U;
    std::uint64_t bits = state;
    bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
    return bits ^ (bits >> 31U);
}

}  // namespace

thread_local constinit std::uint32_t pauses::steps_left = 1;

std::uint64_t pauses::taken() noexcept {
    return pauses_taken.load(std::memory_order_relaxed);
}

/// Up to ten microseconds, half of the time without the processor.
void pauses::pause() noexcept {
    const std::uint64_t drawn = draw();
    steps_left = 1 + static_cast<std::uint32_t>(drawn >> 32U) % (2 * mean_steps_between);
    pauses_taken.fetch_add(1, std::memory_order_relaxed);
    const std::chrono::nanoseconds length{(drawn & 0xffffU) * longest_ns >> 16U};
    const bool gives_way = (drawn & 0x10000U) != 0;
    const auto until = std::chrono::steady_clock::now() + length;
    do {
        if (gives_way) std::this_thread::yield();
    } while (std::chrono::steady_clock::now() < until);
}

}  // namespace chime::inline v0::base
