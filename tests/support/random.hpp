// SPDX-License-Identifier: MIT
//
// Seeds and sizes of the random tests.
//
// A random test draws a new seed each run and names it when it fails; `--gtest_random_seed=N` repeats that run.
// CHIME_TEST_SCALE divides the length of long runs. Builds with a sanitizer, with the library's assertions or
// without optimisation run a twentieth unless they say otherwise.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

#if !defined(CHIME_TEST_SCALE)
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(_GLIBCXX_ASSERTIONS) || \
    !defined(__OPTIMIZE__)
#define CHIME_TEST_SCALE 20
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer) || \
    __has_feature(undefined_behavior_sanitizer)
#define CHIME_TEST_SCALE 20
#endif
#endif
#endif
#if !defined(CHIME_TEST_SCALE)
#define CHIME_TEST_SCALE 1
#endif

namespace chime::test {

/// Whether each operation costs many times more than in an optimised build.
inline constexpr bool slow_build = CHIME_TEST_SCALE > 1;

/// `full` operations in an optimised build, a fraction of them where each costs many times more.
constexpr std::uint64_t scaled(std::uint64_t full) {
    return full / CHIME_TEST_SCALE;
}

/// The seed of this process: the one given on the command line, otherwise a fresh one.
inline std::uint32_t process_seed() {
    static const std::uint32_t seed = [] {
        const auto given = static_cast<std::uint32_t>(::testing::GTEST_FLAG(random_seed));
        return given != 0 ? given : std::random_device{}() % 99'999 + 1;
    }();
    return seed;
}

/// What to type to see the same run again.
inline std::string replay_hint() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string hint = "replay with --gtest_random_seed=" + std::to_string(process_seed());
    if (info != nullptr) {
        hint += std::string(" --gtest_filter=") + info->test_suite_name() + "." + info->name();
    }
    return hint;
}

/// A small fast generator (xorshift with a multiplicative finish); equal seeds give equal runs on every platform.
class random_source {
 public:
    explicit random_source(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15U + 0x1234567U) {
        if (state_ == 0) {
            state_ = 1;
        }
        next();
        next();
    }

    std::uint64_t next() {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return state_ * 0x2545F4914F6CDD1DU;
    }

    /// Uniform in [0, bound); 0 for an empty range.
    std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : (next() >> 1) % bound; }

    /// Uniform in [low, high].
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
    }

    bool one_in(std::uint64_t odds) { return below(odds) == 0; }

 private:
    std::uint64_t state_;
};

}  // namespace chime::test
