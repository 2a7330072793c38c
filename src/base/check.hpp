// SPDX-License-Identifier: MIT
#pragma once

namespace chime::inline v0::base {

/// Writes which invariant broke, and where, to standard error and aborts. Any thread; takes no lock, no memory.
[[noreturn, gnu::cold]] void fail_check(const char* invariant, const char* condition, const char* file,
                                        int line) noexcept;

}  // namespace chime::inline v0::base

/// Aborts when `condition` is false, and names the invariant. On in every build: what is checked this way is a bug
/// that cannot be answered, so going on would only hide where it began. Keep the condition cheap.
///
///     CHIME_CHECK(generation != 0, "I2: a live record has a generation");
#define CHIME_CHECK(condition, invariant)                 \
    (__builtin_expect(static_cast<bool>(condition), true) \
         ? static_cast<void>(0)                           \
         : ::chime::base::fail_check(invariant, #condition, __FILE_NAME__, __LINE__))
