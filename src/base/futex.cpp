// SPDX-License-Identifier: MIT
#include "base/futex.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"

#include <cerrno>
#include <climits>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace chime::inline v0::base {

namespace {

long wake(const futex_word& word, int count) noexcept {
    const long woken = ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
    CHIME_CHECK(woken >= 0, "a futex wake-up names a mapped, aligned word");
    return woken;
}

}  // namespace

futex_result futex_wait(const futex_word& word, std::uint32_t expected, time_point deadline) noexcept {
    const timespec until = to_timespec(deadline);
    for (;;) {
        // The bitset form takes an absolute time on CLOCK_MONOTONIC; the plain form would take a relative one.
        const long answer = ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected,
                                      deadline == never ? nullptr : &until, nullptr, FUTEX_BITSET_MATCH_ANY);
        if (answer == 0 || errno == EINTR) return futex_result::woken;
        if (errno == EAGAIN) return futex_result::changed;
        CHIME_CHECK(errno == ETIMEDOUT, "a futex wait names a mapped, aligned word");
        if (now() >= deadline) return futex_result::timed_out;  // [I1] whatever the kernel's idea of time is.
    }
}

bool futex_wake_one(const futex_word& word) noexcept {
    return wake(word, 1) > 0;
}

std::uint32_t futex_wake_all(const futex_word& word) noexcept {
    return static_cast<std::uint32_t>(wake(word, INT_MAX));
}

}  // namespace chime::inline v0::base
