// SPDX-License-Identifier: MIT
#include <chime/version.hpp>

#include <string>

#include <gtest/gtest.h>

TEST(version, of_the_library_is_that_of_the_headers) {
    const std::string of_the_headers = std::to_string(CHIME_VERSION_MAJOR) + "." + std::to_string(CHIME_VERSION_MINOR) +
                                       "." + std::to_string(CHIME_VERSION_PATCH);
    EXPECT_EQ(chime::version(), of_the_headers);
}

TEST(version, is_one_number_that_can_be_compared) {
    static_assert(CHIME_VERSION == CHIME_VERSION_MAJOR * 10000 + CHIME_VERSION_MINOR * 100 + CHIME_VERSION_PATCH);
    static_assert(CHIME_VERSION >= 100, "0.1.0 is the first");
}
