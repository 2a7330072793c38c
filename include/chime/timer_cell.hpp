// SPDX-License-Identifier: MIT
#pragma once

#include <chime/detail/export.hpp>
#include <chime/detail/suspension.hpp>
#include <chime/time.hpp>
#include <chime/timer_handle.hpp>
#include <chime/timers.hpp>

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <optional>

namespace chime {
inline namespace v0 {

/// The piece that waiting awaitables are made of: a deadline that lives in the frame of the task that waits for it.
///
/// A wait has two steps. prepare() begins it and gives the handle that names it: hand that to whatever may end the wait
/// early, with timers::cancel(handle), from any thread. commit() completes it. Between the two the task can be woken
/// already; then commit() notices and the task goes on by itself.
///
///     bool await_suspend(std::coroutine_handle<Promise> frame) {
///         door_.open_with(cell_.prepare(frame, 5s));  // Whoever opens the door cancels the handle.
///         return cell_.commit();
///     }
///     bool await_resume() { return cell_.reason() == wake_reason::cancelled && door_.is_open(); }
///
/// The reason is `cancelled` also when the task is cancelled or everything stops, so ask the door too.
///
/// One task at a time, the one that waits. Preparing again cancels what was prepared before; so does destroying it.
class timer_cell {
 public:
    /// For tasks of whatever context it is used in.
    timer_cell() noexcept = default;
    /// For tasks of one context alone.
    CHIME_API explicit timer_cell(timers& home) noexcept;
    /// May be moved between waits; in one, the wait is cancelled.
    CHIME_API timer_cell(timer_cell&& other) noexcept;
    timer_cell& operator=(timer_cell&&) = delete;
    ~timer_cell() { reset(); }

    /// Begins a wait of the task that `frame` belongs to, for `delay` from now.
    ///
    /// Throws std::system_error: errc::not_in_a_task, std::errc::invalid_argument for NaN; std::bad_alloc. Then no wait
    /// has begun.
    template <class Promise, class Rep, class Period>
    timer_handle prepare(std::coroutine_handle<Promise> frame, std::chrono::duration<Rep, Period> delay) {
        return prepare(frame, detail::wait_limit::after(round_up(delay)));
    }
    /// The same, until `deadline`; `never` waits for the handle alone.
    template <class Promise>
    timer_handle prepare(std::coroutine_handle<Promise> frame, detail::any_deadline deadline) {
        return prepare(frame, detail::wait_limit::at(deadline.time()));
    }

    /// The last thing that await_suspend does: return what it answers. True: the task is suspended, and neither the cell
    /// nor anything else in the frame may be touched any more. False: the task goes on at once.
    [[nodiscard("await_suspend must return it")]] CHIME_API bool commit() noexcept;

    /// In await_resume: why the wait ended.
    CHIME_API wake_reason reason() noexcept;

    /// Cancels the wait, if there is one.
    CHIME_API void reset() noexcept;

    /// The wait that was prepared last; names nothing before the first.
    [[nodiscard]] timer_handle handle() const noexcept { return handle_; }
    /// How many waits were prepared.
    [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }

    /// With an interval, prepare_next() waits for one multiple of it after the other, counted from the first deadline.
    /// Without one, or with one that is not longer than zero, it waits for now, which is a yield.
    /// Throws std::system_error (std::errc::invalid_argument) for NaN.
    template <class Rep, class Period>
    void set_interval(std::chrono::duration<Rep, Period> interval) noexcept(noexcept(round_up(interval))) {
        interval_ = round_up(interval);
    }
    [[nodiscard]] duration interval() const noexcept { return interval_; }
    /// The deadline of the latest wait.
    [[nodiscard]] time_point deadline() const noexcept { return deadline_; }

    /// Begins a wait for the deadline after the last one: without drift, however late the task comes. Missed ones are
    /// left out; one whose wait was cancelled before it came is waited for again. Throws like prepare().
    template <class Promise>
    timer_handle prepare_next(std::coroutine_handle<Promise> frame) {
        return prepare(frame, detail::wait_limit::at(next_deadline()));
    }

 private:
    template <class Promise>
    timer_handle prepare(std::coroutine_handle<Promise> frame, detail::wait_limit limit) {
        return begin(frame, detail::promise_of(frame), limit);
    }

    CHIME_API timer_handle begin(std::coroutine_handle<> frame, detail::promise_base* promise,
                                 detail::wait_limit limit);
    [[nodiscard]] CHIME_API time_point next_deadline() const noexcept;

    enum class stage : std::uint8_t { idle, prepared, committed };

    detail::crew* home_ = nullptr;
    detail::wake_key key_;
    timer_handle handle_;
    std::uint64_t generation_ = 0;
    duration interval_{};
    time_point deadline_{};
    stage stage_ = stage::idle;
    bool is_met_ = false;  ///< The last wait has not been cancelled.
};

/// The awaitable over a cell: waits for a delay, for a time, or, with an interval, for one tick after the other.
///
///     chime::timer_delay tick(ctx.timers(), 20ms);    // Await it as often as you like: every 20 ms, without drift.
///     for (;; draw()) {
///         const auto why = co_await tick;
///         if (why == chime::wake_reason::cancelled) break;
///     }
///
/// Lives in the frame of the task that awaits it. Destroying it cancels. handle() names the wait while it lasts. After a
/// tick that was cancelled, the next wait is for that same tick.
class [[nodiscard("a delay does nothing until it is awaited")]] timer_delay {
 public:
    /// A tick every `interval`, the first one `interval` after it is awaited first.
    /// Throws std::system_error: errc::bad_period, std::errc::invalid_argument for NaN.
    template <class Rep, class Period>
    [[nodiscard("a delay does nothing until it is awaited")]]  // Once more, for g++ 12.
    timer_delay(timers & home, std::chrono::duration<Rep, Period> interval)
        : cell_(home) {
        set_interval(round_up(interval));
    }
    /// Once, at `deadline`.
    [[nodiscard("a delay does nothing until it is awaited")]]  // Once more, for g++ 12.
    timer_delay(timers & home, detail::any_deadline deadline) noexcept
        : cell_(home), once_(deadline.time()) {}

    /// A number: the compiler says what to write.
    template <detail::without_unit Number>
    timer_delay(timers & home, Number) : cell_(home) {
        detail::ask_for_unit<Number>();
    }

    [[nodiscard]] bool await_ready() const noexcept {
        return false;
    }

    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> frame) {
        if (once_) {
            cell_.prepare(frame, *once_);
        } else {
            cell_.prepare_next(frame);
        }
        return cell_.commit();
    }

    wake_reason await_resume() noexcept {
        return cell_.reason();
    }

    [[nodiscard]] timer_handle handle() const noexcept {
        return cell_.handle();
    }
    [[nodiscard]] const timer_cell& cell() const noexcept {
        return cell_;
    }

 private:
    CHIME_API void set_interval(duration interval);

    timer_cell cell_;
    std::optional<time_point> once_;
};

}  // namespace v0
}  // namespace chime
