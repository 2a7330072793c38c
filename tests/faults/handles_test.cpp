// SPDX-License-Identifier: MIT
//
// Handles of every kind, right and wrong, in an order drawn from a seed.

#include "support/random.hpp"
#include "support/storm_of_handles.hpp"

#include <gtest/gtest.h>

namespace chime::test {
namespace {

TEST(handles, that_are_stale_foreign_doubled_or_forged_touch_nobody) {
    SCOPED_TRACE(replay_hint());
    for (std::uint64_t round = 0; round < scaled(400); ++round) {
        random_source random(process_seed() + round);
        storm_of_handles<random_source> storm(random);
        for (int step = 0; step < 1'000; ++step) storm.step();
        storm.finish();
        ASSERT_EQ(storm.problem(), "") << "round " << round;
    }
}

}  // namespace
}  // namespace chime::test
