// SPDX-License-Identifier: MIT
#include <chime/stats.hpp>

#include <gtest/gtest.h>

#include <chrono>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

TEST(lateness, of_nothing_is_zero) {
    EXPECT_EQ(lateness_histogram{}.quantile(0.99), 0ns);
}

TEST(lateness, of_a_share_is_the_end_of_the_bucket_that_it_reaches) {
    lateness_histogram seen;
    seen.buckets[4] = 90;
    seen.buckets[10] = 9;
    seen.buckets[20] = 1;
    seen.max = 1'000'000ns;
    EXPECT_EQ(seen.count(), 100U);
    EXPECT_EQ(seen.quantile(0.0), 16ns);
    EXPECT_EQ(seen.quantile(0.9), 16ns);
    EXPECT_EQ(seen.quantile(0.91), 1024ns);
    EXPECT_EQ(seen.quantile(0.99), 1024ns);
}

TEST(lateness, is_never_told_to_be_more_than_the_latest_was_whatever_is_asked_for) {
    lateness_histogram seen;
    seen.buckets[20] = 1;
    seen.buckets[63] = 1;
    seen.max = 1'000'000ns;
    for (const double fraction : {-1.0, 0.5, 1.0, 7.0}) EXPECT_EQ(seen.quantile(fraction), seen.max) << fraction;
}

}  // namespace
}  // namespace chime::test
