// SPDX-License-Identifier: MIT
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace chime::test {

/// A coroutine that somebody starts beside a task: it begins at once, and nobody awaits it.
class eager {
 public:
    struct promise_type {
        [[nodiscard]] eager get_return_object() noexcept {
            return eager(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        [[nodiscard]] static std::suspend_never initial_suspend() noexcept { return {}; }
        [[nodiscard]] static std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() const noexcept {}
        [[noreturn]] void unhandled_exception() const { std::terminate(); }
    };

    eager(eager&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
    eager& operator=(eager&&) = delete;
    ~eager() {
        if (frame_) frame_.destroy();
    }

 private:
    explicit eager(std::coroutine_handle<> frame) noexcept : frame_(frame) {}

    std::coroutine_handle<> frame_;
};

}  // namespace chime::test
