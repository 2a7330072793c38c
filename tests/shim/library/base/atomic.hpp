// SPDX-License-Identifier: MIT
#pragma once

#include "shim/engine/atomic.hpp"

// Stands in front of src/base/atomic.hpp in the test build.

namespace chime::inline v0::base {

template <class T>
using atomic = shim::atomic<T>;

using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

}  // namespace chime::inline v0::base
