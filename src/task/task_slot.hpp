// SPDX-License-Identifier: MIT
#pragma once

#include "base/cache_line.hpp"
#include "base/poison.hpp"
#include "base/prefetch.hpp"
#include "timer/timed.hpp"

#include <chime/detail/promise.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>

namespace chime::inline v0::detail {

class task_control;

/// One flow of coroutine frames that was spawned, and its sleep: a task waits for one thing at a time, so the timer that
/// may end the wait has its place here.
///
/// The word's life is the epoch: every suspension starts a new one, also across occupants, so that a wake-up names the
/// very suspension that it is for [I2]. The fields belong to whoever executes the task, or has claimed it.
struct alignas(64) task_slot : timed {
    /// The innermost frame, while the task is suspended. Atomic, because whoever has the timer fetches the frame ahead of
    /// time, and somebody else may be executing the task by then.
    base::atomic<void*> innermost_frame{nullptr};
    promise_base* innermost = nullptr;  ///< Its promise, if it is one of ours.
    std::coroutine_handle<> root;       ///< The outermost frame, which the slot owns.
    /// For who may cancel or join it; or, if it is detached, where it was spawned. And the two marks.
    base::atomic<std::uintptr_t> origin{detached};

    static constexpr std::uintptr_t detached = 1;
    static constexpr std::uintptr_t borrowed = 2;  ///< A thread that is no worker has taken this slot, for this task.

    // Relaxed: the word decides whether it means anything, and who only fetches it may do so in vain.
    [[nodiscard]] std::coroutine_handle<> frame() const noexcept {
        return std::coroutine_handle<>::from_address(innermost_frame.load(base::memory_order_relaxed));
    }
    void set_frame(std::coroutine_handle<> innermost_one) noexcept {
        innermost_frame.store(innermost_one.address(), base::memory_order_relaxed);
    }
    /// Most of what a task of moderate size needs to go on.
    void prefetch_frame() const noexcept {
        const auto* const first = static_cast<const std::byte*>(innermost_frame.load(base::memory_order_relaxed));
        base::prefetch_to_write(first);
        base::prefetch_to_write(first + base::cache_line_bytes);
    }

    // Relaxed: the word decides whether it means anything, and who only prints it may be a moment late.
    [[nodiscard]] task_control* control() const noexcept {
        const std::uintptr_t value = origin.load(base::memory_order_relaxed);
        return (value & detached) != 0 ? nullptr : reinterpret_cast<task_control*>(value & ~borrowed);
    }
    [[nodiscard]] const void* where() const noexcept {
        const std::uintptr_t value = origin.load(base::memory_order_relaxed);
        return (value & detached) == 0 ? nullptr : reinterpret_cast<const void*>(value & ~(detached | borrowed));
    }
    [[nodiscard]] bool is_borrowed() const noexcept {
        return (origin.load(base::memory_order_relaxed) & borrowed) != 0;
    }
    void forget_control() noexcept {
        origin.store((origin.load(base::memory_order_relaxed) & borrowed) | detached, base::memory_order_relaxed);
    }

    /// While it is free, nobody touches what is not atomic; the words anybody may look at. Only for the address sanitizer.
    void seal() noexcept { base::poison(&innermost, sealed_bytes); }
    void unseal() noexcept { base::unpoison(&innermost, sealed_bytes); }

    void set_up(std::coroutine_handle<> outermost, task_control* control, const void* where,
                bool is_borrowed) noexcept {
        unseal();
        root = outermost;
        set_frame(outermost);
        innermost = nullptr;
        origin.store((control != nullptr ? reinterpret_cast<std::uintptr_t>(control)
                                         : reinterpret_cast<std::uintptr_t>(where) | detached) |
                         (is_borrowed ? borrowed : 0),
                     base::memory_order_relaxed);
    }

 private:
    static constexpr std::size_t sealed_bytes = sizeof(void*) + sizeof root;  ///< They lie side by side.
};
static_assert(sizeof(task_slot) == 64);

}  // namespace chime::inline v0::detail
