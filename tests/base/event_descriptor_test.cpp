// SPDX-License-Identifier: MIT
#include "base/event_descriptor.hpp"

#include "base/thread.hpp"

#include <cstdint>

#include <unistd.h>

#include <gtest/gtest.h>

#include "support/descriptors.hpp"

namespace {

using chime::base::event_descriptor;
using chime::test::construct_without_descriptors;
using chime::test::is_readable;

}  // namespace

TEST(event_descriptor, is_readable_from_the_first_signal_until_it_is_drained) {
    const event_descriptor event;
    EXPECT_FALSE(is_readable(event.get()));
    EXPECT_FALSE(event.drain());
    event.signal();
    event.signal();
    EXPECT_TRUE(is_readable(event.get()));
    EXPECT_TRUE(event.drain());
    EXPECT_FALSE(is_readable(event.get()));
    EXPECT_FALSE(event.drain());
}

TEST(event_descriptor, takes_a_signal_when_its_count_is_at_the_limit) {
    const event_descriptor event;
    const std::uint64_t nearly_full = UINT64_MAX - 1;
    ASSERT_EQ(::write(event.get(), &nearly_full, sizeof nearly_full), static_cast<ssize_t>(sizeof nearly_full));
    event.signal();
    EXPECT_TRUE(event.drain());
    EXPECT_FALSE(event.drain());
}

TEST(event_descriptor, wakes_a_poller_from_another_thread) {
    const event_descriptor event;
    chime::base::thread poller([&] { EXPECT_TRUE(is_readable(event.get(), -1)); });
    event.signal();
    poller.join();
}

TEST(event_descriptor_death_test, refuses_with_the_reason_when_no_descriptor_is_left) {
    EXPECT_EXIT(construct_without_descriptors<event_descriptor>(), testing::ExitedWithCode(0), "");
}
