// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <type_traits>

namespace chime {
inline namespace v0 {
namespace detail {

class crew;

/// The loops behind an io_context or a runtime, for what spawns on it.
struct context_access {
    template <class Context>
    [[nodiscard]] static auto home_of(Context& context) noexcept -> decltype(*context.home_) {
        return *context.home_;
    }
};

/// An io_context or a runtime: where tasks can be spawned.
template <class Context>
concept task_home = requires(Context& context) {
    { context_access::home_of(context) } -> std::same_as<crew&>;
};

/// What only leads to one: a pointer, a virtual_context, a simulation. Nothing else, because these overloads would otherwise be
/// found by name for whatever somebody else spawns on.
template <class Context>
concept leads_to_home = requires(Context& context) {
    requires task_home<std::remove_reference_t<decltype(*context)>>;
};

/// For what was given something else.
template <class Context>
constexpr void ask_for_home() {
    static_assert(
        sizeof(Context) == 0,
        "a task is spawned on an io_context or a runtime; a virtual_context and a simulation hold one, and so "
        "does a pointer: write spawn(*ctx, task)");
}

}  // namespace detail
}  // namespace v0
}  // namespace chime
