// SPDX-License-Identifier: MIT
#pragma once

#include <coroutine>
#include <memory>

namespace chime {
inline namespace v0 {
namespace detail {

class task_control;

/// The frame of a task that is about to begin, and what the task shares with its join_handle, if there is one.
struct made_frame {
    std::coroutine_handle<> root;
    task_control* control = nullptr;  ///< The task has a reference to it.
};

/// Makes a frame as soon as there is a place for it, so that whoever is refused has given nothing away. Plain pointers,
/// because who calls it does not know the type. Lives as long as the function that it was made of.
struct frame_maker {
    template <class Make>
    explicit frame_maker(Make& given) noexcept
        : make([](void* function) -> made_frame { return (*static_cast<Make*>(function))(); }),
          from(std::addressof(given)) {}

    made_frame (*make)(void* from);
    void* from;
};

}  // namespace detail
}  // namespace v0
}  // namespace chime
