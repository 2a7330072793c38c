// SPDX-License-Identifier: MIT
#pragma once

#include <chime/detail/frame_memory.hpp>
#include <chime/error.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

// How a function of any type is kept in a timer's record: in place if it is small, in pooled memory otherwise.

namespace chime {
inline namespace v0 {
namespace detail {

inline constexpr std::size_t closure_bytes = 32;
inline constexpr std::size_t closure_alignment = 16;

/// What the record knows of the closure in it.
struct closure_operations {
    void (*run)(void* storage);
    void (*destroy)(void* storage) noexcept;  ///< Null: there is nothing to do.
};

template <class Function>
inline constexpr bool fits_in_place = sizeof(Function) <= closure_bytes && alignof(Function) <= closure_alignment;

template <class Function>
struct closure_in_place {
    static void run(void* storage) { static_cast<void>((*static_cast<Function*>(storage))()); }
    static void destroy(void* storage) noexcept { std::destroy_at(static_cast<Function*>(storage)); }

    static constexpr closure_operations operations{&run,
                                                   std::is_trivially_destructible_v<Function> ? nullptr : &destroy};
};

template <class Function>
struct closure_elsewhere {
    static Function*& place(void* storage) noexcept { return *static_cast<Function**>(storage); }
    static void run(void* storage) { static_cast<void>((*place(storage))()); }
    static void destroy(void* storage) noexcept {
        std::destroy_at(place(storage));
        give_frame(place(storage), sizeof(Function));
    }

    static constexpr closure_operations operations{&run, &destroy};
};

template <class Function>
inline constexpr const closure_operations& operations_of =
    fits_in_place<Function> ? closure_in_place<Function>::operations : closure_elsewhere<Function>::operations;

/// Moves a function into the storage. Throws what the function's constructor throws, or std::bad_alloc.
template <class Function, class Source>
void put_closure(void* storage, Source&& source) {
    if constexpr (fits_in_place<Function>) {
        std::construct_at(static_cast<Function*>(storage), std::forward<Source>(source));
    } else {
        static_assert(alignof(Function) <= frame_alignment, "a closure must not be aligned more strictly than a frame");
        void* const memory = take_frame(sizeof(Function));
        try {
            std::construct_at(static_cast<Function*>(memory), std::forward<Source>(source));
        } catch (...) {
            give_frame(memory, sizeof(Function));
            throw;
        }
        closure_elsewhere<Function>::place(storage) = static_cast<Function*>(memory);
    }
}

/// An empty std::function, a null function pointer: something that cannot be called although its type can.
template <class Function>
[[nodiscard]] bool is_empty_function(const Function& function) noexcept {
    // A lambda without captures compares with null too, by way of a function pointer that never is.
    constexpr bool compares = requires {
        { function == nullptr } -> std::same_as<bool>;
    };
    if constexpr (compares && !std::is_empty_v<Function>) {
        return function == nullptr;
    } else {
        return false;
    }
}

template <class Function>
void require_function(const Function& function, const char* message) {
    if (is_empty_function(function)) refuse(errc::empty_function, message);
}

}  // namespace detail

/// What a timer can call: something that can be called without arguments and moved into the timer.
template <class Function>
concept timer_function = std::invocable < std::decay_t<Function>
& > &&std::constructible_from<std::decay_t<Function>, Function>&&
        std::is_nothrow_destructible_v<std::decay_t<Function>>;

}  // namespace v0
}  // namespace chime
