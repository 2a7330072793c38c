// SPDX-License-Identifier: MIT
#include "base/mapping.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#include <sys/resource.h>

#include <gtest/gtest.h>

namespace {

using chime::base::huge_pages;
using chime::base::mapping;

constexpr std::size_t chunk = mapping::chunk_bytes;

static_assert(!std::is_copy_constructible_v<mapping> && !std::is_copy_assignable_v<mapping>);
static_assert(std::is_nothrow_move_constructible_v<mapping> && std::is_nothrow_move_assignable_v<mapping>);

bool is_zeroed(const std::byte* from, std::size_t bytes) {
    return std::all_of(from, from + bytes, [](std::byte each) { return each == std::byte{0}; });
}

/// Leaves with 0 when a commit is refused for want of memory, changes nothing, and succeeds once there is memory.
void commit_without_memory() {
    mapping memory(8 * chunk);
    if (!memory.commit(chunk)) std::_Exit(1);
    std::memset(memory.data(), 42, chunk);
    rlimit before{};
    ::getrlimit(RLIMIT_DATA, &before);
    rlimit none = before;
    none.rlim_cur = 4096;  // A page: the kernel takes zero for no limit when memory turns writable.
    ::setrlimit(RLIMIT_DATA, &none);
    const bool accepted = memory.commit(4 * chunk);
    ::setrlimit(RLIMIT_DATA, &before);
    if (accepted || memory.committed_bytes() != chunk) std::_Exit(2);
    if (memory.data()[chunk - 1] != std::byte{42}) std::_Exit(3);
    if (!memory.commit(4 * chunk) || !is_zeroed(memory.data() + chunk, 3 * chunk)) std::_Exit(4);
    std::_Exit(0);
}

}  // namespace

TEST(mapping, of_nothing_refuses_to_commit) {
    mapping nothing;
    EXPECT_EQ(nothing.data(), nullptr);
    EXPECT_EQ(nothing.reserved_bytes(), 0U);
    EXPECT_TRUE(nothing.commit(0));
    EXPECT_FALSE(nothing.commit(1));
    mapping empty(0);
    EXPECT_EQ(empty.reserved_bytes(), 0U);
    EXPECT_FALSE(empty.commit(1));
}

TEST(mapping, reserves_whole_aligned_chunks_and_commits_none) {
    for (const std::size_t bytes : {std::size_t{1}, chunk - 1, chunk, chunk + 1, 7 * chunk}) {
        const mapping memory(bytes);
        EXPECT_EQ(memory.reserved_bytes(), (bytes + chunk - 1) / chunk * chunk);
        EXPECT_EQ(memory.committed_bytes(), 0U);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % chunk, 0U);
    }
}

TEST(mapping, grows_zeroed_in_chunks_and_stays_at_its_address) {
    mapping memory(16 * chunk);
    std::byte* const data = memory.data();
    for (std::size_t chunks = 1; chunks <= 16; ++chunks) {
        ASSERT_TRUE(memory.commit((chunks - 1) * chunk + 1));
        ASSERT_EQ(memory.committed_bytes(), chunks * chunk);
        ASSERT_EQ(memory.data(), data);
        ASSERT_TRUE(is_zeroed(data + (chunks - 1) * chunk, chunk));
        std::memset(data + (chunks - 1) * chunk, static_cast<int>(chunks), chunk);
    }
    for (std::size_t chunks = 1; chunks <= 16; ++chunks) {
        EXPECT_EQ(data[(chunks - 1) * chunk], static_cast<std::byte>(chunks)) << "growing disturbed what was there";
        EXPECT_EQ(data[chunks * chunk - 1], static_cast<std::byte>(chunks));
    }
}

TEST(mapping, does_nothing_for_what_is_committed_already) {
    mapping memory(4 * chunk);
    ASSERT_TRUE(memory.commit(2 * chunk));
    memory.data()[0] = std::byte{7};
    EXPECT_TRUE(memory.commit(0));
    EXPECT_TRUE(memory.commit(1));
    EXPECT_TRUE(memory.commit(2 * chunk));
    EXPECT_EQ(memory.committed_bytes(), 2 * chunk);
    EXPECT_EQ(memory.data()[0], std::byte{7});
}

TEST(mapping, refuses_to_grow_beyond_its_reserve_and_changes_nothing) {
    mapping memory(2 * chunk);
    ASSERT_TRUE(memory.commit(1));
    EXPECT_FALSE(memory.commit(2 * chunk + 1));
    EXPECT_FALSE(memory.commit(std::numeric_limits<std::size_t>::max()));
    EXPECT_EQ(memory.committed_bytes(), chunk);
    EXPECT_TRUE(memory.commit(2 * chunk));
}

TEST(mapping, throws_when_no_such_range_is_left) {
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    for (const std::size_t bytes : {std::size_t{1} << 60U, most - 2 * chunk, most - 2 * chunk + 1, most}) {
        EXPECT_THROW(mapping{bytes}, std::bad_alloc) << bytes;
    }
}

TEST(mapping, works_the_same_with_advice_for_huge_pages) {
    mapping memory(4 * chunk, huge_pages::yes);
    ASSERT_TRUE(memory.commit(4 * chunk));
    EXPECT_TRUE(is_zeroed(memory.data(), 4 * chunk));
}

TEST(mapping, moves_without_moving_its_memory) {
    mapping first(2 * chunk);
    ASSERT_TRUE(first.commit(chunk));
    std::byte* const data = first.data();
    data[5] = std::byte{5};
    mapping second(std::move(first));
    EXPECT_EQ(first.data(), nullptr);  // NOLINT(bugprone-use-after-move): that is the question.
    EXPECT_EQ(first.reserved_bytes(), 0U);
    mapping third(chunk);
    third = std::move(second);
    EXPECT_EQ(third.data(), data);
    EXPECT_EQ(third.committed_bytes(), chunk);
    EXPECT_EQ(third.reserved_bytes(), 2 * chunk);
    EXPECT_EQ(third.data()[5], std::byte{5});
    mapping& same = third;
    third = std::move(same);
    EXPECT_EQ(third.data(), data);
}

TEST(mapping, can_be_released_once_and_again) {
    mapping memory(chunk);
    ASSERT_TRUE(memory.commit(chunk));
    memory.release();
    EXPECT_EQ(memory.data(), nullptr);
    EXPECT_EQ(memory.committed_bytes(), 0U);
    EXPECT_FALSE(memory.commit(1));
    memory.release();
}

TEST(mapping_death_test, traps_a_touch_of_what_is_not_committed) {
    EXPECT_DEATH(
        {
            mapping memory(2 * chunk);
            if (memory.commit(chunk)) *const_cast<volatile std::byte*>(memory.data() + chunk) = std::byte{1};
        },
        "");
}

TEST(mapping_death_test, refuses_a_commit_when_the_system_has_no_memory_and_changes_nothing) {
    EXPECT_EXIT(commit_without_memory(), testing::ExitedWithCode(0), "");
}
