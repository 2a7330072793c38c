// SPDX-License-Identifier: MIT
//
// A context inside the loop of somebody else.
#include "support/descriptors.hpp"
#include "support/ledger.hpp"

#include <chime/io_context.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

TEST(poll_fd, is_readable_when_there_is_work_and_not_otherwise) {
    io_context context;
    const int fd = context.poll_fd();
    EXPECT_EQ(context.poll_fd(), fd);
    context.poll();
    EXPECT_FALSE(is_readable(fd)) << "nothing to do";
    context.timers().after(1h, [] {});
    context.poll();
    EXPECT_FALSE(is_readable(fd)) << "nothing to do for an hour";
    int ran = 0;
    std::thread stranger([&] { context.post([&] { ++ran; }); });
    EXPECT_TRUE(is_readable(fd, 10'000));
    stranger.join();
    EXPECT_EQ(context.poll(), 1U);
    EXPECT_EQ(ran, 1);
    EXPECT_FALSE(is_readable(fd));
    context.timers().after(0s, [&] { ++ran; });  // By whoever polls, too.
    EXPECT_TRUE(is_readable(fd, 10'000));
    EXPECT_EQ(context.poll(), 1U);
    EXPECT_FALSE(is_readable(fd));
    check_ledger(context);
}

TEST(poll_fd, stays_readable_when_a_callback_has_left_more_to_do) {
    io_context context;
    const int fd = context.poll_fd();
    context.post([&] { context.post([] {}); });
    context.poll();
    EXPECT_TRUE(is_readable(fd));
    context.poll();
    EXPECT_FALSE(is_readable(fd));
    context.post([] { throw std::runtime_error("in between"); });
    context.post([] {});
    EXPECT_THROW(context.poll(), std::runtime_error);
    EXPECT_TRUE(is_readable(fd)) << "the second one is still to be run";
    EXPECT_EQ(context.poll(), 1U);
    EXPECT_FALSE(is_readable(fd));
    check_ledger_at_rest(context);
}

TEST(poll_fd, wakes_for_what_other_threads_cancel_and_postpone) {
    io_context context;
    const int fd = context.poll_fd();
    int ran = 0;
    const timer_handle far = context.timers().after(1h, [&] { ++ran; });
    context.poll();
    ASSERT_FALSE(is_readable(fd));
    std::thread stranger([&] { EXPECT_TRUE(context.timers().postpone(far, 0s)); });
    EXPECT_TRUE(is_readable(fd, 10'000));
    stranger.join();
    while (ran == 0) context.poll();
    EXPECT_FALSE(is_readable(fd));
    check_ledger_at_rest(context);
}

TEST(poll_fd, of_a_stopped_context_is_silent_until_it_is_restarted) {
    io_context context;
    const int fd = context.poll_fd();
    context.poll();
    context.stop();
    EXPECT_TRUE(is_readable(fd)) << "whoever waits looks, and sees that it is stopped";
    EXPECT_EQ(context.poll(), 0U);
    EXPECT_FALSE(is_readable(fd));

    int ran = 0;
    context.post([&] { ++ran; });
    context.timers().after(0s, [&] { ++ran; });
    EXPECT_EQ(context.poll(), 0U);
    EXPECT_FALSE(is_readable(fd)) << "a loop that watches it would spin";
    context.restart();
    EXPECT_TRUE(is_readable(fd));
    EXPECT_EQ(context.poll(), 2U);
    EXPECT_EQ(ran, 2);
    EXPECT_FALSE(is_readable(fd));
    check_ledger_at_rest(context);
}

TEST(poll_fd, of_a_context_that_is_stopped_polled_and_restarted_knows_its_deadline) {
    io_context context;
    const int fd = context.poll_fd();
    bool has_fired = false;
    context.timers().after(10ms, [&] { has_fired = true; });
    context.poll();
    context.stop();
    context.poll();
    context.restart();
    while (!has_fired) {
        ASSERT_TRUE(is_readable(fd, 10'000)) << "the deadline is forgotten";
        context.poll();
    }
    check_ledger_at_rest(context);
}

}  // namespace
}  // namespace chime::test
