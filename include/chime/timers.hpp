// SPDX-License-Identifier: MIT
#pragma once

#include <chime/cancel.hpp>
#include <chime/detail/arming.hpp>
#include <chime/detail/closure.hpp>
#include <chime/detail/export.hpp>
#include <chime/detail/sleep_awaitable.hpp>
#include <chime/detail/suspension.hpp>
#include <chime/error.hpp>
#include <chime/stats.hpp>
#include <chime/time.hpp>
#include <chime/timer_handle.hpp>

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

namespace chime {
inline namespace v0 {

class timers;

/// Waits, in a task, until a timer is cancelled and its callback does not run any more. See timers::cancel_and_join.
class [[nodiscard("await it to know that nothing runs any more")]] cancel_and_join_awaitable {
 public:
    cancel_and_join_awaitable(detail::crew & home, timer_handle which) noexcept : home_(home), which_(which) {}
    /// May be moved until it is awaited.
    CHIME_API cancel_and_join_awaitable(cancel_and_join_awaitable && other) noexcept;
    cancel_and_join_awaitable& operator=(cancel_and_join_awaitable&&) = delete;
    CHIME_API ~cancel_and_join_awaitable();

    [[nodiscard]] CHIME_API bool await_ready();

    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> frame) {
        return wait_.emplace(ended_).await_suspend(frame);
    }

    cancel_result await_resume() noexcept {
        if (wait_) wait_->await_resume();
        unsubscribe();  // It may outlive the context from now on.
        return result_;
    }

 private:
    CHIME_API void unsubscribe() noexcept;

    detail::crew& home_;
    timer_handle which_;
    cancel_result result_ = cancel_result::gone;
    bool is_subscribed_ = false;
    detail::completion ended_;
    std::optional<detail::completion_awaiter> wait_;
};

/// All timers of one context: callbacks and sleeps.
///
/// Belongs to an io_context (or runtime) and lives as long. Everything here may be called from any thread, with any
/// std::chrono::duration and any time_point of chime's clock: fractions are rounded up, what is too long is `never`, zero
/// or less is due now, and NaN is refused with std::system_error (std::errc::invalid_argument). Nothing ever runs before
/// its deadline; what is due runs in the order of (deadline, arming), on the thread that runs the context. After warm-up
/// nothing is allocated.
class timers {
 public:
    using clock = chime::clock;
    using time_point = chime::time_point;
    using duration = chime::duration;

    timers(const timers&) = delete;
    timers& operator=(const timers&) = delete;

    /// Calls `function` once, `delay` from now or a little later. If `token` is cancelled before, it is not called.
    /// Armed from inside a callback or a task of this context, the delay counts from when that returns or waits.
    ///
    ///     ctx.timers().after(30s, [&] { session.close(); });
    ///
    /// Throws std::system_error: errc::too_many_timers, errc::stopped, errc::empty_function; std::bad_alloc; what moving
    /// the function throws. Then nothing was armed.
    template <class Rep, class Period, class Function>
    timer_handle after(std::chrono::duration<Rep, Period> delay, Function&& function, const cancel_token& token = {},
                       const std::source_location& where = std::source_location::current()) {
        const duration rounded = round_up(delay);
        const cancel_token* const watch = watched(token);
        const detail::packed_handle made = try_arm_at_once(function, rounded, watch);
        if (made.place != 0) [[likely]]
            return made.unpacked();
        return arm("chime::timers::after", std::forward<Function>(function),
                   {.limit = detail::wait_limit::after(rounded), .token = watch, .where = detail::pack(where)});
    }

    /// A time or a number instead of a delay: the compiler says what to write.
    template <class Clock, class Duration, class... Rest>
    timer_handle after(std::chrono::time_point<Clock, Duration>, Rest&&...) {
        detail::ask_for_delay<Clock>();
        return {};
    }
    template <detail::without_unit Number, class... Rest>
    timer_handle after(Number, Rest&&...) {
        detail::ask_for_unit<Number>();
        return {};
    }

