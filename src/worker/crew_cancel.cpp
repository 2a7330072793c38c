// SPDX-License-Identifier: MIT
#include "base/thread.hpp"
#include "worker/crew.hpp"
#include "worker/hot_paths.hpp"

#include <array>
#include <utility>
#include <vector>

// Cancelling, and waiting until nothing of a callback runs any more. One compare-and-swap on the word decides
// (models/record_word.pml; for a sleep models/slot_word.pml, for who waits models/run_waiters.pml).

namespace chime::inline v0::detail {

namespace {

/// The closures that this thread is destroying right now, because it has cancelled their timers.
struct closure_end {
    const crew* home;
    unit_index index;
    std::uint64_t life;
    const closure_end* before;
};
thread_local constinit const closure_end* closures_ending = nullptr;

/// A closure that owns its own timer asks about it while it is destroyed.
bool is_ending_here(const crew* home, unit_index index, std::uint64_t life) noexcept {
    for (const closure_end* each = closures_ending; each != nullptr; each = each->before) {
        if (each->home == home && each->index == index && each->life == life) return true;
    }
    return false;
}

/// What this thread has given back last, to any worker. They lie in the inbox in this order, so the owner finds in each
/// where one lies that it will come to later, and has it by then: from one to the next it would wait for each.
struct given_back {
    std::array<unit_index, 8> last;
    std::size_t count;

