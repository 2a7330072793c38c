// SPDX-License-Identifier: MIT
#include "base/thread_number.hpp"

#include "base/atomic.hpp"

namespace chime::inline v0::base {

[[gnu::tls_model("initial-exec")]] thread_local constinit std::uint32_t own_thread_number = 0;

std::uint32_t number_this_thread() noexcept {
    static constinit atomic<std::uint32_t> last{0};
    // Relaxed: all that matters is that threads get different numbers, which the read-modify-write sees to.
    while (own_thread_number == 0) own_thread_number = last.fetch_add(1, memory_order_relaxed) + 1;
    return own_thread_number - 1;
}

}  // namespace chime::inline v0::base
