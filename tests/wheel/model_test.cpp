// SPDX-License-Identifier: MIT
//
// Short random runs against the sorted model, audited after every step. The long ones are in long_model_test.cpp.

#include <gtest/gtest.h>

#include <string>

#include "support/random_run.hpp"

namespace chime::test {
namespace {

/// One short run; a disagreement becomes a failure that says how to see it again.
template <unsigned GenerationBits = 32>
void audited_run(const wheel_config& config, const operation_mix& mix, std::uint64_t salt, std::uint64_t operations) {
    using run_type = random_run<GenerationBits>;
    try {
        run_type run(config, mix, process_seed() * std::uint64_t{1'000'003} + salt,
                     run_type::duel::audit::after_each_operation);
        run.run(operations);
        run.finish();
    } catch (const disagreement& e) {
        ADD_FAILURE() << e.what() << "\nmix " << mix.name << ", resolution " << config.resolution.count()
                      << " ns, start " << to_ns(config.start) << " ns, stale slack " << config.stale_slack << "\n"
                      << replay_hint();
    }
}

wheel_config config_for(time_point start, std::int64_t resolution_ns) {
    wheel_config config;
    config.start = start;
    config.resolution = nanoseconds(resolution_ns);
    config.stale_slack = 64;
    return config;
}

class model_run : public ::testing::TestWithParam<operation_mix> {};

TEST_P(model_run, agrees_with_the_sorted_model_at_every_resolution) {
    std::uint64_t salt = 0;
    for (const std::int64_t resolution_ns : resolutions_ns) {
        audited_run(config_for(at_ns(123'456'789'012), resolution_ns), GetParam(), ++salt, scaled(3'000));
        if (HasFailure()) {
            return;
        }
    }
}

TEST_P(model_run, agrees_with_the_sorted_model_whatever_the_start_time) {
    std::uint64_t salt = 1'000;
    const auto from = [&](std::int64_t start_ns) {
        const std::int64_t resolution_ns = resolutions_ns[++salt % resolutions_ns.size()];
        audited_run(config_for(at_ns(start_ns), resolution_ns), GetParam(), salt, CHIME_TEST_SCALE > 1 ? 40 : 150);
    };
    for (unsigned exponent = 0; exponent <= 62 && !HasFailure(); ++exponent) {
        for (const int offset : {-1, 0, 1}) {
            from(power_ns(exponent) + offset);
            from(-power_ns(exponent) + offset);
        }
    }
    for (const int offset : {0, 1, 2}) {
        from(to_ns(time_point::min()) + offset);
        from(to_ns(time_point::max()) - offset);
    }
}

TEST_P(model_run, agrees_with_the_sorted_model_when_generations_have_four_bits) {
    for (const std::int64_t resolution_ns : resolutions_ns) {
        audited_run<4>(config_for(at_ns(-5), resolution_ns), GetParam(), static_cast<std::uint64_t>(resolution_ns),
                       scaled(3'000));
    }
}

INSTANTIATE_TEST_SUITE_P(every_mix, model_run, ::testing::ValuesIn(all_mixes),
                         [](const auto& made) { return std::string(made.param.name); });

}  // namespace
}  // namespace chime::test