    /// Notes it, and answers which one was noted as many before as there is room for.
    unit_index exchange(unit_index index) noexcept { return std::exchange(last[count++ % last.size()], index); }
};
[[gnu::tls_model("initial-exec")]] thread_local constinit given_back last_given_back{};

}  // namespace

void crew::prefetch(timer_handle which) const noexcept {
    if (callbacks_.contains(which.index)) {
        __builtin_prefetch(&callbacks_.at(which.index), 1);
    } else if (slots_.contains(which.index)) {
        __builtin_prefetch(&slots_.at(which.index), 1);
    }
}

/// The usual case: a worker cancels what is pending with itself, and nobody else is at it. It takes few instructions and
/// no stack: with a million timers the record is far away, and the processor can fetch what the caller needs next only if
/// that is not too many instructions ahead.
cancel_result crew::cancel(timer_handle which) noexcept {
    worker* const mine = here();
    worker::assume_owner(mine);
    if (mine == nullptr || !is_own_callback(*mine, which)) [[unlikely]]
        return cancel_whatever(which);
    callback& its = callbacks_.at(which.index);
    const state_word armed = with_state(which.life << life_shift, timer_state::armed);  // Leaves out the worker.
    const state_word vacant = with_state(armed, timer_state::vacant) + one_life;
    // Acquire: pairs with the release that armed it, so that the closure can be destroyed.
    state_word value = its.state.load(base::memory_order_acquire);
    // What is ours stays ours while we are here.
    if (value != armed || its.owner() != mine->seat_) [[unlikely]]
        return cancel_whatever(which);
    // Relaxed: the look before has acquired, and the record stays with us.
    if (!its.state.compare_exchange_strong(value, vacant, base::memory_order_relaxed)) [[unlikely]]
        return cancel_whatever(which);
    mine->count_end(false);
    mine->leave_wheel(its);
    if (mine->try_free_callback(which.index, life_of(vacant))) [[likely]]
        return cancel_result::cancelled;
    return mine->free_cancelled(which.index);
}

/// The same for a closure that has something to destroy. False: it is not that either, and nothing was done.
bool worker::try_cancel_and_destroy(unit_index index, std::uint64_t life) noexcept {
    callback& its = callbacks_.at(index);
    const state_word armed = with_state(life << life_shift, timer_state::armed) | owning_flag;
    const state_word vacant = (armed & ~flag_mask) + one_life;
    const state_word ending = with_state(vacant, timer_state::ending);
    state_word value = its.state.load(base::memory_order_acquire);  // As in crew::cancel().
    if (value != armed || its.owner() != seat_) return false;
    // Relaxed: the look before has acquired the closure, and its end is released below.
    if (!its.state.compare_exchange_strong(value, ending, base::memory_order_relaxed)) return false;
    its.its_operations().destroy(its.closure);
    // Nobody else has a reason to touch it. Release: pairs with the acquire in cancel_and_wait(), which waits for the end of
    // the closure whoever destroys it.
    its.state.store(vacant, base::memory_order_release);
    count_end(false);
    free_callback(index);
    return true;
}

[[gnu::noinline]] cancel_result worker::free_cancelled(unit_index index) noexcept {
    free_callback(index);
    return cancel_result::cancelled;
}

/// The usual case for a thread that is no worker: one step claims it and gives it back to its owner. False: it is not so
/// usual, and nothing was done. The short way of a canceller elsewhere in models/record_word.pml.
bool crew::try_cancel_elsewhere(timer_handle which) noexcept {
    callback& its = callbacks_.at(which.index);
    const state_word armed = with_state(which.timer_id() << life_shift, timer_state::armed);
    state_word value = its.state.load(base::memory_order_acquire);  // As in cancel().
    if (value != armed) return false;
    const state_word ended = (with_state(armed, timer_state::vacant) + one_life) | linked_flag;
    // Acquire: whose it is now; since we have looked, it may have moved to another worker, and say the same.
    if (!its.state.compare_exchange_strong(value, ended, base::memory_order_acq_rel)) return false;
    cancelled_elsewhere_.add(1);
    pending_elsewhere_.add(~std::uint64_t{0});
    its.set_deadline(last_given_back.exchange(which.index));
    send(which.index, its, end_of_time);
    drop_work();
    return true;
}

/// From armed to ending, or the mark that a run is the last (models/record_word.pml).
[[gnu::noinline]] cancel_result crew::cancel_whatever(timer_handle which) noexcept {
    if (which.runtime != identity_) return cancel_result::gone;
    if (callbacks_.contains(which.index)) {
        worker* const mine = here();
        worker::assume_owner(mine);
        if (mine != nullptr ? mine->try_cancel_and_destroy(which.index, which.timer_id())
                            : try_cancel_elsewhere(which)) {
            return cancel_result::cancelled;
        }
    }
    if (which.is_sleep()) {
        // A wait for something else than time has no handle, whatever somebody makes up.
        const bool is_timed = slots_.contains(which.index) && slots_.at(which.index).is_numbered();
        return is_timed && wake(which.index, which.timer_id(), wake_cause::cancelled) ? cancel_result::cancelled
                                                                                      : cancel_result::gone;
    }
    if (!callbacks_.contains(which.index)) return cancel_result::gone;
    callback& its = callbacks_.at(which.index);
    state_word value = its.state.load(base::memory_order_acquire);
    for (;;) {
        if (life_of(value) != which.timer_id()) return cancel_result::gone;
        switch (state_of(value)) {
        case timer_state::armed: {
            const state_word ending = (with_state(value, timer_state::ending) & ~moved_flag) + one_life;
            if (!its.state.compare_exchange_weak(value, ending, base::memory_order_acq_rel)) continue;
            end_cancelled(which.index, ending);
            return cancel_result::cancelled;
        }
        case timer_state::preparing:
            if ((value & last_run_flag) != 0) return cancel_result::gone;
            if (!its.state.compare_exchange_weak(value, value | last_run_flag, base::memory_order_acq_rel)) continue;
            return cancel_result::cancelled;
        case timer_state::running:
            if (!its.state.compare_exchange_weak(value, value | last_run_flag, base::memory_order_acq_rel)) continue;
            return cancel_result::running;
        default: return cancel_result::gone;
        }
    }
}

void crew::destroy_claimed(unit_index index, state_word claimed) noexcept {
    const closure_end ending{this, index, life_of(claimed), closures_ending};
    closures_ending = &ending;
    destroy_closure(callbacks_.at(index), (claimed & extra_flag) != 0);
    closures_ending = ending.before;
}

/// Whoever has cancelled a timer destroys its closure and gives the record back, unless somebody still holds on to it:
/// then whoever comes last does (models/record_word.pml).
void crew::end_cancelled(unit_index index, state_word claimed) noexcept {
    callback& its = callbacks_.at(index);
    destroy_claimed(index, claimed);
    worker* const mine = owner_here(its);
    worker::assume_owner(mine);
    if (mine != nullptr && (claimed & (linked_flag | locked_flag)) == 0) [[likely]] {
        mine->count_end(false);
        // Nobody else has a reason to touch it. Release: as in try_cancel_and_destroy().
        its.state.store(claimed & ~flag_mask, base::memory_order_release);
        mine->free_callback(index);
        return;
    }
    worker* const running = here();
    worker::assume_owner(running);
    if (running != nullptr) {
        running->count_end(false);
    } else {
        cancelled_elsewhere_.add(1);
        pending_elsewhere_.add(~std::uint64_t{0});
    }
    state_word value = its.state.load(base::memory_order_relaxed);
    for (;;) {
        const bool is_held = (value & (linked_flag | locked_flag)) != 0;
        const state_word ended =
            (value & (~flag_mask | linked_flag | locked_flag)) | (is_held || mine != nullptr ? 0 : linked_flag);
        // Release: the end of the closure comes before the record is used again. Acquire: pairs with the release of who
        // has unlinked it, perhaps to adopt it; send() asks whose it is.
        if (!its.state.compare_exchange_weak(value, ended, base::memory_order_acq_rel)) continue;
        if (!is_held) {
            if (mine != nullptr) {
                mine->free_callback(index);
            } else {
                send(index, its, end_of_time);  // Only the owner can give it back.
            }
        }
        break;
    }
    if (running == nullptr) drop_work();
}

/// Would whoever waits for the end of its run wait for himself?
bool crew::is_below(const timed& its) const noexcept {
    const std::uint32_t seat = its.owner();
    return seat < seat_count() && at(seat).is_below();
}

/// Who waits for the end of a run reads the count of runs that have ended, then marks the word, then sleeps
/// (models/run_waiters.pml).
cancel_result crew::cancel_and_wait(timer_handle which) noexcept {
    const cancel_result result = cancel(which);
    if (result == cancel_result::cancelled || which.runtime != identity_ || which.is_sleep() ||
        !callbacks_.contains(which.index)) {
        return result;
    }
    callback& its = callbacks_.at(which.index);
    if (is_below(its) || is_in_forked_child()) return result;
    if (result == cancel_result::gone) {
        // Somebody else may have cancelled it this moment, and still be busy with its closure.
        for (;;) {
            const state_word value = its.state.load(base::memory_order_acquire);
            if (life_of(value) != which.timer_id() + 1 || state_of(value) != timer_state::ending) return result;
            if (is_ending_here(this, which.index, life_of(value))) return result;
            base::yield_this_thread();
        }
    }
    for (;;) {
        const std::uint32_t seen = ended_runs_.load(base::memory_order_acquire);
        state_word value = its.state.load(base::memory_order_acquire);
        if (life_of(value) != which.timer_id() || state_of(value) != timer_state::running) return result;
        if (its.state.compare_exchange_weak(value, value | waited_flag, base::memory_order_acq_rel)) {
            static_cast<void>(base::futex_wait(ended_runs_, seen));
        }
    }
}

/// The same for a task: it is in the list before the word is marked (models/run_waiters.pml).
bool crew::cancel_and_subscribe(timer_handle which, cancel_result& result, completion& who) {
    {
        // Before anything else: without memory to wait in, nothing shall have changed.
        const base::lock_guard lock(waiters_mutex_);
        waiters_.push_back({which.index, which.timer_id(), &who});
    }
    result = cancel(which);
    if (result == cancel_result::running && !is_below(callbacks_.at(which.index))) {
        callback& its = callbacks_.at(which.index);
        state_word value = its.state.load(base::memory_order_acquire);
        while (life_of(value) == which.timer_id() && state_of(value) == timer_state::running) {
            if (its.state.compare_exchange_weak(value, value | waited_flag, base::memory_order_acq_rel)) return true;
        }
    }
    unsubscribe(who);
    return false;
}

void crew::unsubscribe(const completion& who) noexcept {
    const base::lock_guard lock(waiters_mutex_);
    std::erase_if(waiters_, [&](const waiter& each) { return each.who == &who; });
}

/// After the word says that the run is over (models/run_waiters.pml).
void crew::notify_waiters(unit_index index, std::uint64_t life) noexcept {
    {
        // Under the lock, so that whoever waits cannot go away; it only makes tasks ready.
        const base::lock_guard lock(waiters_mutex_);
        for (const waiter& each : waiters_) {
            if (each.index == index && each.life == life) each.who->complete();
        }
    }
    ended_runs_.fetch_add(1, base::memory_order_release);  // Pairs with the acquire in cancel_and_wait().
    base::futex_wake_all(ended_runs_);
}

}  // namespace chime::inline v0::detail
