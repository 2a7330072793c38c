// SPDX-License-Identifier: MIT
#pragma once

#include "base/thread_safety.hpp"
#include "shim/engine/sync.hpp"

#include <mutex>

// Stands in front of src/base/mutex.hpp in the test build.

namespace chime::inline v0::base {

using mutex = shim::mutex;
using lock_guard = std::lock_guard<shim::mutex>;
using unique_lock = std::unique_lock<shim::mutex>;
using condition = shim::condition;

}  // namespace chime::inline v0::base
