// SPDX-License-Identifier: MIT
#include "base/thread_number.hpp"

#include "base/atomic.hpp"

namespace chime::inline v0::base {

[[gnu::tls_model("initial-exec")]] thread_local constinit std::uint32_t own_thread_number = 0;

const char thread_numbering = 0;

std::uint32_t number_this_thread() noexcept {
    static constinit atomic<std::uint64_t> last{0};
    // Relaxed: all that matters is that threads get different numbers, which the read-modify-write sees to.
    const std::uint64_t asked = last.fetch_add(1, memory_order_relaxed) + 1;
    const auto folded = static_cast<std::uint32_t>(asked);
    own_thread_number = asked == folded ? folded : folded | 0x8000'0000U;
    return own_thread_number - 1;
}

const void* this_thread_mark() noexcept {
    return __builtin_thread_pointer();
}

}  // namespace chime::inline v0::base
