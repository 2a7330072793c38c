// SPDX-License-Identifier: MIT
#include "simulation/duel.hpp"

#include <cstdlib>
#include <iostream>

namespace chime::test {
namespace {

/// Other seeds, another number of them, or one alone: CHIME_FIRST_SEED=50001, CHIME_SEEDS=50000, CHIME_SEED=17.
std::uint64_t wanted(const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(simulation, agrees_with_a_dumb_model_whatever_the_seed) {
    std::uint64_t first = wanted("CHIME_FIRST_SEED", 1);
    std::uint64_t count = wanted("CHIME_SEEDS", scaled(5'000));
    if (std::getenv("CHIME_SEED") != nullptr) {
        first = wanted("CHIME_SEED", 1);
        count = 1;
    }
    timer_stats sums;
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        duel fought(seed);
        const std::string problem = fought.fight();
        ASSERT_TRUE(problem.empty()) << problem << "\nseed " << seed << "; to see it again: CHIME_SEED=" << seed
                                     << " chime_simulation_tests "
                                        "--gtest_filter=simulation.agrees_with_a_dumb_model_whatever_the_seed";
        sums.armed += fought.sums().armed;
        sums.fired += fought.sums().fired;
        sums.cancelled += fought.sums().cancelled;
        sums.postponed += fought.sums().postponed;
        sums.stolen += fought.sums().stolen;
        sums.adopted += fought.sums().adopted;
        sums.resumed_inline += fought.sums().resumed_inline;
        sums.resumed_queued += fought.sums().resumed_queued;
    }
    std::cout << count << " seeds: armed " << sums.armed << ", fired " << sums.fired << ", cancelled " << sums.cancelled
              << ", postponed " << sums.postponed << ", stolen " << sums.stolen << ", adopted " << sums.adopted
              << ", resumed inline " << sums.resumed_inline << " and queued " << sums.resumed_queued << '\n';
    if (count < 100) return;
    // A run that does not get anywhere proves nothing.
    EXPECT_GT(sums.fired, 0U);
    EXPECT_GT(sums.cancelled, 0U);
    EXPECT_GT(sums.stolen, 0U);
    EXPECT_GT(sums.adopted, 0U);
    EXPECT_GT(sums.resumed_inline, 0U);
}

TEST(simulation, is_the_same_for_the_same_seed) {
    const std::uint64_t first = wanted("CHIME_SEED", wanted("CHIME_FIRST_SEED", 1));
    for (std::uint64_t seed = first; seed < first + 50; ++seed) {
        duel once(seed);
        ASSERT_EQ(once.fight(), "") << "seed " << seed;
        duel again(seed);
        ASSERT_EQ(again.fight(), "") << "seed " << seed;
        ASSERT_EQ(once.trace(), again.trace()) << "seed " << seed;
    }
}

}  // namespace
}  // namespace chime::test
