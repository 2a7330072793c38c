// SPDX-License-Identifier: MIT
#include "worker/crew.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/thread.hpp"
#include "worker/hot_paths.hpp"
#include "worker/scopes.hpp"

#include <chrono>

// How a crew comes to rest, and how it ends: whom it waits for, and what it destroys.

namespace chime::inline v0::detail {

/// Looks at one after the other, so somebody may have had a turn meanwhile and given work to one that was seen at rest, or taken
/// it from him. So whoever sleeps is looked at twice, and has to have slept all the time: then there was a moment when all did,
/// and between the two looks nothing was ready.
///
/// A turn is counted after the worker has said that it is awake. Who has acquired the count before the first look sees no sleep
/// before that turn; and who sees it asleep at the second look sees all the turns before that sleep. If there are no more, it is
/// the same sleep.
bool crew::is_at_rest() const noexcept {
    const std::uint32_t count = seat_count();
    const auto turns = [&] {
        std::uint64_t sum = 0;
        for (std::uint32_t seat = 0; seat < count; ++seat) sum += at(seat).counters_.turns.get_acquired();
        return sum;
    };
    const auto is_awake = [](const worker& each) {
        const bool is_parked = each.is_parked();
        return each.inbox_.is_closed() ? each.is_driven() : !is_parked;
    };
    for (;;) {
        const std::uint64_t before = turns();
        for (std::uint32_t seat = 0; seat < count; ++seat) {
            const worker& each = at(seat);
            // Before anything else: who is seen to sleep is seen with all that he did before.
            if (is_awake(each) || (!each.inbox_.is_closed() && !each.inbox_.is_empty())) return false;
            if (each.is_driven() && is_stopped() && !each.is_swept()) return false;
        }
        if (has_ready_work()) return false;
        for (std::uint32_t seat = 0; seat < count; ++seat) {
            if (is_awake(at(seat))) return false;
        }
        if (turns() == before) return true;
    }
}

/// A worker has announced that it sleeps, and is about to. Seq_cst: pairs with begin_closing(), so that either we see that
/// somebody waits, or he sees that we sleep.
void crew::tell_of_rest() noexcept {
    if (!is_closing_.load(base::memory_order_seq_cst)) [[likely]]
        return;
    rest_bell_.fetch_add(1, base::memory_order_release);  // Pairs with the acquire in wait_for_rest().
    base::futex_wake_all(rest_bell_);
}

void crew::wait_for_rest() noexcept {
    for (;;) {
        // Acquire: comes before the look, and who has rung before is seen to sleep.
        const std::uint32_t seen = rest_bell_.load(base::memory_order_acquire);
        if (is_at_rest()) return;
        // Whoever is awake rings when he sleeps again. The limit is for what nobody has thought of.
        static_cast<void>(base::futex_wait(rest_bell_, seen, base::now() + std::chrono::milliseconds{1}));
    }
}

crew::~crew() {
    end_workers();
    CHIME_CHECK_USE(
        !visit::is_under_way(*this),
        "a context is not destroyed by a call to it, such as one that cancels a timer whose closure owns the "
        "context: let the closure refer to it, and destroy it afterwards");
    destroy_tasks();
    // After the tasks, because the destructor of a closure that somebody else has cancelled may wait for one of them. Before
    // the timers, so that we see what a visitor has armed without having seen that everything stops.
    wait_for_visitors();
    destroy_timers();
    // A token that was cancelled meanwhile has claimed what we have found claimed, and is not through with it: it is a
    // visitor since before that.
    wait_for_visitors();
    // Those that tasks and closures had are gone by now; those of threads that are in the parent never go.
    CHIME_CHECK_USE(
        guards_.load(base::memory_order_relaxed) == 0 || is_in_forked_child(),
        "a work_guard does not outlive its context, which it would still tell when it goes: reset() it before, "
        "or declare it after the context");
}

/// Nobody waits for visitors here: one of them may be the caller, and others may wait for what is destroyed. What is armed too
/// late to be seen ends with the call that has armed it.
void crew::destroy_pending() noexcept {
    end_workers();
    destroy_tasks();
    destroy_timers();
}

/// Nobody drives them from now on, and everything is stopped.
void crew::end_workers() noexcept {
    const std::uint32_t count = seat_count();
    for (std::uint32_t seat = 0; seat < count; ++seat) {
        CHIME_CHECK_USE(at(seat).try_end_for_good(),
                        "a context is not destroyed while it runs, nor from inside one of its own callbacks or tasks: "
                        "stop() it there, and destroy it when run() has returned");
    }
    // Relaxed: whoever can still come is a visitor, and learns of it from who waits for visitors.
    is_stopped_.store(true, base::memory_order_relaxed);
}

/// What the destructors of users do here, and in destroy_timers(), is refused or harmless. Tasks come first: their frames may
/// own timers.
void crew::destroy_tasks() noexcept {
    // Whoever has looked before everything was stopped sends us a task or a timer this moment, or has sent one and has not let
    // go of us.
    wait_for_senders();
    const std::uint32_t count = seat_count();
    for (std::size_t position = 0; position < slots_.size(); ++position) {
        const unit_index index = slot_pool::index_of(position);
        const task_slot& its = slots_.at(index);
        // Relaxed: workers have ended and senders have left, which was acquired; for all others see destroy_task().
        if (phase_of(its.state.load(base::memory_order_relaxed)) == task_phase::vacant) continue;
        worker& last_owner = its.owner() < count ? owner_of(its) : first();
        const worker::turn_scope scope(last_owner);
        worker::assume_owner(&last_owner);  // Nobody can be it any more.
        last_owner.destroy_task(index);
    }
}

void crew::destroy_timers() noexcept {
    worker& destroying = first();
    const worker::turn_scope scope(destroying);
    worker::assume_owner(&destroying);
    for (std::size_t position = 0; position < callbacks_.size(); ++position) {
        const unit_index index = callback_pool::index_of(position);
        callback& its = callbacks_.at(index);
        // Acquire: pairs with the release of who has claimed it in cancel_elsewhere(), and is on a brief visit; we wait for him then.
        state_word value = its.state.load(base::memory_order_acquire);  // Was it claimed by others?
        for (;;) {
            const timer_state state = state_of(value);
            if (state != timer_state::armed && state != timer_state::posted) break;
            // Ended first, so that the destructor of one closure may try to cancel another one, or itself; and in one step,
            // because a thread that has armed it too late may be about to cancel it. Acquire: pairs with the release that
            // armed it; nothing was written before that anybody would learn from us.
            const state_word ending = with_state(value + one_life, timer_state::ending);
            if (!its.state.compare_exchange_weak(value, ending, base::memory_order_acquire)) continue;
            if (state == timer_state::armed) destroying.count_end(false);
            destroy_claimed(index, ending);
            // Release: pairs with the acquire in cancel_and_wait(), which somebody may call after a shutdown. Nothing is read
            // that whoever has marked it would have written: the list of who waits has a lock.
            const state_word before =
                its.state.fetch_and(~flag_mask | linked_flag | locked_flag, base::memory_order_release);
            if ((before & waited_flag) != 0) notify_waiters(index, life_of(ending) - 1);  // As in end_cancelled().
            break;
        }
    }
}

/// A step that reads and writes, not a load: whoever counts himself in afterwards has acquired all that we did before, and comes
/// after all that we have looked at. So he finds everything stopped; and he is not who has claimed what we have found claimed, for
/// that one we wait here. A load, seq_cst or not, may give an old count behind a look that has shown us what he did; without the
/// release a compiler may make one of it. Acquire: pairs with the release of his leaving.
///
/// Of brief visits loads are enough. Who is on one has claimed a timer, and released before that he is there; by now we have acquired
/// that claim, or what came of it, because destroy_timers() has looked at every record.
void crew::wait_for_visitors() const noexcept {
    while (visits_.fetch_add(0, base::memory_order_acq_rel) != 0) base::yield_this_thread();
    while (outside_.sum_acquiring(outside_count::brief_visits) != 0) base::yield_this_thread();
}

/// As above, for those who bring something.
void crew::wait_for_senders() const noexcept {
    while ((visits_.fetch_add(0, base::memory_order_acq_rel) & all_senders) != 0) base::yield_this_thread();
}

}  // namespace chime::inline v0::detail
