// SPDX-License-Identifier: MIT
#include "base/prefetch.hpp"
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
        base::prefetch_to_write(&callbacks_.at(which.index));
    } else if (slots_.contains(which.index)) {
        base::prefetch_to_write(&slots_.at(which.index));
    }
}

/// The usual case: a worker cancels what is pending with itself, and nobody else is at it. It takes few instructions and
/// no stack: with a million timers the record is far away, and the processor can fetch what the caller needs next only if
/// that is not too many instructions ahead.
cancel_result crew::cancel(timer_handle which) noexcept {
    worker* const mine = here();
    worker::assume_owner(mine);
    if (mine == nullptr) [[unlikely]]
        return cancel_elsewhere(which);
    if (!is_own_callback(*mine, which)) [[unlikely]]
        return cancel_whatever(which);
    callback& its = callbacks_.at(which.index);
    const state_word armed = with_state(which.life << life_shift, timer_state::armed);  // Leaves out the worker.
    const state_word vacant = with_state(armed, timer_state::vacant) + one_life;
    // Acquire: pairs with the release that armed it, so that the closure can be destroyed.
    state_word value = its.state.load(base::memory_order_acquire);
    // What is ours stays ours while we are here.
    if (value != armed || !is_owner(*mine, its)) [[unlikely]]
        return cancel_whatever(which);
    // Relaxed: the look before has acquired, and the record stays with us.
    if (!its.state.compare_exchange_strong(value, vacant, base::memory_order_relaxed)) [[unlikely]]
        return cancel_whatever(which);
    mine->count_end(false);
    mine->leave_wheel(its);
    if (mine->try_free_callback(which.index, vacant)) [[likely]]
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
    if (value != armed || !crew_.is_owner(*this, its)) return false;
    // Relaxed: the look before has acquired the closure, and its end is released below.
    if (!its.state.compare_exchange_strong(value, ending, base::memory_order_relaxed)) return false;
    crew_.destroy_claimed(index, ending);
    // Release: pairs with the acquire in cancel_and_wait(), which waits for the end of the closure whoever destroys it. Who has set
    // a mark is found in the list: if he had not had its lock before notify_waiters() has it, he would have set the mark after it.
    const state_word before = its.state.exchange(vacant, base::memory_order_release);
    count_end(false);
    free_callback(index);
    if ((before & waited_flag) != 0) [[unlikely]]
        crew_.notify_waiters(index, life);
    return true;
}

[[gnu::noinline]] cancel_result worker::free_cancelled(unit_index index) noexcept {
    free_callback(index);
    return cancel_result::cancelled;
}

/// The usual case for a thread that is no worker: one step claims it and gives it back to its owner. It is all in one piece, and
/// few instructions, because the record was written by another processor last: while this one waits for it, it can ask for the
/// next one only if that is near. The short way of a canceller elsewhere in models/record_word.pml.
cancel_result crew::cancel_elsewhere(timer_handle which) noexcept {
    if (which.runtime != identity_ || !callbacks_.contains(which.index)) [[unlikely]]
        return cancel_whatever(which);
    callback& its = callbacks_.at(which.index);
    base::prefetch_to_write(&its);  // Or the look fetches it once, and the claim once more.
    const state_word armed = with_state(which.life << life_shift, timer_state::armed);  // Leaves out the worker.
    state_word value = its.state.load(base::memory_order_relaxed);  // Nothing else is looked at before it is claimed.
    if (value != armed) [[unlikely]]
        return cancel_whatever(which);
    {
        const brief_visit visiting(*this);  // No code of users runs: there is nothing to destroy.
        // Nobody holds on to it, so this is the end, and the way back to its owner [record_word: cancel at once].
        const state_word ended = (with_state(armed, timer_state::vacant) + one_life) | linked_flag;
        // Acquire: pairs with the release of who has armed, or unlinked and perhaps adopted it; send() asks whose it is, and its
        // push releases what we write. Release: who finds it claimed, and then waits for visitors, knows of us; pairs with the
        // look in destroy_timers().
        if (its.state.compare_exchange_strong(value, ended, base::memory_order_acq_rel, base::memory_order_relaxed))
            [[likely]] {
            visiting.count(outside_count::cancelled);
            its.set_deadline(last_given_back.exchange(which.index));
            send(which.index, its, end_of_time);
            drop_work();
            return cancel_result::cancelled;
        }
    }
    return cancel_whatever(which);
}

