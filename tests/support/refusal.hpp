// SPDX-License-Identifier: MIT
#pragma once

#include <chime/error.hpp>

#include <gtest/gtest.h>

#include <system_error>

namespace chime::test {

/// What is asked for must be refused with this very code, and with a message.
template <class Code, class Request>
void expect_refused(Code code, Request&& request) {
    try {
        request();
        ADD_FAILURE() << "not refused, but it should be: " << make_error_code(code).message();
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), make_error_code(code)) << error.what();
        EXPECT_STRNE(error.what(), "");
    }
}

}  // namespace chime::test