    /// Calls `function` once, at `deadline` or a little later; one in the past is due now. Otherwise like after().
    template <class Function>
    timer_handle at(detail::any_deadline deadline, Function&& function, const cancel_token& token = {},
                    const std::source_location& where = std::source_location::current()) {
        return arm(
            "chime::timers::at", std::forward<Function>(function),
            {.limit = detail::wait_limit::at(deadline.time()), .token = watched(token), .where = detail::pack(where)});
    }

    /// Calls `function` again and again: first one period from now, then once per period, without drift. What happens
    /// to ticks that could not run in time is for you to choose. An exception from one run does not end it.
    ///
    /// Throws like after(), and std::system_error: errc::bad_period for a period that is not longer than zero,
    /// std::errc::invalid_argument for a policy that is none of the three.
    template <class Rep, class Period, class Function>
    timer_handle every(std::chrono::duration<Rep, Period> period, missed_ticks policy, Function&& function,
                       const cancel_token& token = {},
                       const std::source_location& where = std::source_location::current()) {
        const duration step = valid_period("chime::timers::every", round_up(period), policy);
        return arm("chime::timers::every", std::forward<Function>(function),
                   {.limit = detail::wait_limit::after(step),
                    .period_ns = step.count(),
                    .policy = policy,
                    .token = watched(token),
                    .where = detail::pack(where)});
    }

    /// Without a policy: the compiler asks for one. There is no default, because each would surprise somebody.
    template <class Rep, class Period, detail::no_policy Function, class... Rest>
    timer_handle every(std::chrono::duration<Rep, Period>, Function&&, Rest&&...) {
        detail::ask_for_policy<Function>();
    }

    template <detail::without_unit Number, class... Rest>
    timer_handle every(Number, Rest&&...) {
        detail::ask_for_unit<Number>();
        return {};
    }
    template <class Clock, class Duration, class... Rest>
    timer_handle every(std::chrono::time_point<Clock, Duration>, Rest&&...) {
        static_assert(
            sizeof(Clock) == 0,
            "a period is a duration, and this is a time: write every(1s, policy, function), and postpone_until() "
            "with its handle for the time of the first run");
        return {};
    }

    /// Like after(), but when there are too many timers, or they were stopped, it gives nothing and has not touched
    /// `function`.
    template <class Rep, class Period, class Function>
    [[nodiscard]] std::optional<timer_handle>
    try_after(std::chrono::duration<Rep, Period> delay, Function&& function, const cancel_token& token = {},
              const std::source_location& where = std::source_location::current()) {
        const duration rounded = round_up(delay);
        const cancel_token* const watch = watched(token);
        const detail::packed_handle made = try_arm_at_once(function, rounded, watch);
        if (made.place != 0) [[likely]]
            return made.unpacked();
        return try_arm("chime::timers::try_after", std::forward<Function>(function),
                       {.limit = detail::wait_limit::after(rounded), .token = watch, .where = detail::pack(where)});
    }

    template <class Clock, class Duration, class... Rest>
    std::optional<timer_handle> try_after(std::chrono::time_point<Clock, Duration>, Rest&&...) {
        detail::ask_for_delay<Clock>();
        return {};
    }
    template <detail::without_unit Number, class... Rest>
    std::optional<timer_handle> try_after(Number, Rest&&...) {
        detail::ask_for_unit<Number>();
        return {};
    }

    template <class Function>
    [[nodiscard]] std::optional<timer_handle>
    try_at(detail::any_deadline deadline, Function&& function, const cancel_token& token = {},
           const std::source_location& where = std::source_location::current()) {
        return try_arm(
            "chime::timers::try_at", std::forward<Function>(function),
            {.limit = detail::wait_limit::at(deadline.time()), .token = watched(token), .where = detail::pack(where)});
    }

