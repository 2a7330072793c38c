// SPDX-License-Identifier: MIT
#pragma once

#include <condition_variable>
#include <mutex>

namespace chime::inline v0::base {

/// The one lock of the library, for what is cold: growth, waiting for somebody else's end, the pool of helper threads.
/// No user code runs while one is held.
using mutex = std::mutex;
using lock_guard = std::lock_guard<std::mutex>;
using unique_lock = std::unique_lock<std::mutex>;
using condition = std::condition_variable;

}  // namespace chime::inline v0::base
