// SPDX-License-Identifier: MIT
#pragma once

namespace chime::inline v0::base {

/// This thread will soon write here: the cache line is on its way, and nobody else has it then.
///
/// What another processor has written last would otherwise come twice, first to be read, then to be written. Compilers give
/// the instruction only for processors that are named to them, because the first ones of x86-64 that Intel made did not know it; all
/// of the last fifteen years do, if only as one that does nothing. Where nothing is, nothing happens.
inline void prefetch_to_write(const void* where) noexcept {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(where)));
#else
    __builtin_prefetch(where, 1);
#endif
}

}  // namespace chime::inline v0::base
