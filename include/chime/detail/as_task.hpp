// SPDX-License-Identifier: MIT
#pragma once

#include <chime/detail/closure.hpp>
#include <chime/error.hpp>
#include <chime/task.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

// How anything that can be awaited becomes a task that can be spawned.

namespace chime {
inline namespace v0 {
namespace detail {

// --- What `co_await` makes of something.

template <class Awaitable>
decltype(auto) awaiter_of(Awaitable&& awaitable) {
    if constexpr (requires { std::forward<Awaitable>(awaitable).operator co_await(); }) {
        return std::forward<Awaitable>(awaitable).operator co_await();
    } else if constexpr (requires { operator co_await(std::forward<Awaitable>(awaitable)); }) {
        return operator co_await(std::forward<Awaitable>(awaitable));
    } else {
        return std::forward<Awaitable>(awaitable);
    }
}

template <class Awaitable>
using await_result_t = decltype(awaiter_of(std::declval<Awaitable>()).await_resume());

template <class T>
concept can_be_awaited = requires(T given) {
    static_cast<bool>(awaiter_of(std::move(given)).await_ready());
    typename await_result_t<T>;
};

template <class T>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<task<T>> = true;

template <class Awaitable>
task<await_result_t<Awaitable>> await_once(Awaitable awaitable) {
    co_return co_await std::move(awaitable);
}

/// A task of a plain function.
template <class Function>
task<> call_once(Function function) {
    static_assert(!returns_task<Function>,
                  "this function returns a task, which nobody would run: spawn the task instead");
    static_cast<void>(function());
    co_return;
}

/// A task of what is a task or can be awaited.
template <class Awaitable>
auto as_task(Awaitable&& given) {
    if constexpr (is_task<std::remove_cvref_t<Awaitable>>) {
        static_assert(std::is_rvalue_reference_v<Awaitable&&>, "a task is spawned once: move it in");
        return std::remove_cvref_t<Awaitable>(std::forward<Awaitable>(given));
    } else if constexpr (can_be_awaited<std::remove_cvref_t<Awaitable>>) {
        return await_once<std::remove_cvref_t<Awaitable>>(std::forward<Awaitable>(given));
    } else {
        constexpr bool is_function = std::invocable<Awaitable>;
        static_assert(!is_function,
                      "this is a function that nobody has called: call the lambda, spawn(ctx, lambda()), and keep it "
                      "until the task has ended if it captures anything");
        static_assert(is_function, "only a task, or something else that can be awaited, can be spawned");
        return task<>();  // So that the compiler has nothing more to say.
    }
}

template <class Awaitable>
using spawned_result_t = typename decltype(as_task(std::declval<Awaitable>()))::value_type;

/// Throws std::system_error: errc::empty_task.
template <class Awaitable>
void require_task(const Awaitable& given) {
    if constexpr (is_task<Awaitable>) {
        if (!given)
            refuse(errc::empty_task, "chime::try_spawn: there is nothing to spawn: the task was moved away before");
    }
}

}  // namespace detail
}  // namespace v0
}  // namespace chime
