// SPDX-License-Identifier: MIT
#include "base/striped_counter.hpp"

#include "base/thread.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace {

using chime::base::striped_counter;

static_assert(sizeof(striped_counter<8>) == 8 * chime::base::cache_line_bytes, "a line for every stripe");

}  // namespace

TEST(striped_counter, starts_at_zero_and_sums_what_one_thread_adds) {
    striped_counter<> counter;
    EXPECT_EQ(counter.sum(), 0U);
    counter.add(1);
    counter.add(41);
    counter.add(0);
    EXPECT_EQ(counter.sum(), 42U);
}

TEST(striped_counter, subtracts_by_adding_the_complement) {
    striped_counter<> counter;
    counter.add(10);
    chime::base::thread([&] { counter.add(~std::uint64_t{0} - 2); }).join();
    EXPECT_EQ(counter.sum(), 7U);
}

TEST(striped_counter, loses_nothing_of_what_many_threads_add) {
    constexpr std::uint64_t threads = 8;
    constexpr std::uint64_t additions = 50'000;
    striped_counter<4> counter;  // Fewer stripes than threads: some share.
    std::vector<chime::base::thread> adders;
    for (std::uint64_t each = 0; each < threads; ++each) {
        adders.emplace_back([&] {
            for (std::uint64_t round = 0; round < additions; ++round) counter.add(3);
        });
    }
    std::uint64_t last = 0;
    for (int reading = 0; reading < 1000; ++reading) {
        const std::uint64_t sum = counter.sum();
        ASSERT_GE(sum, last) << "a stripe ran back";
        ASSERT_LE(sum, 3 * threads * additions);
        last = sum;
    }
    for (chime::base::thread& each : adders) each.join();
    EXPECT_EQ(counter.sum(), 3 * threads * additions);
}

TEST(striped_counter, works_with_a_single_stripe) {
    striped_counter<1> counter;
    counter.add(5);
    EXPECT_EQ(counter.sum(), 5U);
}

TEST(thread_number, is_the_same_for_one_thread_and_different_for_another) {
    const std::uint32_t mine = chime::base::thread_number();
    EXPECT_EQ(chime::base::thread_number(), mine);
    chime::base::thread([mine] { EXPECT_NE(chime::base::thread_number(), mine); }).join();
}
