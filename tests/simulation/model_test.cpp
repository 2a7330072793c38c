// SPDX-License-Identifier: MIT
#include "simulation/duel.hpp"
#include "support/time_limit.hpp"

#include <cstdlib>
#include <iostream>

namespace chime::test {
namespace {

/// Other seeds, another number of them, or one alone: CHIME_FIRST_SEED=50001, CHIME_SEEDS=50000, CHIME_SEED=17.
std::uint64_t wanted(const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::uint64_t seed_now = 0;

TEST(simulation, agrees_with_a_dumb_model_whatever_the_seed) {
    std::uint64_t first = wanted("CHIME_FIRST_SEED", 1);
    std::uint64_t count = wanted("CHIME_SEEDS", scaled(5'000));
    if (std::getenv("CHIME_SEED") != nullptr) {
        first = wanted("CHIME_SEED", 1);
        count = 1;
    }
    timer_stats sums;
    duel::rarities seen;
    also_tells_where_it_stands = [] { std::cerr << "\nseed " << seed_now << std::endl; };
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        seed_now = seed;
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
        sums.resumed_by_shutdown += fought.sums().resumed_by_shutdown;
        sums.destroyed += fought.sums().destroyed;
        sums.refused += fought.sums().refused;
        seen.stops += fought.seen().stops;
        seen.retired += fought.seen().retired;
        seen.not_oneself += fought.seen().not_oneself;
        seen.missed_ticks += fought.seen().missed_ticks;
    }
    std::cout << count << " seeds: armed " << sums.armed << ", fired " << sums.fired << ", cancelled " << sums.cancelled
              << ", postponed " << sums.postponed << ", stolen " << sums.stolen << ", adopted " << sums.adopted
              << ", resumed inline " << sums.resumed_inline << " and queued " << sums.resumed_queued
              << ", told to stop " << sums.resumed_by_shutdown << ", destroyed " << sums.destroyed << ", refused "
              << sums.refused << "; stopped early " << seen.stops << ", retired from inside " << seen.retired
              << " and not oneself " << seen.not_oneself << ", missed ticks " << seen.missed_ticks << '\n';
    if (count < 100) return;
    // A run that does not get anywhere proves nothing.
    EXPECT_GT(sums.fired, 0U);
    EXPECT_GT(sums.cancelled, 0U);
    EXPECT_GT(sums.stolen, 0U);
    EXPECT_GT(sums.adopted, 0U);
    EXPECT_GT(sums.resumed_inline, 0U);
    EXPECT_GT(sums.refused, 0U);
    EXPECT_GT(sums.destroyed, 0U);
    EXPECT_GT(seen.stops, 0U);
    EXPECT_GT(seen.retired, 0U);
    EXPECT_GT(seen.not_oneself, 0U);
    EXPECT_GT(seen.missed_ticks, 0U);
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
