// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace chime::inline v0::base {

/// The number of this thread, and one: zero until it has asked.
[[gnu::tls_model("initial-exec")]] extern thread_local constinit std::uint32_t own_thread_number;

/// Where the numbers come from. A plug-in that has a copy of the library of its own numbers threads of its own.
extern const char thread_numbering;

/// The first time that a thread asks.
[[nodiscard]] std::uint32_t number_this_thread() noexcept;

/// A number of the calling thread, counted from zero in the order in which threads first ask. When 2^32 threads have asked, the
/// upper half is given out again; the others stay those of one thread for ever.
[[nodiscard]] inline std::uint32_t thread_number() noexcept {
    const std::uint32_t known = own_thread_number;
    return known != 0 ? known - 1 : number_this_thread();
}

/// Which thread this is: what no other has while it lives, whichever copy of the library asks.
[[nodiscard]] const void* this_thread_mark() noexcept;

}  // namespace chime::inline v0::base
