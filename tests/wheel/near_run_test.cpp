// SPDX-License-Identifier: MIT
//
// The part of a wheel that brings one tick into order, against std::sort.

#include "support/random.hpp"

#include <chime/wheel.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace chime::test {
namespace {

using detail::due_entry;
using detail::ordinal;

/// So many entries within `width` of each other, in no order; some share a deadline, none a number.
std::vector<due_entry> draw_entries(random_source& random, std::size_t count, ordinal width) {
    std::vector<due_entry> drawn(count);
    const ordinal origin = random.below(2) == 0 ? ordinal{0} : detail::end_of_time - width;
    for (std::size_t position = 0; position < count; ++position) {
        drawn[position] = {origin + random.below(width + 1), position, static_cast<std::uint32_t>(position), 0};
    }
    for (std::size_t left = count; left > 1; --left) std::swap(drawn[left - 1], drawn[random.below(left)]);
    if (random.below(4) == 0) std::sort(drawn.begin(), drawn.end());
    return drawn;
}

std::vector<std::uint64_t> numbers_of(const std::vector<due_entry>& entries) {
    std::vector<std::uint64_t> numbers;
    for (const due_entry& entry : entries) numbers.push_back(entry.number);
    return numbers;
}

std::vector<std::uint64_t> take_all(detail::near_run& near) {
    std::vector<std::uint64_t> numbers;
    for (const due_entry* front = near.front(); front != nullptr; front = near.front()) {
        numbers.push_back(front->number);
        near.pop_front();
    }
    return numbers;
}

TEST(near_run, gives_back_in_order_whatever_was_appended_at_once) {
    SCOPED_TRACE(replay_hint());
    random_source random(process_seed());
    // In sizes where it is sorted in another way each, and in widths from a single deadline to more than it can rank.
    for (const ordinal width : {ordinal{0}, ordinal{1}, ordinal{5}, ordinal{1} << 18U, (ordinal{1} << 25U) - 1,
                                ordinal{1} << 25U, ordinal{1} << 40U, ordinal{1} << 62U}) {
        for (std::size_t count = 1; count <= 140; ++count) {
            for (int round = 0; round < 20; ++round) {
                std::vector<due_entry> expected = draw_entries(random, count, width);
                detail::storage memory(nullptr);
                detail::near_run near(memory);
                near.reserve(count);
                for (const due_entry& entry : expected) near.append(entry);
                near.settle();
                std::sort(expected.begin(), expected.end());
                ASSERT_EQ(take_all(near), numbers_of(expected)) << count << " within " << width;
            }
        }
    }
}

}  // namespace
}  // namespace chime::test
