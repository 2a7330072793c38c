// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>
#include <system_error>
#include <thread>

namespace chime::inline v0::base {

/// The one thread of the library: joined by its owner, as std::thread demands.
using thread = std::thread;

/// The number of this process; a forked child has another one.
[[nodiscard]] int fork_number() noexcept;

/// From now on whoever forks calls `before` first, and then `after`, in the parent and in the child. Only where there is
/// memory for that; for locks that a child needs, and that another thread of the parent might hold.
void call_around_fork(void (*before)(), void (*after)()) noexcept;

/// How many processors the calling thread may run on; at least one.
[[nodiscard]] unsigned usable_processors() noexcept;

/// Which they are: the one at `position`, counted round and round.
[[nodiscard]] unsigned usable_processor(unsigned position) noexcept;

/// Keeps the calling thread on one processor, counted as the kernel counts them. An error, for a processor that is
/// absent or forbidden, leaves the thread where it may run now.
[[nodiscard]] std::error_code pin_this_thread(unsigned processor) noexcept;

/// Names the calling thread for debuggers and `top`; the kernel keeps the first 15 bytes.
void name_this_thread(std::string_view name) noexcept;

/// How often a thread that has been called, and finds little to do, looks again before it sleeps; and what it does in
/// between, which takes about a microsecond and leaves the memory bus to others.
inline constexpr unsigned most_looks = 256;
inline void pause_between_looks() noexcept {
    for (unsigned pauses = 0; pauses < 32; ++pauses) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
        __asm__ volatile("yield");
#else
        __asm__ volatile("");
#endif
    }
}

/// Lets other threads run first.
inline void yield_this_thread() noexcept {
    std::this_thread::yield();
}

}  // namespace chime::inline v0::base
