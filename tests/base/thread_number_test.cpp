// SPDX-License-Identifier: MIT
#include "base/thread_number.hpp"

#include "base/thread.hpp"

#include <cstdint>

#include <gtest/gtest.h>

TEST(thread_number, is_the_same_for_one_thread_and_different_for_another) {
    const std::uint32_t mine = chime::base::thread_number();
    EXPECT_EQ(chime::base::thread_number(), mine);
    chime::base::thread([mine] { EXPECT_NE(chime::base::thread_number(), mine); }).join();
}
