// SPDX-License-Identifier: MIT
#pragma once

#include <chime/cancel.hpp>
#include <chime/detail/suspension.hpp>
#include <chime/error.hpp>
#include <chime/timer_handle.hpp>

#include <coroutine>
#include <optional>
#include <stop_token>
#include <utility>

namespace chime {
inline namespace v0 {
namespace detail {

[[noreturn]] inline void throw_cancelled() {
    refuse(errc::cancelled, "chime: the sleep was cancelled");
}

/// What a sleep answers with: a wake_reason, or an exception if it was cancelled.
template <bool Throws>
struct sleep_answer {
    static wake_reason take() noexcept { return reason_of_wake(); }
};

template <>
struct sleep_answer<true> {
    static void take() {
        if (reason_of_wake() == wake_reason::cancelled) throw_cancelled();
    }
};

/// A sleep that nothing but its handle, its task or a shutdown can cancel. May be moved until it is awaited.
template <bool Throws>
class [[nodiscard("a sleep does nothing until it is awaited")]] plain_sleep {
 public:
    plain_sleep(crew * home, wait_limit limit) noexcept : home_(home), limit_(limit) {}

    [[nodiscard]] bool await_ready() const noexcept {
        return false;
    }

    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> frame) const {
        return sleep_task(home_, limit_, frame, promise_of(frame));
    }

    auto await_resume() const noexcept(!Throws) {
        return sleep_answer<Throws>::take();
    }

 private:
    crew* home_;
    wait_limit limit_;
};

/// A sleep that a token can cancel. May be moved until it is awaited.
template <bool Throws>
class [[nodiscard("a sleep does nothing until it is awaited")]] watched_sleep {
 public:
    watched_sleep(crew * home, wait_limit limit, cancel_token token) noexcept
        : home_(home), limit_(limit), token_(std::move(token)) {}
    watched_sleep(watched_sleep && other) noexcept
        : home_(other.home_), limit_(other.limit_), token_(std::move(other.token_)) {}
    watched_sleep& operator=(watched_sleep&&) = delete;
    ~watched_sleep() = default;

    [[nodiscard]] bool await_ready() const noexcept {
        return false;
    }

    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> frame) {
        const wake_key key = begin_suspension(home_, frame, promise_of(frame));
        limit_suspension(key, limit_);
        // If the token is cancelled already, this wakes the suspension that has just begun.
        watch_.emplace(token_.stop_token(), reaction{key});
        return commit_suspension(key);
    }

    auto await_resume() noexcept(!Throws) {
        watch_.reset();
        return sleep_answer<Throws>::take();
    }

 private:
    struct reaction {
        void operator()() const noexcept { wake_task(key, wake_reason::cancelled); }
        wake_key key;
    };

    crew* home_;
    wait_limit limit_;
    cancel_token token_;
    std::optional<std::stop_callback<reaction>> watch_;
};

}  // namespace detail
}  // namespace v0
}  // namespace chime
