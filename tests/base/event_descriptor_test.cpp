// SPDX-License-Identifier: MIT
#include "base/event_descriptor.hpp"

#include "base/thread.hpp"

#include <cstdint>
#include <cstdlib>
#include <system_error>

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace {

using chime::base::event_descriptor;

bool is_readable(int fd, int timeout_ms = 0) {
    pollfd entry{fd, POLLIN, 0};
    return ::poll(&entry, 1, timeout_ms) == 1;
}

/// Leaves with 0 when the constructor refuses with the right error; no new descriptor can be had meanwhile.
void construct_without_descriptors() {
    // A sanitizer needs a descriptor when it meets the category of an error for the first time.
    if (std::make_error_code(std::errc::too_many_files_open).message().empty()) std::_Exit(3);
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    rlimit none = before;
    none.rlim_cur = 0;
    ::setrlimit(RLIMIT_NOFILE, &none);
    try {
        const event_descriptor refused;
    } catch (const std::system_error& error) {
        ::setrlimit(RLIMIT_NOFILE, &before);  // For the sanitizer again.
        std::_Exit(error.code() == std::errc::too_many_files_open ? 0 : 2);
    }
    std::_Exit(1);
}

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
    EXPECT_EXIT(construct_without_descriptors(), testing::ExitedWithCode(0), "");
}
