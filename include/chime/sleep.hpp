// SPDX-License-Identifier: MIT
#pragma once

#include <chime/cancel.hpp>
#include <chime/detail/sleep_awaitable.hpp>
#include <chime/detail/suspension.hpp>
#include <chime/time.hpp>

#include <chrono>
#include <coroutine>
#include <utility>

// Sleeping inside a task without naming its context.

namespace chime {
inline namespace v0 {

/// Suspends the current task for `delay` or a little longer, never shorter.
///
/// A zero or negative delay still yields once, so a loop of sleeps cannot starve its loop.
///
///     const auto why = co_await chime::sleep_for(5ms, token);
///     if (why == chime::wake_reason::cancelled) co_return;
///
/// Any task. No allocation. Awaiting throws std::system_error: errc::not_in_a_task; with `throw_on_cancel` also
/// errc::cancelled. NaN is refused with std::system_error (std::errc::invalid_argument).
template <class Rep, class Period>
auto sleep_for(std::chrono::duration<Rep, Period> delay) {
    return detail::plain_sleep<false>(nullptr, detail::wait_limit::after(round_up(delay)));
}
template <class Rep, class Period>
auto sleep_for(std::chrono::duration<Rep, Period> delay, cancel_token token) {
    return detail::watched_sleep<false>(nullptr, detail::wait_limit::after(round_up(delay)), std::move(token));
}
template <class Rep, class Period>
auto sleep_for(std::chrono::duration<Rep, Period> delay, throw_on_cancel_t) {
    return detail::plain_sleep<true>(nullptr, detail::wait_limit::after(round_up(delay)));
}
template <class Rep, class Period>
auto sleep_for(std::chrono::duration<Rep, Period> delay, cancel_token token, throw_on_cancel_t) {
    return detail::watched_sleep<true>(nullptr, detail::wait_limit::after(round_up(delay)), std::move(token));
}

/// A number or a time instead of a delay: the compiler says what to write.
template <detail::without_unit Number, class... Rest>
detail::plain_sleep<false> sleep_for(Number, Rest&&...) {
    detail::ask_for_unit<Number>();
    return {nullptr, {}};
}
template <class Clock, class Duration, class... Rest>
detail::plain_sleep<false> sleep_for(std::chrono::time_point<Clock, Duration>, Rest&&...) {
    detail::ask_for_delay<Clock>();
    return {nullptr, {}};
}

/// Suspends the current task until `deadline` or a little longer; one in the past yields. Otherwise like sleep_for().
inline auto sleep_until(detail::any_deadline deadline) {
    return detail::plain_sleep<false>(nullptr, detail::wait_limit::at(deadline.time()));
}
inline auto sleep_until(detail::any_deadline deadline, cancel_token token) {
    return detail::watched_sleep<false>(nullptr, detail::wait_limit::at(deadline.time()), std::move(token));
}
inline auto sleep_until(detail::any_deadline deadline, throw_on_cancel_t) {
    return detail::plain_sleep<true>(nullptr, detail::wait_limit::at(deadline.time()));
}
inline auto sleep_until(detail::any_deadline deadline, cancel_token token, throw_on_cancel_t) {
    return detail::watched_sleep<true>(nullptr, detail::wait_limit::at(deadline.time()), std::move(token));
}

namespace detail {

/// Goes to the end of the queue of a loop: the current one, or another.
class [[nodiscard("a yield or a hop does nothing until it is awaited")]] yield_awaitable {
 public:
    explicit yield_awaitable(crew * home) noexcept : home_(home) {}

    [[nodiscard]] bool await_ready() const noexcept {
        return false;
    }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> frame) const {
        yield_task(home_, frame, promise_of(frame), if_refused::throws);
    }
    void await_resume() const noexcept {}

 private:
    crew* home_;
};

/// The same for who wants an answer: is it there now?
class [[nodiscard("a hop does nothing until it is awaited")]] hop_awaitable {
 public:
    explicit hop_awaitable(crew * home) noexcept : home_(home) {}

    [[nodiscard]] bool await_ready() const noexcept {
        return false;
    }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> frame) {
        // Once the task has gone, this object may be gone as well: only who stays writes into it.
        is_refused_ = false;  // It may be awaited again.
        const bool has_gone = yield_task(home_, frame, promise_of(frame), if_refused::answers);
        if (!has_gone) is_refused_ = true;
        return has_gone;
    }
    [[nodiscard]] bool await_resume() const noexcept {
        return !is_refused_;
    }

 private:
    crew* home_;
    bool is_refused_ = false;
};

}  // namespace detail

/// Lets everything else that is ready run first. Awaiting throws std::system_error: errc::not_in_a_task.
inline auto yield() noexcept {
    return detail::yield_awaitable(nullptr);
}

namespace this_task {

/// The clock of the context that runs the current task or callback; outside of one, the monotonic clock.
[[nodiscard]] CHIME_API time_point now() noexcept;

/// The same without a look at the clock: as of when the loop began its turn or, if a runtime has a metronome, as of the
/// last look of that, whichever is later. Never ahead of now(), and never runs back on one worker; behind by as much as has
/// run in this turn, or by metronome_period. For time stamps of logs and caches; deadlines take the real clock.
[[nodiscard]] CHIME_API time_point coarse_now() noexcept;

/// Was the current task asked to end, through its join_handle, or with everything else by timers::stop() or a shutdown?
/// Every sleep ends at once then. A token of yours is another matter: ask that. False outside of a task.
[[nodiscard]] CHIME_API bool is_cancelled() noexcept;

}  // namespace this_task

}  // namespace v0
}  // namespace chime
