// SPDX-License-Identifier: MIT
#include "base/atomic.hpp"
#include "base/check.hpp"
#include "base/mutex.hpp"
#include "base/thread.hpp"

#include <chime/testing.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace chime::inline v0::testing {

namespace {

/// The last moment that a clock shows: `never` does not come, and loops take it for no limit.
constexpr time_point last_moment = never - duration{1};

}  // namespace

struct virtual_clock::state {
    /// A loop that follows the clock.
    struct follower {
        clock_listener* listener;
        time_point deadline = never;
        bool is_running = false;
        bool is_idle = false;
        bool may_jump = true;
    };

    mutable base::mutex mutex;
    const int fork = base::fork_number();
    base::atomic<std::int64_t> now_ns{0};
    when_idle behaviour CHIME_GUARDED_BY(mutex) = when_idle::jump;
    unsigned holds CHIME_GUARDED_BY(mutex) = 0;
    std::vector<follower> followers CHIME_GUARDED_BY(mutex);

    follower& find(const clock_listener& listener) noexcept CHIME_REQUIRES(mutex) {
        const auto found = std::find_if(followers.begin(), followers.end(),
                                        [&](const follower& each) { return each.listener == &listener; });
        CHIME_CHECK(found != followers.end(), "a loop follows a clock before it asks it for anything");
        return *found;
    }

    // Under the lock: nobody detaches meanwhile, and being told does not block.
    void tell_all() const noexcept CHIME_REQUIRES(mutex) {
        for (const follower& each : followers) each.listener->time_moved();
    }

    /// Acquire and release: who sees a time has seen what was done before it came.
    [[nodiscard]] time_point now() const noexcept {
        return time_point{duration{now_ns.load(base::memory_order_acquire)}};
    }
    void move_to(time_point time) noexcept {
        const time_point target = std::min(time, last_moment);
        if (target > now()) now_ns.store(target.time_since_epoch().count(), base::memory_order_release);
    }

    /// When everybody who is running has nothing to do: the first deadline; otherwise never.
    [[nodiscard]] time_point next_jump() const noexcept CHIME_REQUIRES(mutex) {
        if (behaviour != when_idle::jump || holds != 0) return never;
        time_point first = never;
        for (const follower& each : followers) {
            if (!each.is_running) continue;
            if (!each.is_idle || !each.may_jump || each.listener->was_woken()) return never;
            first = std::min(first, each.deadline);
        }
        return first;
    }
};

virtual_clock::virtual_clock(when_idle behaviour, time_point start) : state_(std::make_unique<state>()) {
    state_->behaviour = behaviour;
    state_->now_ns.store(std::min(start, last_moment).time_since_epoch().count(), base::memory_order_relaxed);
}

virtual_clock::~virtual_clock() {
    // In a forked child a context may have been left as it is.
    CHIME_CHECK_USE(state_->fork != base::fork_number() || state_->followers.empty(),
                    "a virtual clock outlives the contexts that follow it: declare it before them");
}

time_point virtual_clock::now() const noexcept {
    return state_->now();
}

void virtual_clock::advance_by(duration step) {
    const base::lock_guard lock(state_->mutex);
    state_->move_to(deadline_after(state_->now(), step));
    state_->tell_all();
}

void virtual_clock::advance_to(detail::any_deadline time) {
    const base::lock_guard lock(state_->mutex);
    state_->move_to(time.time());
    state_->tell_all();
}

void virtual_clock::set_when_idle(when_idle behaviour) {
    const base::lock_guard lock(state_->mutex);
    state_->behaviour = behaviour;
    state_->tell_all();
}

virtual_clock::hold virtual_clock::hold_still() {
    const base::lock_guard lock(state_->mutex);
    ++state_->holds;
    return hold(*this);
}

void virtual_clock::release_hold() noexcept {
    const base::lock_guard lock(state_->mutex);
    --state_->holds;
    state_->tell_all();
}

void virtual_clock::attach(clock_listener& listener) {
    const base::lock_guard lock(state_->mutex);
    state_->followers.push_back({.listener = &listener});
}

void virtual_clock::detach(clock_listener& listener) noexcept {
    const base::lock_guard lock(state_->mutex);
    std::erase_if(state_->followers, [&](const state::follower& each) { return each.listener == &listener; });
}

void virtual_clock::begin_run(clock_listener& listener) noexcept {
    const base::lock_guard lock(state_->mutex);
    state_->find(listener).is_running = true;
}

void virtual_clock::end_run(clock_listener& listener) noexcept {
    const base::lock_guard lock(state_->mutex);
    state_->find(listener).is_running = false;
    state_->tell_all();  // Whoever else is idle may be the last one now.
}

bool virtual_clock::begin_idle(clock_listener& listener, time_point deadline, bool may_jump) noexcept {
    const base::lock_guard lock(state_->mutex);
    state::follower& mine = state_->find(listener);
    mine.is_idle = true;
    mine.deadline = deadline;
    mine.may_jump = may_jump;
    const time_point target = state_->next_jump();
    if (target != never && target > state_->now()) {
        state_->move_to(target);
        for (state::follower& each : state_->followers) {
            if (each.deadline > target) continue;
            each.is_idle = false;  // Before it knows, so that nobody jumps over what it has to do now.
            each.listener->time_moved();
        }
    }
    return deadline <= state_->now();
}

void virtual_clock::end_idle(clock_listener& listener) noexcept {
    const base::lock_guard lock(state_->mutex);
    state_->find(listener).is_idle = false;
}

// --- One context on one clock.

virtual_context::virtual_context(io_context_config config)
    : context_((static_cast<void>(config.clock = &clock_), config)) {}

std::size_t virtual_context::settle() {
    std::size_t total = 0;
    while (const std::size_t ran = context_.poll()) total += ran;
    return total;
}

std::size_t virtual_context::advance_to(detail::any_deadline time) {
    std::size_t ran = 0;
    {
        const jumping on_the_way(clock_);
        ran = context_.run_until(std::min(time.time(), last_moment));
    }
    clock_.advance_to(time);
    return ran + settle();
}

std::size_t virtual_context::run() {
    const jumping until_the_end(clock_);
    return context_.run();
}

}  // namespace chime::inline v0::testing
