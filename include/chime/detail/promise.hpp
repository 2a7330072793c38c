// SPDX-License-Identifier: MIT
#pragma once

#include <chime/detail/export.hpp>
#include <chime/detail/frame_memory.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>

namespace chime {
inline namespace v0 {
namespace detail {

/// What all promises of chime's tasks have in common: a place in a chain of frames that await each other.
///
/// The chain is walked from the innermost frame outwards: to resume, and to destroy a suspended chain without recursion.
struct promise_base {
    std::coroutine_handle<> continuation;       ///< Who awaits this frame. Null: this is the outermost one of its task.
    promise_base* parent = nullptr;             ///< The promise of that, if it is one of ours.
    std::coroutine_handle<>* holder = nullptr;  ///< The task object that owns this frame.
    std::exception_ptr failure;

    static void* operator new(std::size_t bytes) { return take_frame(bytes); }
    static void operator delete(void* memory, std::size_t bytes) noexcept { give_frame(memory, bytes); }

    [[nodiscard]] static std::suspend_always initial_suspend() noexcept { return {}; }

    void unhandled_exception() noexcept { failure = std::current_exception(); }
};

/// The outermost frame of a task has come to its end; the loop that resumed it destroys it.
CHIME_API void end_task(std::coroutine_handle<> frame, promise_base& promise) noexcept;

/// Goes on with whoever awaits the frame that has come to its end.
struct final_awaiter {
    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class Promise>
    [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> frame) const noexcept {
        promise_base& promise = frame.promise();
        if (promise.continuation) [[likely]]
            return promise.continuation;
        end_task(frame, promise);
        return std::noop_coroutine();
    }

    void await_resume() const noexcept {}
};

/// The promise of a coroutine, if it is one of ours.
template <class Promise>
[[nodiscard]] promise_base* promise_of(std::coroutine_handle<Promise> frame) noexcept {
    if constexpr (std::derived_from<Promise, promise_base>) {
        return &frame.promise();
    } else {
        return nullptr;
    }
}

}  // namespace detail
}  // namespace v0
}  // namespace chime
