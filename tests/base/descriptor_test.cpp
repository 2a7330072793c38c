// SPDX-License-Identifier: MIT
#include "base/descriptor.hpp"

#include <type_traits>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace {

using chime::base::descriptor;

int open_something() {
    return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool is_open(int fd) {
    return ::fcntl(fd, F_GETFD) != -1;
}

static_assert(!std::is_copy_constructible_v<descriptor> && !std::is_copy_assignable_v<descriptor>);
static_assert(std::is_nothrow_move_constructible_v<descriptor> && std::is_nothrow_move_assignable_v<descriptor>);

}  // namespace

TEST(descriptor, owns_nothing_at_first) {
    const descriptor nothing;
    EXPECT_FALSE(nothing);
    EXPECT_EQ(nothing.get(), descriptor::none);
}

TEST(descriptor, closes_what_it_owns) {
    const int fd = open_something();
    ASSERT_GE(fd, 0);
    {
        const descriptor owner(fd);
        EXPECT_TRUE(owner);
        EXPECT_EQ(owner.get(), fd);
        EXPECT_TRUE(is_open(fd));
    }
    EXPECT_FALSE(is_open(fd));
}

TEST(descriptor, moves_and_leaves_nothing_behind) {
    const int fd = open_something();
    descriptor first(fd);
    descriptor second(std::move(first));
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): that is the question.
    EXPECT_EQ(second.get(), fd);
    descriptor third(open_something());
    const int replaced = third.get();
    third = std::move(second);
    EXPECT_FALSE(second);  // NOLINT(bugprone-use-after-move)
    EXPECT_FALSE(is_open(replaced));
    EXPECT_EQ(third.get(), fd);
    EXPECT_TRUE(is_open(fd));
}

TEST(descriptor, survives_a_move_onto_itself) {
    descriptor owner(open_something());
    const int fd = owner.get();
    descriptor& same = owner;
    owner = std::move(same);
    EXPECT_EQ(owner.get(), fd);
    EXPECT_TRUE(is_open(fd));
}

TEST(descriptor, gives_its_descriptor_away_open) {
    descriptor owner(open_something());
    const int fd = owner.release();
    EXPECT_FALSE(owner);
    EXPECT_TRUE(is_open(fd));
    EXPECT_EQ(::close(fd), 0);
}

TEST(descriptor, closes_the_old_one_when_it_is_given_a_new_one) {
    descriptor owner(open_something());
    const int before = owner.get();
    const int after = open_something();
    owner.reset(after);
    EXPECT_FALSE(is_open(before));
    EXPECT_EQ(owner.get(), after);
    owner.reset();
    EXPECT_FALSE(is_open(after));
    owner.reset();
    EXPECT_FALSE(owner);
}

TEST(descriptor_death_test, notices_that_somebody_else_closed_what_it_owns) {
    EXPECT_DEATH(
        {
            descriptor owner(open_something());
            ::close(owner.get());
            owner.reset();
        },
        "chime: misuse: a descriptor is closed by its owner alone");
}
