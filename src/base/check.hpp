// SPDX-License-Identifier: MIT
#pragma once

namespace chime::inline v0::base {

/// Whose bug it is that an invariant does not hold.
enum class fault { ours, callers };

/// Writes which invariant broke, and where, to standard error and aborts. Any thread; takes no lock, no memory.
[[noreturn, gnu::cold]] void fail_check(fault whose, const char* invariant, const char* condition, const char* file,
                                        int line) noexcept;

[[nodiscard]] constexpr const char* headline_of(fault whose) noexcept {
    return whose == fault::ours ? "chime: broken invariant: " : "chime: misuse: ";
}

}  // namespace chime::inline v0::base

/// Aborts when `condition` is false, and names the invariant. On in every build: what is checked this way is a bug
/// that cannot be answered, so going on would only hide where it began. Keep the condition cheap.
///
///     CHIME_CHECK(generation != 0, "I2: a live record has a generation");
#define CHIME_CHECK(condition, invariant) CHIME_CHECK_OF(::chime::base::fault::ours, condition, #condition, invariant)

/// The same for what only the caller can break. It says so, and behind the invariant what to do instead.
///
///     CHIME_CHECK_USE(!is_running(), "a loop is not destroyed while it runs: let run() return before");
#define CHIME_CHECK_USE(condition, invariant) \
    CHIME_CHECK_OF(::chime::base::fault::callers, condition, #condition, invariant)

#define CHIME_CHECK_OF(whose, condition, text, invariant) \
    (__builtin_expect(static_cast<bool>(condition), true) \
         ? static_cast<void>(0)                           \
         : ::chime::base::fail_check(whose, invariant, text, __FILE_NAME__, __LINE__))
