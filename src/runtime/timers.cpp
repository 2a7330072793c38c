// SPDX-License-Identifier: MIT
#include <chime/timers.hpp>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "worker/crew.hpp"

#include <chime/sleep.hpp>
#include <chime/timer_cell.hpp>

#include <string>
#include <system_error>
#include <utility>

// The public face of timers: every call goes straight to the worker.

namespace chime::inline v0 {

namespace detail {

void refuse_empty_function(const char* call) {
    throw std::system_error(make_error_code(errc::empty_function),
                            std::string(call) +
                                ": there is nothing to call; pass a function that is not empty or null");
}

void refuse_arming(crew& home, const char* call) {
    if (home.is_stopped()) {
        throw std::system_error(make_error_code(errc::stopped), std::string(call) + ": " + home.reason_of_stop());
    }
    throw std::system_error(
        make_error_code(errc::too_many_timers),
        std::string(call) + ": the " + home.noun() + " holds as many timers" +
            (home.is_alone() ? " and posted functions" : "") + " as it may (" + std::to_string(home.stats().pending) +
            " timers are pending, and what other threads have cancelled counts until the loop that "
            "had it comes round); let it run, cancel some, or raise max_timers in its configuration");
}

}  // namespace detail

cancel_result timers::cancel(timer_handle which) noexcept {
    return home_->cancel(which);
}

cancel_result timers::cancel_and_wait(timer_handle which) noexcept {
    return home_->cancel_and_wait(which);
}

void timers::prefetch(timer_handle which) const noexcept {
    home_->prefetch(which);
}

bool timers::postpone_by(timer_handle which, duration delay) {
    return home_->postpone_by(which, delay);
}

bool timers::postpone_to(timer_handle which, time_point deadline) {
    return home_->postpone(which, detail::wait_limit::at(deadline));
}

time_point timers::now() const noexcept {
    return home_->now();
}

timer_stats timers::stats() const noexcept {
    return home_->stats();
}

void timers::stop() noexcept {
    home_->stop_timers();
}

duration timers::valid_period(const char* call, duration period, missed_ticks policy) {
    if (period <= duration::zero()) {
        throw std::system_error(
            make_error_code(errc::bad_period),
            std::string(call) + ": a period must be longer than zero; what is to run as often as possible arms itself "
                                "again at the end of each run, with after() and a delay of zero");
    }
    if (policy != missed_ticks::skip && policy != missed_ticks::burst && policy != missed_ticks::delay) {
        throw std::system_error(std::make_error_code(std::errc::invalid_argument),
                                std::string(call) +
                                    ": no such policy for missed ticks; it is one of missed_ticks::skip, "
                                    "burst and delay, and not a number made into one");
    }
    return period;
}

bool cancel_and_join_awaitable::await_ready() {
    is_subscribed_ = home_.cancel_and_subscribe(which_, result_, ended_);
    return !is_subscribed_;
}

cancel_and_join_awaitable::cancel_and_join_awaitable(cancel_and_join_awaitable&& other) noexcept
    : home_(other.home_), which_(other.which_) {}

cancel_and_join_awaitable::~cancel_and_join_awaitable() {
    unsubscribe();
}

/// Whoever was told is in no list any more, and the context may be gone: it was waited for, and not for us.
void cancel_and_join_awaitable::unsubscribe() noexcept {
    if (std::exchange(is_subscribed_, false) && !ended_.is_complete()) home_.unsubscribe(ended_);
}

// --- Cells.

timer_cell::timer_cell(timers& home) noexcept : home_(home.home_) {}

timer_cell::timer_cell(timer_cell&& other) noexcept
    : home_(other.home_), generation_(other.generation_), interval_(other.interval_), deadline_(other.deadline_) {
    other.reset();
}

timer_handle timer_cell::begin(std::coroutine_handle<> frame, detail::promise_base* promise, detail::wait_limit limit) {
    reset();
    key_ = detail::begin_suspension(home_, frame, promise);
    const duration given{limit.count};
    deadline_ = limit.is_absolute != 0 ? time_point{given} : deadline_after(key_.home->now(), given);
    handle_ = detail::limit_suspension(key_, detail::wait_limit::at(deadline_));
    stage_ = stage::prepared;
    is_met_ = false;
    ++generation_;
    return handle_;
}

bool timer_cell::commit() noexcept {
    CHIME_CHECK_USE(stage_ == stage::prepared,
                    "a cell commits what it has prepared, once: call prepare() in the same await_suspend before");
    stage_ = stage::committed;
    return detail::commit_suspension(key_);
}

wake_reason timer_cell::reason() noexcept {
    stage_ = stage::idle;
    const wake_reason why = detail::reason_of_wake();
    is_met_ = why == wake_reason::elapsed;
    return why;
}

void timer_cell::reset() noexcept {
    if (stage_ == stage::prepared) detail::abandon_suspension(key_);
    if (stage_ == stage::committed) key_.home->cancel(handle_);
    stage_ = stage::idle;
}

time_point timer_cell::next_deadline() const noexcept {
    const time_point now = home_ != nullptr ? home_->now() : this_task::now();
    if (generation_ == 0 || interval_ <= duration::zero()) return deadline_after(now, interval_);
    if (!is_met_ && deadline_ > now) return deadline_;  // The last wait was cancelled before its time.
    const time_point next = deadline_after(deadline_, interval_);
    if (next > now) return next;
    // In ordinals, which can hold the whole of time: the deadline may lie at its beginning.
    const detail::ordinal met = detail::to_ordinal(deadline_);
    const auto interval = static_cast<detail::ordinal>(interval_.count());
    const detail::ordinal last = met + (detail::to_ordinal(now) - met) / interval * interval;
    return deadline_after(detail::to_time_point(last), interval_);
}

void timer_delay::set_interval(duration interval) {
    if (interval <= duration::zero()) {
        detail::refuse(errc::bad_period,
                       "chime::timer_delay: an interval must be longer than zero; to yield, await yield()");
    }
    cell_.set_interval(interval);
}

// --- The current task.

time_point this_task::now() noexcept {
    const detail::worker* const mine = detail::worker::current();
    return mine != nullptr ? mine->now() : base::now();
}

time_point this_task::coarse_now() noexcept {
    const detail::worker* const mine = detail::worker::current();
    detail::worker::assume_owner(mine);
    return mine != nullptr ? mine->coarse_now() : base::now();
}

bool this_task::is_cancelled() noexcept {
    const detail::worker* const mine = detail::worker::current();
    detail::worker::assume_owner(mine);
    return mine != nullptr && mine->current_is_doomed();
}

}  // namespace chime::inline v0
