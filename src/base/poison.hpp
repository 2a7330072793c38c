// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

// Memory that waits in a pool is out of bounds: the address sanitizer is told so, and finds who uses it all the same.

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CHIME_ADDRESS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define CHIME_ADDRESS_SANITIZER 1
#endif

#ifdef CHIME_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace chime::inline v0::base {

#ifdef CHIME_ADDRESS_SANITIZER
inline constexpr bool poisons_memory = true;
#else
inline constexpr bool poisons_memory = false;
#endif

inline void poison([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef CHIME_ADDRESS_SANITIZER
    __asan_poison_memory_region(memory, bytes);
#endif
}

inline void unpoison([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef CHIME_ADDRESS_SANITIZER
    __asan_unpoison_memory_region(memory, bytes);
#endif
}

}  // namespace chime::inline v0::base
