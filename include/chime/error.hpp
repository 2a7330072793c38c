// SPDX-License-Identifier: MIT
#pragma once

#include <chime/detail/export.hpp>

#include <system_error>

namespace chime {
inline namespace v0 {

/// Why chime refused something. Comes as a std::system_error, except where a `try_` sibling answers with nothing.
enum class errc {
    cancelled = 1,     ///< What was waited for was cancelled. std::errc::operation_canceled.
    too_many_timers,   ///< The cap on pending timers is reached. std::errc::resource_unavailable_try_again.
    too_many_tasks,    ///< The cap on live tasks is reached. std::errc::resource_unavailable_try_again.
    stopped,           ///< The timers were stopped, or the runtime shut down, for good. std::errc::operation_canceled.
    not_in_a_task,     ///< Only a task that was spawned can wait here. std::errc::operation_not_permitted.
    already_running,   ///< Somebody is running this context. std::errc::device_or_resource_busy.
    empty_function,    ///< The function to call is empty. std::errc::invalid_argument.
    empty_task,        ///< The task was moved away or awaited before. std::errc::invalid_argument.
    bad_period,        ///< A period must be longer than zero. std::errc::invalid_argument.
    on_a_worker,       ///< Not from a thread that runs tasks itself. std::errc::resource_deadlock_would_occur.
    no_such_worker,    ///< It never was one, or has retired. std::errc::invalid_argument.
    last_worker,       ///< Somebody has to stay. std::errc::operation_not_permitted.
    too_many_workers,  ///< There are as many as there may be. std::errc::resource_unavailable_try_again.
    bad_configuration  ///< A configuration makes no sense; the message says what to change. std::errc::invalid_argument.
};

/// The category of chime::errc; each code compares equal to the std::errc that is named beside it.
[[nodiscard]] CHIME_API const std::error_category& error_category() noexcept;

[[nodiscard]] inline std::error_code make_error_code(errc code) noexcept {
    return {static_cast<int>(code), error_category()};
}

/// What a cancelled wait throws if it was asked to throw.
[[nodiscard]] inline std::error_code cancelled_ec() noexcept {
    return make_error_code(errc::cancelled);
}

namespace detail {

/// Throws std::system_error with `code` and a message that says what was asked and what to do.
[[noreturn]] CHIME_API void refuse(errc code, const char* message);

}  // namespace detail

}  // namespace v0
}  // namespace chime

template <>
struct std::is_error_code_enum<chime::errc> : std::true_type {};
