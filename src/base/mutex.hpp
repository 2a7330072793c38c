// SPDX-License-Identifier: MIT
#pragma once

#include "base/thread_safety.hpp"

#include <condition_variable>
#include <mutex>

namespace chime::inline v0::base {

/// The one lock of the library, for what is cold: growth, waiting for somebody else's end, the pool of helper threads.
/// No user code runs while one is held. It is the standard one; clang knows from this what it guards.
class CHIME_CAPABILITY("mutex") mutex : public std::mutex {
 public:
    void lock() CHIME_ACQUIRE() { std::mutex::lock(); }
    void unlock() CHIME_RELEASE() { std::mutex::unlock(); }
};

class CHIME_SCOPED_CAPABILITY lock_guard {
 public:
    explicit lock_guard(mutex& held) CHIME_ACQUIRE(held) : held_(held) { held_.lock(); }
    lock_guard(const lock_guard&) = delete;
    lock_guard& operator=(const lock_guard&) = delete;
    ~lock_guard() CHIME_RELEASE() { held_.unlock(); }

 private:
    mutex& held_;
};

/// The same for who waits, or lets go of it for a while.
class CHIME_SCOPED_CAPABILITY unique_lock : public std::unique_lock<std::mutex> {
 public:
    explicit unique_lock(base::mutex& held) CHIME_ACQUIRE(held) : std::unique_lock<std::mutex>(held) {}
    ~unique_lock() CHIME_RELEASE() {}  // NOLINT(modernize-use-equals-default): that one would not be looked at.
    unique_lock(const unique_lock&) = delete;
    unique_lock& operator=(const unique_lock&) = delete;
    void lock() CHIME_ACQUIRE() { std::unique_lock<std::mutex>::lock(); }
    void unlock() CHIME_RELEASE() { std::unique_lock<std::mutex>::unlock(); }
};

using condition = std::condition_variable;

}  // namespace chime::inline v0::base
