// SPDX-License-Identifier: MIT
#include "base/striped_counters.hpp"

#include "base/thread.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace {

using chime::base::striped_counters;

enum class counted { bytes, words };

static_assert(sizeof(striped_counters<counted, 8>) == (1 + 2 * 8) * chime::base::cache_line_bytes,
              "a line for every stripe, those that are shared included, and one that is only read");

}  // namespace

TEST(striped_counters, starts_at_zero_and_sums_what_one_thread_adds) {
    striped_counters<counted> counter;
    EXPECT_EQ(counter.sum(counted::words), 0U);
    counter.add(counted::words, 1);
    counter.add(counted::words, 41);
    counter.add(counted::words, 0);
    EXPECT_EQ(counter.sum(counted::words), 42U);
}

TEST(striped_counters, keeps_those_of_one_line_apart) {
    striped_counters<counted> counter;
    counter.add(counted::bytes, 8);
    counter.add(counted::words, 1);
    EXPECT_EQ(counter.sum(counted::bytes), 8U);
    EXPECT_EQ(counter.sum(counted::words), 1U);
}

TEST(striped_counters, subtracts_by_adding_the_complement) {
    striped_counters<counted> counter;
    counter.add(counted::words, 10);
    chime::base::thread([&] { counter.add(counted::words, ~std::uint64_t{0} - 2); }).join();
    EXPECT_EQ(counter.sum(counted::words), 7U);
}

TEST(striped_counters, loses_nothing_of_what_many_threads_add) {
    constexpr std::uint64_t threads = 8;
    constexpr std::uint64_t additions = 50'000;
    striped_counters<counted, 2>
        counter;  // Two have one of their own, at the most, and three or more share each of the others.
    std::vector<chime::base::thread> adders;
    for (std::uint64_t each = 0; each < threads; ++each) {
        adders.emplace_back([&] {
            for (std::uint64_t round = 0; round < additions; ++round) counter.add(counted::words, 3);
        });
    }
    std::uint64_t last = 0;
    for (int reading = 0; reading < 1000; ++reading) {
        const std::uint64_t sum = counter.sum(counted::words);
        ASSERT_GE(sum, last) << "a stripe ran back";
        ASSERT_LE(sum, 3 * threads * additions);
        last = sum;
    }
    for (chime::base::thread& each : adders) each.join();
    EXPECT_EQ(counter.sum(counted::words), 3 * threads * additions);
}

TEST(striped_counters, works_with_a_single_stripe) {
    striped_counters<counted, 1> counter;
    counter.add(counted::words, 5);
    EXPECT_EQ(counter.sum(counted::words), 5U);
}
