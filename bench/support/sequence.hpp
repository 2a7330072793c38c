// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace chime_bench {

/// Which of a contender's N timers is meant; 0 .. N-1.
using slot_index = std::uint32_t;

/// Delays drawn uniformly from [shortest, longest).
///
/// They are multiples of 16 ns above the shortest, so that a minute fits 32 bits and a draw is one multiplication:
/// at ten nanoseconds per operation the dice must not be what is measured.
struct delay_range {
    std::chrono::nanoseconds shortest;
    std::chrono::nanoseconds longest;

    [[nodiscard]] constexpr std::chrono::nanoseconds at(std::uint32_t fraction) const noexcept {
        const auto steps = static_cast<std::uint64_t>((longest - shortest).count()) / 16;
        return shortest + std::chrono::nanoseconds{((steps * fraction) >> 32) * 16};
    }
};

/// The random numbers of a run: the same seed gives every contender the same slots and delays.
///
/// A Weyl sequence through a mixing function (the construction known as SplitMix64): successive numbers do not wait
/// for each other in the processor.
class sequence {
 public:
    struct draw {
        std::uint32_t slot_fraction;
        std::uint32_t delay_fraction;

        [[nodiscard]] slot_index slot_below(std::size_t count) const noexcept {
            return static_cast<slot_index>((count * std::uint64_t{slot_fraction}) >> 32);
        }
    };

    explicit sequence(std::uint64_t seed) noexcept : state_(seed) {}

    draw next() noexcept {
        state_ += 0x9e3779b97f4a7c15;
        std::uint64_t bits = state_;
        bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
        bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
        bits ^= bits >> 31;
        return {static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(bits)};
    }

 private:
    std::uint64_t state_;
};

}  // namespace chime_bench
