// SPDX-License-Identifier: MIT
#pragma once

// Who may touch what, for the compiler: clang reads these words with -Wthread-safety, as `scripts/check` has it do, and
// refuses code that touches a member without the lock or the role that guards it. Other compilers see nothing.

#if defined(__clang__)
#define CHIME_THREAD_SAFETY(...) __attribute__((__VA_ARGS__))
#else
#define CHIME_THREAD_SAFETY(...)
#endif

/// A class whose objects can be held: a lock, or a role such as that of a worker's owner.
#define CHIME_CAPABILITY(name) CHIME_THREAD_SAFETY(capability(name))
/// A class whose objects hold something for as long as they live.
#define CHIME_SCOPED_CAPABILITY CHIME_THREAD_SAFETY(scoped_lockable)
/// A member that is touched only by who holds this.
#define CHIME_GUARDED_BY(held) CHIME_THREAD_SAFETY(guarded_by(held))
/// A function that is called only by who holds this.
#define CHIME_REQUIRES(...) CHIME_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define CHIME_ACQUIRE(...) CHIME_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define CHIME_TRY_ACQUIRE(...) CHIME_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
#define CHIME_RELEASE(...) CHIME_THREAD_SAFETY(release_capability(__VA_ARGS__))
/// A function after which this is known to be held, for a reason that the compiler cannot see.
#define CHIME_ASSUMES(...) CHIME_THREAD_SAFETY(assert_capability(__VA_ARGS__))
/// A function that is not looked into; a comment there says why.
#define CHIME_NOT_ANALYSED CHIME_THREAD_SAFETY(no_thread_safety_analysis)

namespace chime::inline v0::base {

/// Something that one thread at a time is. There is nothing to it at run time: how a thread comes to be it, and that no
/// other one is, is told and checked where that happens.
class CHIME_CAPABILITY("role") role {};

}  // namespace chime::inline v0::base
