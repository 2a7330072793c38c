// SPDX-License-Identifier: MIT
#pragma once

#include <chime/error.hpp>

#include <gtest/gtest.h>

#include <string_view>
#include <system_error>

namespace chime::test {

/// What is asked for must be refused with this very code, and with a message that says this.
template <class Code, class Request>
void expect_refused(Code code, std::string_view says, Request&& request) {
    try {
        request();
        ADD_FAILURE() << "not refused, but it should be: " << make_error_code(code).message();
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), make_error_code(code)) << error.what();
        EXPECT_STRNE(error.what(), "");
        EXPECT_NE(std::string_view(error.what()).find(says), std::string_view::npos)
            << '"' << error.what() << "\" does not say \"" << says << '"';
    }
}

/// The same, whatever the message.
template <class Code, class Request>
void expect_refused(Code code, Request&& request) {
    expect_refused(code, "", request);
}

}  // namespace chime::test