    /// Throws std::system_error like every() for a period or policy that is a mistake, and no shortage.
    template <class Rep, class Period, class Function>
    [[nodiscard]] std::optional<timer_handle>
    try_every(std::chrono::duration<Rep, Period> period, missed_ticks policy, Function&& function,
              const cancel_token& token = {}, const std::source_location& where = std::source_location::current()) {
        const duration step = valid_period("chime::timers::try_every", round_up(period), policy);
        return try_arm("chime::timers::try_every", std::forward<Function>(function),
                       {.limit = detail::wait_limit::after(step),
                        .period_ns = step.count(),
                        .policy = policy,
                        .token = watched(token),
                        .where = detail::pack(where)});
    }

    template <class Rep, class Period, detail::no_policy Function, class... Rest>
    std::optional<timer_handle> try_every(std::chrono::duration<Rep, Period>, Function&&, Rest&&...) {
        detail::ask_for_policy<Function>();
    }
    template <detail::without_unit Number, class... Rest>
    std::optional<timer_handle> try_every(Number, Rest&&...) {
        detail::ask_for_unit<Number>();
        return {};
    }

    /// Cancels a callback or a sleep. Whatever the handle is, there is an answer; see cancel_result. What is due but has
    /// not begun to run can still be cancelled. After `cancelled` the closure is destroyed, on this thread. A cancelled
    /// sleeper becomes ready; it is resumed by its own loop. Lock-free.
    CHIME_API cancel_result cancel(timer_handle which) noexcept;

    /// Like cancel(), and when it returns nothing of the callback runs any more: it blocks while the callback is running
    /// on another thread. Inside its own callback it returns `running` at once. Two callbacks on two workers that wait for
    /// each other wait for ever.
    CHIME_API cancel_result cancel_and_wait(timer_handle which) noexcept;

    /// Like cancel_and_wait(), for tasks: `co_await` it.
    cancel_and_join_awaitable cancel_and_join(timer_handle which) noexcept { return {*home_, which}; }

    /// Says that `which` will be cancelled or postponed soon: what it names is on its way to the cache by then. Changes
    /// nothing, whatever the handle. With many timers and a batch of events at hand, naming them some eight ahead saves
    /// most of what an operation costs:
    ///
    ///     for (std::size_t i = 0; i < events.size(); ++i) {
    ///         if (i + 8 < events.size()) timers.prefetch(events[i + 8].timeout);
    ///         timers.postpone(events[i].timeout, 30s);
    ///     }
    CHIME_API void prefetch(timer_handle which) const noexcept;

    /// Gives a pending callback or sleep a new deadline, `delay` from now, earlier or later. It keeps its place in the
    /// order of arming. False: it is gone or running. Throws std::bad_alloc; then nothing has changed.
    template <class Rep, class Period>
    bool postpone(timer_handle which, std::chrono::duration<Rep, Period> delay) {
        return postpone_by(which, round_up(delay));
    }
    template <class Clock, class Duration>
    bool postpone(timer_handle, std::chrono::time_point<Clock, Duration>) {
        detail::ask_for_delay<Clock>();
        return false;
    }
    template <detail::without_unit Number>
    bool postpone(timer_handle, Number) {
        detail::ask_for_unit<Number>();
        return false;
    }
    bool postpone_until(timer_handle which, detail::any_deadline deadline) {
        return postpone_to(which, deadline.time());
    }

    /// Suspends the current task for `delay` or a little longer, never shorter.
    ///
    /// A zero or negative delay still yields once, so a loop of sleeps cannot starve its loop. Gives a wake_reason, which
    /// may be ignored. With `throw_on_cancel`, a cancelled sleep throws std::system_error (errc::cancelled) instead.
    ///
    /// Any task of this context. No allocation. Awaiting throws std::system_error: errc::not_in_a_task; std::bad_alloc.
    template <class Rep, class Period>
    auto sleep_for(std::chrono::duration<Rep, Period> delay) {
        return detail::plain_sleep<false>(home_, detail::wait_limit::after(round_up(delay)));
    }
    template <class Rep, class Period>
    auto sleep_for(std::chrono::duration<Rep, Period> delay, cancel_token token) {
        return detail::watched_sleep<false>(home_, detail::wait_limit::after(round_up(delay)), std::move(token));
    }
    template <class Rep, class Period>
    auto sleep_for(std::chrono::duration<Rep, Period> delay, throw_on_cancel_t) {
        return detail::plain_sleep<true>(home_, detail::wait_limit::after(round_up(delay)));
    }
    template <class Rep, class Period>
    auto sleep_for(std::chrono::duration<Rep, Period> delay, cancel_token token, throw_on_cancel_t) {
        return detail::watched_sleep<true>(home_, detail::wait_limit::after(round_up(delay)), std::move(token));
    }

