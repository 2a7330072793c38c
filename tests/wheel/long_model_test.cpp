// SPDX-License-Identifier: MIT
//
// Twenty million mixed operations, and ten million postponements, against the sorted model.

#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "support/random_run.hpp"

namespace chime::test {
namespace {

class long_model_run : public ::testing::TestWithParam<operation_mix> {};

/// Ten mixes of this many operations make twenty million.
constexpr std::uint64_t operations_per_mix = 2'000'000;

TEST_P(long_model_run, two_million_mixed_operations_agree_with_the_sorted_model) {
    const operation_mix& mix = GetParam();
    const std::uint64_t rounds = mix.population > 10'000 ? 3 : 12;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        random_source random(process_seed() + 7919 * round);
        wheel_config config;
        config.start = at_ns(static_cast<std::int64_t>(random.next() >> (2 + random.below(40))));
        config.resolution = nanoseconds(resolutions_ns[(round + random.below(2)) % resolutions_ns.size()]);
        config.stale_slack = random.one_in(2) ? 64 : 4096;
        config.scrub_budget = random.one_in(2) ? 32 : 1000;
        using run_type = random_run<>;
        try {
            run_type run(config, mix, random.next(), run_type::duel::audit::off);
            run.run(scaled(operations_per_mix / rounds));
            run.finish();
        } catch (const disagreement& e) {
            FAIL() << e.what() << "\nround " << round << ", resolution " << config.resolution.count() << " ns, start "
                   << to_ns(config.start) << " ns, stale slack " << config.stale_slack << "\n"
                   << replay_hint();
        }
    }
    std::cout << "seed " << process_seed() << '\n';
}

INSTANTIATE_TEST_SUITE_P(every_mix, long_model_run, ::testing::ValuesIn(all_mixes),
                         [](const auto& made) { return std::string(made.param.name); });

TEST(long_postponement_run, ten_million_random_postponements_lose_nothing) {
    random_source random(process_seed());
    wheel_config config;
    config.stale_slack = 64;
    try {
        wheel_duel<> duel(config);
        constexpr std::size_t population = 2'000;
        const auto draw = [&] {
            const std::int64_t longest_ns = std::int64_t{1} << (4 + random.below(36));
            return later(duel.model().now(), random.between(-longest_ns / 8, longest_ns));
        };
        for (std::uint64_t i = 0; i < scaled(10'000'000); ++i) {
            while (duel.live().size() < population) {
                duel.arm(draw());
            }
            duel.postpone(duel.live()[random.below(population)], draw());
            if (random.one_in(200)) {
                duel.advance(later(duel.model().now(), random.between(0, 20'000'000)));
            }
        }
        duel.drain(time_point::max(), 7);
        EXPECT_EQ(duel.live().size(), 0U);
    } catch (const disagreement& e) {
        FAIL() << e.what() << "\n" << replay_hint();
    }
    std::cout << "seed " << process_seed() << '\n';
}

}  // namespace
}  // namespace chime::test
