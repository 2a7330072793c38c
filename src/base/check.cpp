// SPDX-License-Identifier: MIT
#include "base/check.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include <sys/uio.h>
#include <unistd.h>

namespace chime::inline v0::base {

namespace {

iovec piece(const char* text) noexcept {
    // writev only reads, but its argument type is older than const.
    return {const_cast<char*>(text), std::strlen(text)};
}

}  // namespace

void fail_check(fault whose, const char* invariant, const char* condition, const char* file, int line) noexcept {
    char line_text[16] = {};
    std::to_chars(line_text, line_text + sizeof line_text - 1, line);
    // One system call, so that messages of several threads do not mix; nothing here may allocate or lock.
    const iovec message[] = {piece(headline_of(whose)),
                             piece(invariant),
                             piece(" ("),
                             piece(condition),
                             piece(" is false at "),
                             piece(file),
                             piece(":"),
                             piece(line_text),
                             piece(")\n")};
    // If the message cannot be written there is nobody left to tell.
    [[maybe_unused]] const ssize_t written =
        ::writev(STDERR_FILENO, message, static_cast<int>(sizeof message / sizeof message[0]));
    std::abort();
}

}  // namespace chime::inline v0::base
