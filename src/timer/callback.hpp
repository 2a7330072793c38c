// SPDX-License-Identifier: MIT
#pragma once

#include "base/poison.hpp"
#include "timer/timed.hpp"

#include <chime/detail/closure.hpp>

#include <cstddef>
#include <cstring>

namespace chime::inline v0::detail {

struct callback_extra;

/// A pending callback: what to call, and when. One cache line: to arm, cancel or fire a timer misses the cache once.
///
/// The closure and its extra belong to whoever has won the word: the firing owner, or the canceller.
struct alignas(64) callback : timed {
    base::atomic<const closure_operations*> operations{nullptr};  ///< Relaxed: the word publishes it.
    alignas(closure_alignment) std::byte closure[closure_bytes];

    [[nodiscard]] const closure_operations& its_operations() const noexcept {
        return *operations.load(base::memory_order_relaxed);
    }

    /// While it is free, nobody touches the room for the closure; the words anybody may look at. Only for the address sanitizer.
    void seal() noexcept { base::poison(closure, sizeof closure); }
    void unseal() noexcept { base::unpoison(closure, sizeof closure); }

    /// A period, a token, a place; there is one if the word says so. It takes the end of the closure's room.
    [[nodiscard]] callback_extra* extra() const noexcept {
        callback_extra* its = nullptr;
        std::memcpy(&its, closure + closure_bytes_beside_extra, sizeof(callback_extra*));
        return its;
    }
    void set_extra(callback_extra* its) noexcept {
        std::memcpy(closure + closure_bytes_beside_extra, &its, sizeof(callback_extra*));
    }
};
static_assert(sizeof(callback) == 64 && closure_bytes_beside_extra + sizeof(callback_extra*) == closure_bytes);

}  // namespace chime::inline v0::detail
