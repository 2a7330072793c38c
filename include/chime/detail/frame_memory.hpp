// SPDX-License-Identifier: MIT
#pragma once

#include <chime/detail/export.hpp>

#include <cstddef>

namespace chime {
inline namespace v0 {
namespace detail {

inline constexpr std::size_t frame_alignment = 16;

/// Memory for a coroutine frame or a large closure, from pools by size; after warm-up no system call and no malloc.
/// Any thread may give back what any thread took. Throws std::bad_alloc.
[[nodiscard]] CHIME_API void* take_frame(std::size_t bytes);
CHIME_API void give_frame(void* memory, std::size_t bytes) noexcept;

/// This thread will do both: what it needs for that is got now, if there is memory.
void prepare_frames() noexcept;

}  // namespace detail
}  // namespace v0
}  // namespace chime