    template <detail::without_unit Number, class... Rest>
    detail::plain_sleep<false> sleep_for(Number, Rest&&...) {
        detail::ask_for_unit<Number>();
        return {home_, {}};
    }
    template <class Clock, class Duration, class... Rest>
    detail::plain_sleep<false> sleep_for(std::chrono::time_point<Clock, Duration>, Rest&&...) {
        detail::ask_for_delay<Clock>();
        return {home_, {}};
    }

    /// Like sleep_for(), until a time; one in the past is due now.
    auto sleep_until(detail::any_deadline deadline) {
        return detail::plain_sleep<false>(home_, detail::wait_limit::at(deadline.time()));
    }
    auto sleep_until(detail::any_deadline deadline, cancel_token token) {
        return detail::watched_sleep<false>(home_, detail::wait_limit::at(deadline.time()), std::move(token));
    }
    auto sleep_until(detail::any_deadline deadline, throw_on_cancel_t) {
        return detail::plain_sleep<true>(home_, detail::wait_limit::at(deadline.time()));
    }
    auto sleep_until(detail::any_deadline deadline, cancel_token token, throw_on_cancel_t) {
        return detail::watched_sleep<true>(home_, detail::wait_limit::at(deadline.time()), std::move(token));
    }

    /// The context's clock, virtual or real.
    [[nodiscard]] CHIME_API time_point now() const noexcept;

    [[nodiscard]] CHIME_API timer_stats stats() const noexcept;

    /// Ends it all, for good: from now on arming is refused; the loop cancels every callback and resumes every sleeper
    /// once, with `cancelled`. A task that then sleeps again is destroyed where it stands. The work is done by whoever
    /// runs the context.
    CHIME_API void stop() noexcept;

 private:
    friend class io_context;
    friend class runtime;
    friend class timer_cell;

    explicit timers(detail::crew* home) noexcept : home_(home) {}

    CHIME_API bool postpone_by(timer_handle which, duration delay);
    CHIME_API bool postpone_to(timer_handle which, time_point deadline);

    /// Throws std::system_error: errc::bad_period.
    CHIME_API static duration valid_period(const char* call, duration period, missed_ticks policy);

    /// Decided where the token is made, so that nobody asks again about one that was never there.
    [[nodiscard]] static const cancel_token* watched(const cancel_token& token) noexcept {
        return token.can_be_cancelled() ? &token : nullptr;
    }

    template <timer_function Function>
    timer_handle arm(const char* call, Function&& function, const detail::arming_details& details) {
        detail::require_function(function, call);
        const detail::arming begun = detail::begin_arming(*home_);
        if (begun.closure == nullptr) [[unlikely]]
            detail::refuse_arming(*home_, call);
        return fill(begun, std::forward<Function>(function), details);
    }

    template <timer_function Function>
    std::optional<timer_handle> try_arm(const char* call, Function&& function, const detail::arming_details& details) {
        detail::require_function(function, call);
        const detail::arming begun = detail::begin_arming(*home_);
        if (begun.closure == nullptr) return std::nullopt;
        return fill(begun, std::forward<Function>(function), details);
    }

