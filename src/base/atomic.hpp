// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>

// Everything in src/base lives in chime::base. Together these files are the platform: no other part of the library
// names an atomic, makes a system call, reads a clock, starts a thread or maps memory by any other way. A test build
// that puts its own definitions here sees every step that a thread takes.

namespace chime::inline v0::base {

/// The one atomic of the library.
///
/// There is no alias for a fence, on purpose: the thread sanitizer does not understand fences, so a store that must
/// be seen before a later load is made with a read-modify-write or with seq_cst on both sides.
template <class T>
using atomic = std::atomic<T>;

using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

}  // namespace chime::inline v0::base
