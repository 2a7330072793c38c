// SPDX-License-Identifier: MIT
#pragma once

#include "soak/rig.hpp"
#include "support/random.hpp"

#include <cstdint>

namespace chime::soak {

/// What the world does to everybody at once, now and then: for some milliseconds there is no memory, and a clock jumps ahead.
/// For the thread that shows progress, so that it is not short of memory itself.
class trouble {
 public:
    trouble(rig& used, std::uint64_t seed) : rig_(used), random_(seed) {}

    void strike();

    [[nodiscard]] std::uint64_t refusals() const noexcept { return refusals_; }
    [[nodiscard]] std::uint64_t jumps() const noexcept { return jumps_; }

 private:
    void withhold_memory();
    void jump_ahead();

    rig& rig_;
    test::random_source random_;
    std::uint64_t refusals_ = 0;
    std::uint64_t jumps_ = 0;
};

}  // namespace chime::soak
