// SPDX-License-Identifier: MIT
#pragma once

#include <chime/detail/promise.hpp>
#include <chime/error.hpp>

#include <concepts>
#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace chime {
inline namespace v0 {

template <class T>
class task;

namespace detail {

template <class T>
struct task_promise final : promise_base {
    std::optional<T> value;

    task<T> get_return_object() noexcept;
    [[nodiscard]] static final_awaiter final_suspend() noexcept { return {}; }

    template <class Value = T>
    requires std::constructible_from<T, Value>
    void return_value(Value&& result) noexcept(std::is_nothrow_constructible_v<T, Value>) {
        value.emplace(std::forward<Value>(result));
    }

    T take() {
        if (failure) std::rethrow_exception(std::move(failure));
        if (!value) refuse(errc::empty_task, "chime::task: the coroutine came to its end without a co_return");
        return std::move(*value);  // NOLINT(bugprone-unchecked-optional-access): it ended without an exception.
    }
};

template <class T>
struct task_promise<T&> final : promise_base {
    T* value = nullptr;

    task<T&> get_return_object() noexcept;
    [[nodiscard]] static final_awaiter final_suspend() noexcept { return {}; }

    void return_value(T& result) noexcept { value = std::addressof(result); }

    T& take() {
        if (failure) std::rethrow_exception(std::move(failure));
        return *value;
    }
};

template <>
struct task_promise<void> final : promise_base {
    task<void> get_return_object() noexcept;
    [[nodiscard]] static final_awaiter final_suspend() noexcept { return {}; }

    void return_void() const noexcept {}

    void take() {
        if (failure) std::rethrow_exception(std::move(failure));
    }
};

/// Gives the frame of a task to somebody who takes care of it from now on.
struct task_access {
    template <class T>
    [[nodiscard]] static std::coroutine_handle<task_promise<T>> release(task<T>& from) noexcept {
        return std::coroutine_handle<task_promise<T>>::from_address(std::exchange(from.frame_, nullptr).address());
    }
};

}  // namespace detail

/// A coroutine that starts when it is awaited or spawned, and gives a T, a reference, nothing, or an exception.
///
///     chime::task<int> answer() { co_await chime::sleep_for(5ms); co_return 42; }
///     chime::task<> caller() { const int n = co_await answer(); }
///
/// Owns its frame; move-only. Await it once, as an rvalue. Awaiting a task that awaits a task, and so on, takes no stack,
/// neither on the way down nor on the way back. Frames come from a pool. One thread at a time.
template <class T = void>
class [[nodiscard("a task does nothing until it is awaited or spawned")]] task {
 public:
    using promise_type = detail::task_promise<T>;
    using value_type = T;

    task() noexcept = default;
    task(task && other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
    task& operator=(task&& other) noexcept {
        if (this != &other) {
            reset();
            frame_ = std::exchange(other.frame_, nullptr);
        }
        return *this;
    }
    ~task() {
        reset();
    }

    /// False: it was moved away, spawned, or never was a coroutine.
    explicit operator bool() const noexcept {
        return frame_ != nullptr;
    }

    class awaiter {
     public:
        explicit awaiter(task& awaited) noexcept : awaited_(awaited) {}

        [[nodiscard]] bool await_ready() const noexcept { return false; }

        template <class Promise>
        [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> caller) noexcept {
            detail::promise_base& callee = awaited_.promise();
            callee.continuation = caller;
            callee.parent = detail::promise_of(caller);
            callee.holder = &awaited_.frame_;
            return awaited_.frame_;
        }

        T await_resume() { return awaited_.promise().take(); }

     private:
        task& awaited_;
    };

    /// A task with a name is given away: this only says so. A template, so that it says so when it is called.
    template <class Itself = task>
    awaiter operator co_await() const& {
        static_assert(!std::same_as<Itself, task>,
                      "a task is awaited once, and given away by that: write co_await std::move(the_task)");
        std::terminate();  // So that the compiler has nothing more to say.
    }

    /// Runs the task to its end; gives what it returns, throws what it throws.
    /// Throws std::system_error: errc::empty_task.
    [[nodiscard]] awaiter operator co_await()&& {
        if (!frame_ || frame_.done()) {
            detail::refuse(
                errc::empty_task,
                "chime::task: there is nothing to await: the task was awaited, moved away or spawned before");
        }
        return awaiter(*this);
    }

 private:
    friend promise_type;
    friend detail::task_access;

    explicit task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}

    [[nodiscard]] promise_type& promise() const noexcept {
        return std::coroutine_handle<promise_type>::from_address(frame_.address()).promise();
    }

    void reset() noexcept {
        if (frame_) std::exchange(frame_, nullptr).destroy();
    }

    std::coroutine_handle<> frame_;
};

namespace detail {

template <class T>
task<T> task_promise<T>::get_return_object() noexcept {
    return task<T>(std::coroutine_handle<task_promise>::from_promise(*this));
}

template <class T>
task<T&> task_promise<T&>::get_return_object() noexcept {
    return task<T&>(std::coroutine_handle<task_promise>::from_promise(*this));
}

inline task<void> task_promise<void>::get_return_object() noexcept {
    return task<void>(std::coroutine_handle<task_promise>::from_promise(*this));
}

}  // namespace detail

}  // namespace v0
}  // namespace chime
