// SPDX-License-Identifier: MIT
#pragma once

#include <chime/detail/export.hpp>
#include <chime/detail/frame_memory.hpp>
#include <chime/error.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

// How a function of any type is kept in a timer's record: in place if it is small, in pooled memory otherwise.

namespace chime {
inline namespace v0 {
namespace detail {

/// What a record has room for, so that a whole timer is one cache line. What is larger is pooled.
inline constexpr std::size_t closure_bytes = 24;
/// The same, if the timer also has a period, a token or a place where it was armed.
inline constexpr std::size_t closure_bytes_beside_extra = 16;
inline constexpr std::size_t closure_alignment = 8;

/// A closure that is nothing but bytes, on its way into a record: in three registers.
struct closure_image {
    std::uint64_t words[closure_bytes / sizeof(std::uint64_t)] = {};
};
static_assert(sizeof(closure_image) == closure_bytes);

/// What can be carried to its record byte by byte, and has nothing to destroy there.
template <class Function>
concept bytewise_closure = std::is_trivially_copyable_v<Function> && std::is_trivially_destructible_v<Function> &&
                               sizeof(Function) <= closure_bytes
                           && alignof(Function) <= closure_alignment;

template <bytewise_closure Function>
[[nodiscard]] closure_image image_of(const Function& function) noexcept {
    closure_image image;
    std::memcpy(image.words, std::addressof(function), sizeof function);
    return image;
}

/// What the record knows of the closure in it.
struct closure_operations {
    void (*run)(void* storage);
    void (*destroy)(void* storage) noexcept;  ///< Null: there is nothing to do.
    const char* (*name)() noexcept;           ///< Says which function it is, among other things.
};

/// The compiler's own description of this call, which names the function's type; for a lambda, where it was written.
template <class Function>
const char* name_of_closure() noexcept {
    return __PRETTY_FUNCTION__;
}

template <class Function>
struct closure_in_place {
    static void run(void* storage) { static_cast<void>((*static_cast<Function*>(storage))()); }
    static void destroy(void* storage) noexcept { std::destroy_at(static_cast<Function*>(storage)); }

    static constexpr closure_operations operations{
        &run, std::is_trivially_destructible_v<Function> ? nullptr : &destroy, &name_of_closure<Function>};
};

template <class Function>
struct closure_elsewhere {
    static Function*& place(void* storage) noexcept { return *static_cast<Function**>(storage); }
    static void run(void* storage) { static_cast<void>((*place(storage))()); }
    static void destroy(void* storage) noexcept {
        std::destroy_at(place(storage));
        give_frame(place(storage), sizeof(Function));
    }

    static constexpr closure_operations operations{&run, &destroy, &name_of_closure<Function>};
};

template <class Function>
concept returns_task = requires {
    typename std::invoke_result_t<Function&>::promise_type;
};

/// A function that is kept in `Room` bytes, or by a pointer there.
template <class Function, std::size_t Room>
struct closure_in {
    static_assert(!returns_task<Function>,
                  "this callback returns a task, which nobody would run: spawn the task inside the callback");

    static constexpr bool fits = sizeof(Function) <= Room && alignof(Function) <= closure_alignment;

    static constexpr const closure_operations& operations =
        fits ? closure_in_place<Function>::operations : closure_elsewhere<Function>::operations;

    /// Moves a function into the storage. Throws what the function's constructor throws, or std::bad_alloc.
    template <class Source>
    static void put(void* storage, Source&& source) noexcept(fits&& std::is_nothrow_constructible_v<Function, Source>) {
        if constexpr (fits) {
            std::construct_at(static_cast<Function*>(storage), std::forward<Source>(source));
        } else {
            static_assert(
                alignof(Function) <= frame_alignment,
                "a closure is aligned to 16 bytes at most: let it hold a pointer to what is aligned more strictly");
            void* const memory = take_frame(sizeof(Function));
            try {
                std::construct_at(static_cast<Function*>(memory), std::forward<Source>(source));
            } catch (...) {
                give_frame(memory, sizeof(Function));
                throw;
            }
            ::new (storage) Function*(static_cast<Function*>(memory));
        }
    }
};

/// An empty std::function, a null function pointer: something that cannot be called although its type can.
template <class Function>
[[nodiscard]] bool is_empty_function(const Function& function) noexcept {
    // A lambda without captures compares with null too, by way of a function pointer that never is.
    constexpr bool compares = requires {
        { function == nullptr } -> std::same_as<bool>;
    };
    if constexpr (compares && !std::is_empty_v<Function> && !std::is_function_v<Function>) {
        return function == nullptr;
    } else {
        return false;
    }
}

/// Throws std::system_error: errc::empty_function.
[[noreturn]] CHIME_API void refuse_empty_function(const char* call);

template <class Function>
void require_function(const Function& function, const char* call) {
    if (is_empty_function(function)) [[unlikely]]
        refuse_empty_function(call);
}

}  // namespace detail

/// What a timer can call: something that can be called without arguments and moved into the timer.
template <class Function>
concept timer_function = std::invocable < std::decay_t<Function>
& > &&std::constructible_from<std::decay_t<Function>, Function>&&
        std::is_nothrow_destructible_v<std::decay_t<Function>>;

namespace detail {

/// Says what keeps a type from being a timer_function. Nobody comes to call it: the program does not compile.
template <class Function>
[[noreturn]] void explain_refusal() {
    using kept = std::decay_t<Function>;
    static_assert(
        !requires { typename kept::promise_type; },
        "this is a task and not a function: spawn_detached(context, std::move(task)) runs it");
    static_assert(
        std::is_invocable_v<kept&>,
        "a callback is called without arguments, so without an error_code, too, and as an lvalue: let it take none; one "
        "that is cancelled is simply not called");
    static_assert(
        std::is_constructible_v<kept, Function>,
        "a callback is moved or copied to where it is kept: std::move one that cannot be copied, and make it no "
        "constant");
    static_assert(std::is_nothrow_destructible_v<kept>, "the destructor of a callback must not throw");
    std::terminate();  // So that the compiler has nothing more to say.
}

}  // namespace detail

}  // namespace v0
}  // namespace chime