/// From armed to ending, or the mark that a run is the last (models/record_word.pml).
[[gnu::noinline]] cancel_result crew::cancel_whatever(timer_handle which) noexcept {
    if (which.runtime != identity_) return cancel_result::gone;
    const visit visiting(*this);
    if (worker* const mine = here(); mine != nullptr && callbacks_.contains(which.index)) {
        worker::assume_owner(mine);
        if (mine->try_cancel_and_destroy(which.index, which.timer_id())) return cancel_result::cancelled;
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
            // From here on it is ours, whoever is at it still [record_word: cancel].
            const state_word ending = (with_state(value, timer_state::ending) & ~moved_flag) + one_life;
            // Acquire: pairs with the release that armed it. Its end is released when the record is given back.
            if (!its.state.compare_exchange_weak(value, ending, base::memory_order_acquire)) continue;
            end_cancelled(which.index, ending);
            return cancel_result::cancelled;
        }
        case timer_state::preparing:  // Whoever prepares it finds the mark, and ends it [record_word: cancel prepared].
            if ((value & last_run_flag) != 0) return cancel_result::gone;
            // Relaxed: a mark for who prepares it, who learns nothing else. Its token alone knows of it, and waits for nothing.
            if (!its.state.compare_exchange_weak(value, value | last_run_flag, base::memory_order_relaxed)) continue;
            return cancel_result::cancelled;
        case timer_state::running:  // Its period ends with this run [record_word: last run].
            // Acquire: pairs with the release that armed it; who waits for the end asks whose it is. The mark is all we say.
            if (!its.state.compare_exchange_weak(value, value | last_run_flag, base::memory_order_acquire)) continue;
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
    const std::uint64_t life = life_of(claimed) - 1;  // That of the timer: its record is in the next one already.
    if (mine != nullptr && (claimed & (linked_flag | locked_flag)) == 0) [[likely]] {
        mine->count_end(false);
        // Release: as in try_cancel_and_destroy().
        const state_word before = its.state.exchange(claimed & ~flag_mask, base::memory_order_release);
        mine->free_callback(index);
        if ((before & waited_flag) != 0) [[unlikely]]
            notify_waiters(index, life);
        return;
    }
    worker* const running = here();
    worker::assume_owner(running);
    if (running != nullptr) {
        running->count_end(false);
    } else {
        outside_.add(outside_count::cancelled, 1);
    }
    state_word value = its.state.load(base::memory_order_relaxed);
    for (;;) {
        const bool is_held = (value & (linked_flag | locked_flag)) != 0;
        const state_word ended =
            (value & (~flag_mask | linked_flag | locked_flag)) | (is_held || mine != nullptr ? 0 : linked_flag);
        // Release: the end of the closure comes before the record is used again. Acquire: pairs with the release of who
        // has unlinked it, perhaps to adopt it; send() asks whose it is [record_word: end cancelled].
        if (!its.state.compare_exchange_weak(value, ended, base::memory_order_acq_rel)) continue;
        if (!is_held) {
            if (mine != nullptr) {
                mine->free_callback(index);
            } else {
                send(index, its, end_of_time);  // Only the owner can give it back.
            }
        }
        if ((value & waited_flag) != 0) [[unlikely]]
            notify_waiters(index, life);
        break;
    }
    if (running == nullptr) drop_work();
}

/// Would whoever waits for the end of its run wait for himself?
bool crew::is_below(const timed& its) const noexcept {
    const std::uint32_t seat = its.owner();
    return seat < seat_count() && at(seat).is_below();
}

