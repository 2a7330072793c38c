// SPDX-License-Identifier: MIT
#include "base/striped_counter.hpp"

namespace chime::inline v0::base {

std::uint32_t thread_number() noexcept {
    static constinit atomic<std::uint32_t> next{0};
    // Relaxed: all that matters is that threads get different numbers, which the read-modify-write sees to.
    static thread_local const std::uint32_t number = next.fetch_add(1, memory_order_relaxed);
    return number;
}

}  // namespace chime::inline v0::base
