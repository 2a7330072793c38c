// SPDX-License-Identifier: MIT
//
// Linked into every program that is one test as a whole: all of it is limited.

#include "support/time_limit.hpp"

#include <cerrno>

namespace {

[[maybe_unused]] const bool is_limited = [] {
    chime::test::begin_limited(program_invocation_short_name);
    return true;
}();

}  // namespace