/// Has somebody else cancelled it this moment, who is still busy with its closure?
bool crew::is_ending_elsewhere(timer_handle which) const noexcept {
    const state_word value = callbacks_.at(which.index).state.load(base::memory_order_acquire);
    return life_of(value) == which.timer_id() + 1 && state_of(value) == timer_state::ending &&
           !is_ending_here(this, which.index, life_of(value));
}

/// Who waits for the end of a run reads the count of runs that have ended, then marks the word, then sleeps
/// (models/run_waiters.pml).
cancel_result crew::cancel_and_wait(timer_handle which) noexcept {
    const visit visiting(*this);  // What it waits for may be the last that keeps a loop going.
    const cancel_result result = cancel(which);
    if (result == cancel_result::cancelled || which.runtime != identity_ || which.is_sleep() ||
        !callbacks_.contains(which.index)) {
        return result;
    }
    callback& its = callbacks_.at(which.index);
    if (is_in_forked_child()) return result;
    if (result == cancel_result::gone) {
        while (is_ending_elsewhere(which)) base::yield_this_thread();
        return result;
    }
    if (is_below(its)) return result;
    for (;;) {
        // Before the mark: a run that ends after it is noticed [run_waiters: read count].
        // Acquire: comes before the mark. Pairs with the release in notify_waiters(): who has read a later count has not
        // marked the run that it was counted for.
        const std::uint32_t seen = ended_runs_.load(base::memory_order_acquire);
        state_word value = its.state.load(base::memory_order_acquire);
        if (life_of(value) != which.timer_id() || state_of(value) != timer_state::running) return result;
        // Whoever ends the run sees the mark and tells us [run_waiters: mark].
        // Relaxed: a mark. The end of the run is acquired by the look above, the next time.
        if (its.state.compare_exchange_weak(value, value | waited_flag, base::memory_order_relaxed)) {
            // Only if no run has ended since we have looked [run_waiters: sleep].
            static_cast<void>(base::futex_wait(ended_runs_, seen));
        }
    }
}

/// The same for a task: it is in the list before the word is marked (models/run_waiters.pml).
bool crew::cancel_and_subscribe(timer_handle which, cancel_result& result, completion& who) {
    const visit visiting(*this);  // As above.
    {
        // Before anything else: without memory to wait in, nothing shall have changed [run_waiters: subscribe].
        const base::lock_guard lock(waiters_mutex_);
        waiters_.push_back({which.index, which.timer_id(), &who});
    }
    result = cancel(which);
    if (result != cancel_result::cancelled && which.runtime == identity_ && callbacks_.contains(which.index)) {
        callback& its = callbacks_.at(which.index);
        const bool waits_for_run = result == cancel_result::running && !is_below(its);
        const bool waits_for_end = result == cancel_result::gone && is_ending_elsewhere(which);
        // The end of its closure is one life further.
        const std::uint64_t life = which.timer_id() + (waits_for_end ? 1 : 0);
        const timer_state state = waits_for_end ? timer_state::ending : timer_state::running;
        state_word value = its.state.load(base::memory_order_acquire);
        // After it is in the list [run_waiters: mark for a task].
        while ((waits_for_run || waits_for_end) && life_of(value) == life && state_of(value) == state) {
            // Acquire, if it fails: pairs with the release of the end of the run, or of the closure. The lock has published what
            // is in the list.
            if (its.state.compare_exchange_weak(value, value | waited_flag, base::memory_order_acquire)) return true;
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
        // Under the lock, so that whoever waits cannot go away; it only makes tasks ready [run_waiters: complete].
        const base::lock_guard lock(waiters_mutex_);
        // Whoever is told has no reason to come back, and we may be gone by then.
        std::erase_if(waiters_, [&](const waiter& each) {
            const bool is_meant = each.index == index && each.life == life;
            if (is_meant) each.who->complete();
            return is_meant;
        });
    }
    // Pairs with the acquire in cancel_and_wait() [run_waiters: count].
    ended_runs_.fetch_add(1, base::memory_order_release);
    // All: they wait for different runs [run_waiters: wake all].
    base::futex_wake_all(ended_runs_);
}

}  // namespace chime::inline v0::detail
