// SPDX-License-Identifier: MIT
#include <chime/detail/suspension.hpp>

#include "base/check.hpp"
#include "base/mutex.hpp"
#include "worker/crew.hpp"

#include <chime/error.hpp>

#include <new>

// What awaitables in public headers call: they do not know what a worker is.

namespace chime::inline v0::detail {

namespace {

/// The loop that the current task belongs to; it has to be one of `home`, if that is given. It checks the rest itself.
worker& worker_of_task(const crew* home) {
    worker* const mine = worker::current();
    if (mine != nullptr && (home == nullptr || home == &mine->home())) return *mine;
    worker::refuse_wait();
}

}  // namespace

bool sleep_task(crew* home, wait_limit limit, std::coroutine_handle<> frame, promise_base* promise) {
    worker& here = worker_of_task(home);
    worker::assume_owner(&here);
    return here.sleep(limit, frame, promise);
}

wake_key begin_suspension(crew* home, std::coroutine_handle<> frame, promise_base* promise) {
    worker& here = worker_of_task(home);
    worker::assume_owner(&here);
    return here.begin_suspension(frame, promise);
}

// Between beginning and committing a task stays where it is.

timer_handle limit_suspension(const wake_key& key, wait_limit limit) {
    worker* const here = worker::current();
    worker::assume_owner(here);
    return here->limit_suspension(key, limit);
}

bool commit_suspension(const wake_key& key) noexcept {
    worker* const here = worker::current();
    worker::assume_owner(here);
    CHIME_CHECK_USE(here != nullptr && here->is_suspending(key),
                    "a wait is committed by the task that has prepared it, in the same await_suspend");
    return here->commit_suspension(key);
}

void abandon_suspension(const wake_key& key) noexcept {
    worker* const here = worker::current();
    worker::assume_owner(here);
    if (here != nullptr) here->abandon_suspension(key);
}

bool yield_task(crew* home, std::coroutine_handle<> frame, promise_base* promise, if_refused then) {
    worker& here = worker_of_task(nullptr);
    worker::assume_owner(&here);
    if (home != nullptr && home != &here.home()) return here.depart_to(*home, frame, promise, then);
    here.yield(frame, promise);
    return true;
}

void wake_task(const wake_key& key, wake_reason reason) noexcept {
    key.home->wake(key.slot, key.epoch,
                   reason == wake_reason::cancelled ? wake_cause::cancelled : wake_cause::completion);
}

wake_reason reason_of_wake() noexcept {
    worker* const here = worker::current();
    CHIME_CHECK_USE(here != nullptr, worker::resumed_by_its_loop);
    worker::assume_owner(here);
    return here->reason();
}

void end_task(std::coroutine_handle<> frame, promise_base& promise) noexcept {
    worker* const here = worker::current();
    CHIME_CHECK_USE(here != nullptr, worker::resumed_by_its_loop);
    worker::assume_owner(here);
    here->end_task(frame, promise);
}

struct completion::state {
    base::mutex mutex;
    wake_key waiter CHIME_GUARDED_BY(mutex);
    bool is_complete CHIME_GUARDED_BY(mutex) = false;
};

completion::state& completion::its() const noexcept {
    return *std::launder(reinterpret_cast<state*>(storage_));
}

completion::completion() noexcept {
    static_assert(sizeof(state) <= sizeof(storage_) && alignof(state) <= 8);
    ::new (static_cast<void*>(storage_)) state;
}

completion::~completion() {
    its().~state();
}

void completion::complete() noexcept {
    state& mine = its();
    // The waiter is woken under the lock: it cannot go away before, because it takes the lock to unsubscribe.
    const base::lock_guard lock(mine.mutex);
    if (mine.is_complete) return;
    mine.is_complete = true;
    if (mine.waiter.home != nullptr) wake_task(mine.waiter, wake_reason::elapsed);
}

bool completion::is_complete() const noexcept {
    const base::lock_guard lock(its().mutex);
    return its().is_complete;
}

completion::answer completion::subscribe(const wake_key& key) noexcept {
    const base::lock_guard lock(its().mutex);
    if (its().is_complete) return answer::is_complete;
    if (its().waiter.home != nullptr) return answer::is_taken;
    its().waiter = key;
    return answer::will_wake;
}

void refuse_second_waiter() {
    refuse(errc::empty_task,
           "chime: another task waits for this one already; a join_handle or pool_job is awaited once");
}

void completion::unsubscribe() noexcept {
    const base::lock_guard lock(its().mutex);
    its().waiter = {};
}

}  // namespace chime::inline v0::detail