    /// The usual case: a few bytes, a delay, no token, a worker's thread. A handle that names nothing: it is not so usual, and
    /// nothing was done.
    template <class Function>
    detail::packed_handle try_arm_at_once(const Function& function, duration delay,
                                          const cancel_token* token) noexcept {
        if constexpr (timer_function<const Function&> && detail::bytewise_closure<Function>) {
            if (token == nullptr && !detail::is_empty_function(function)) {
                using closure = detail::closure_in<Function, detail::closure_bytes>;
                const detail::closure_image image = detail::image_of(function);
                return detail::try_arm_image(*home_, closure::operations, delay.count(), image.words[0], image.words[1],
                                             image.words[2]);
            }
        }
        return {};
    }

    // What cannot be called or kept comes here, to be refused by the compiler in words.

    template <class Function>
    timer_handle arm(const char*, Function&&, const detail::arming_details&) {
        detail::explain_refusal<Function>();
    }
    template <class Function>
    std::optional<timer_handle> try_arm(const char*, Function&&, const detail::arming_details&) {
        detail::explain_refusal<Function>();
    }

    template <class Function>
    timer_handle fill(const detail::arming& begun, Function&& function, detail::arming_details details) {
        using plain = detail::closure_in<std::decay_t<Function>, detail::closure_bytes>;
        using beside = detail::closure_in<std::decay_t<Function>, detail::closure_bytes_beside_extra>;
        if (details.period_ns == 0 && details.token == nullptr && begun.records_location == 0) [[likely]] {
            put<plain>(begun, std::forward<Function>(function));
            return detail::arm(*home_, begun.index, plain::operations, details.limit);
        }
        put<beside>(begun, std::forward<Function>(function));
        details.operations = &beside::operations;
        return detail::arm_with_extra(*home_, begun, details);
    }

    template <class Closure, class Function>
    void put(const detail::arming& begun, Function&& function) {
        if constexpr (noexcept(Closure::put(begun.closure, std::forward<Function>(function)))) {
            Closure::put(begun.closure, std::forward<Function>(function));
        } else {
            try {
                Closure::put(begun.closure, std::forward<Function>(function));
            } catch (...) {
                detail::abandon_arming(*home_, begun);
                throw;
            }
        }
    }

    detail::crew* home_;
};

/// Owns a timer: when it goes, the timer is cancelled, and nothing of its callback runs any more.
///
///     chime::scoped_timer watchdog(ctx.timers(), ctx.timers().after(5s, [this] { give_up(); }));
///
/// Move-only; must not outlive the context. `home` is the context that the timer was armed with: a timer of another one is
/// not there, and is not cancelled. Destroyed inside the callback itself it does not wait; nor, on an io_context, inside
/// any other callback, unless another thread has cancelled the timer and is destroying its closure this moment.
class [[nodiscard("a scoped_timer that is dropped at once cancels its timer")]] scoped_timer {
 public:
    scoped_timer() noexcept = default;
    [[nodiscard("a scoped_timer that is dropped at once cancels its timer")]]  // Once more, for g++ 12.
    scoped_timer(timers & home, timer_handle which) noexcept
        : home_(&home), which_(which) {}
    scoped_timer(scoped_timer && other) noexcept
        : home_(std::exchange(other.home_, nullptr)), which_(std::exchange(other.which_, {})) {}
    scoped_timer& operator=(scoped_timer&& other) noexcept {
        if (this != &other) {
            cancel();
            home_ = std::exchange(other.home_, nullptr);
            which_ = std::exchange(other.which_, {});
        }
        return *this;
    }
    ~scoped_timer() {
        cancel();
    }

    [[nodiscard]] timer_handle get() const noexcept {
        return which_;
    }

    /// Lets go of the timer without cancelling it.
    timer_handle release() noexcept {
        home_ = nullptr;
        return std::exchange(which_, {});
    }

    /// Cancels now, and waits as the destructor would.
    cancel_result cancel() noexcept {
        timers* const home = std::exchange(home_, nullptr);
        return home == nullptr ? cancel_result::gone : home->cancel_and_wait(std::exchange(which_, {}));
    }

 private:
    timers* home_ = nullptr;
    timer_handle which_;
};

}  // namespace v0
}  // namespace chime
