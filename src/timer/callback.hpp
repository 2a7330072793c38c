// SPDX-License-Identifier: MIT
#pragma once

#include "timer/timed.hpp"

#include <chime/detail/closure.hpp>

#include <cstddef>

namespace chime::inline v0::detail {

struct callback_extra;

/// A pending callback: what to call, and when. At most 112 bytes, ticket apart [G9].
///
/// The closure and `extra` belong to whoever has won the word: the firing owner, or the canceller.
struct alignas(32) callback : timed {
    const closure_operations* operations = nullptr;
    callback_extra* extra = nullptr;           ///< A period, a token; null for most.
    base::atomic<const void*> where{nullptr};  ///< Where it was armed, for who asks what is pending.
    alignas(closure_alignment) std::byte closure[closure_bytes];
};
static_assert(sizeof(callback) == 96);

}  // namespace chime::inline v0::detail
