// SPDX-License-Identifier: MIT
#include "base/check.hpp"
#include "base/old_bug.hpp"
#include "base/thread.hpp"
#include "worker/crew.hpp"
#include "worker/hot_paths.hpp"
#include "worker/scopes.hpp"

#include <chime/detail/task_control.hpp>
#include <chime/error.hpp>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

// Tasks: how they begin, wait, are woken, go on and end. For a waiting task its word alone decides who wakes it and why
// (models/slot_word.pml).

namespace chime::inline v0::detail {

namespace {

/// Phases follow each other by adding; the flags beside them may be set by others at any time and stay as they are.
constexpr state_word step(task_phase from, task_phase to) noexcept {
    return static_cast<state_word>(to) - static_cast<state_word>(from);
}

/// Its wait has begun, and the task itself has not let go of it.
constexpr bool is_being_committed(state_word value) noexcept {
    return phase_of(value) == task_phase::suspending || phase_of(value) == task_phase::woken_early;
}

}  // namespace

/// Not outside of a task, and not in a coroutine that a task has started beside itself: the task goes on meanwhile.
/// Throws std::system_error: errc::not_in_a_task.
void worker::require_wait() const {
    if (current_slot_ != no_unit && waits_in_ == no_epoch) [[likely]]
        return;
    refuse_wait();
}

void worker::refuse_wait() {
    refuse(
        errc::not_in_a_task,
        "chime: only a task that was spawned can wait here, and only on the context or runtime where it is; spawn() the "
        "coroutine and await inside it, or go there first with co_await get_scheduler().schedule()");
}

// --- Beginning.

unit_index worker::take_slot() {
    if (free_slots_.is_empty() && !free_slots_.refill(carved_at_once)) [[unlikely]] {
        if (!is_alone_) crew_.ask_for_free_units();
        return no_unit;
    }
    return free_slots_.pop();
}

/// The owner gives a slot back. Its word says vacant already.
void worker::free_slot(unit_index index) noexcept {
    if (life_of(slots_.at(index).state.load(base::memory_order_relaxed)) >= settings_.life_limit) [[unlikely]]
        return;
    const bool is_borrowed = slots_.at(index).is_borrowed();
    if (!free_slots_.push(index)) [[unlikely]] {
        part_with(slots_.at(index));
        slots_.push_shared(index, index);
        return;
    }
    if (is_borrowed) ++owed_slots_;
    if (free_slots_.count() >= kept_in_reserve && slots_.shared_is_empty()) {
        free_slots_.donate(donated_at_once, [this](timed& its) { part_with(its); });
        owed_slots_ -= std::min(owed_slots_, donated_at_once);
    }
}

// --- Waiting: the task that is executing.

/// Notes where to go on. Throws std::bad_alloc, std::system_error; nothing has changed.
void worker::begin_wait(task_slot& its, std::coroutine_handle<> frame, promise_base* promise) {
    reserve_tickets();
    its.set_frame(frame);
    its.innermost = promise;
    counters_.suspensions.add();
    counters_.waiting.add();
}

/// Gives the wait that begins a deadline. Needs reserve_tickets().
void worker::limit_wait(unit_index index, wait_limit limit) noexcept {
    task_slot& its = slots_.at(index);
    its.set_number(take_number());
    count_arm();
    if (limit.is_absolute != 0) {
        settle_notes();
        place_sleep(index, its, crew_.deadline_of(limit));
    } else {
        // One look at the clock for this and for what the task has armed before.
        const ordinal read = to_ordinal(now());
        stamp_at(read);
        place_sleep(index, its, ordinal_after(read, limit.count));
    }
}

bool worker::sleep(wait_limit limit, std::coroutine_handle<> frame, promise_base* promise) {
    const wake_key key = begin_suspension(frame, promise);
    limit_wait(key.slot, limit);
    return commit_suspension(key);
}

/// From executing to suspending, in a new epoch (models/slot_word.pml).
wake_key worker::begin_suspension(std::coroutine_handle<> frame, promise_base* promise) {
    require_wait();
    task_slot& its = current_slot();
    begin_wait(its, frame, promise);
    // A new epoch: what was meant for an earlier suspension finds nobody. Relaxed: who sees it marks it and touches nothing
    // else; commit_suspension() publishes the frame [slot_word: suspend].
    const state_word before =
        its.state.fetch_add(one_life + step(task_phase::executing, task_phase::suspending), base::memory_order_relaxed);
    waits_in_ = life_of(before) + 1;
    return {&crew_, current_slot_, waits_in_};
}

timer_handle worker::limit_suspension(const wake_key& key, wait_limit limit) {
    limit_wait(key.slot, limit);
    return name_of(key.slot, key.epoch);
}

/// From suspending to idle, unless somebody was faster or the task is cancelled (models/slot_word.pml).
bool worker::commit_suspension(const wake_key& key) noexcept {
    task_slot& its = slots_.at(key.slot);
    const bool is_timed = its.is_numbered();
    state_word value = its.state.load(base::memory_order_relaxed);  // What was done for us is acquired later.
    for (;;) {
        const bool is_early = phase_of(value) == task_phase::woken_early;
        if (is_early && !is_timed) {
            // What was waited for is there: no need to suspend [slot_word: go on].
            // Acquire: pairs with the release in crew::wake().
            const state_word executing = with_phase(value, task_phase::executing);
            if (!its.state.compare_exchange_weak(value, executing, base::memory_order_acquire)) continue;
            waits_in_ = no_epoch;
            end_wait(its, cause_of(value));
            return false;
        }
        if (is_timed && crew_.is_stopped() && (value & told_flag) != 0) [[unlikely]] {
            is_condemned_ = true;  // It was told before; it is destroyed where it stands [slot_word: condemn].
            return true;
        }
        const bool is_over = is_timed && (is_early || (value & doomed_flag) != 0 || crew_.is_stopped());
        if (!is_over) {
            // Release: pairs with the acquire of whoever claims it to resume it [slot_word: commit].
            const state_word idle = with_phase(value, task_phase::idle);
            if (its.state.compare_exchange_weak(value, idle, base::memory_order_release)) return true;
            continue;
        }
        // A sleep that is over before it began yields all the same [G12] [slot_word: over at once].
        state_word scheduled = with_phase(value, task_phase::scheduled);
        if (!is_early) {
            const bool is_doomed = (value & doomed_flag) != 0;
            scheduled = with_cause(scheduled, is_doomed ? wake_cause::cancelled : wake_cause::shutdown);
        }
        if (crew_.is_stopped()) scheduled |= told_flag;  // Whatever else it is told.
        // Relaxed: the queue publishes it. If somebody has linked it, he sends it to us, because it stays ours until it is
        // unlinked; and if he finds our inbox closed, that has published all that we did before, and he passes it on to who
        // adopts it. What was done by who has woken it is acquired in run_scheduled().
        if (!its.state.compare_exchange_weak(value, scheduled, base::memory_order_relaxed)) continue;
        if ((value & linked_flag) == 0) make_ready(key.slot);
        return true;
    }
}

void worker::abandon_suspension(const wake_key& key) noexcept {
    if (!is_suspending(key)) return;  // It belongs to a wait that is over, or to another task.
    task_slot& its = slots_.at(key.slot);
    state_word value = its.state.load(base::memory_order_relaxed);
    // Relaxed: nobody is told whether it was woken by now, so nothing may depend on it, as in destroy_task(). Who goes on because
    // what it waits for is there has learned that from who said so.
    while (!its.state.compare_exchange_weak(value, with_phase(value, task_phase::executing),
                                            base::memory_order_relaxed)) {}
    waits_in_ = no_epoch;
    end_wait(its, wake_cause::completion);
}

/// From executing to scheduled: it waits for nothing but its turn (models/slot_word.pml).
void worker::yield(std::coroutine_handle<> frame, promise_base* promise) {
    require_wait();
    task_slot& its = current_slot();
    begin_wait(its, frame, promise);
    state_word value = its.state.load(base::memory_order_relaxed);
    const bool is_closing = crew_.is_closing_.load(base::memory_order_relaxed);
    if (is_closing && (value & told_flag) != 0) [[unlikely]] {
        is_condemned_ = true;  // It was told before, and would go on for ever [slot_word: condemn yielding].
        waits_in_ = life_of(value);
        return;
    }
    const state_word told = is_closing ? told_flag : 0;
    // A new epoch here, too [slot_word: yield].
    state_word scheduled = 0;
    do {
        scheduled = told | with_cause(with_phase(value + one_life, task_phase::scheduled), wake_cause::completion);
        // Relaxed: as in commit_suspension().
    } while (!its.state.compare_exchange_weak(value, scheduled, base::memory_order_relaxed));
    waits_in_ = life_of(scheduled);
    if ((value & linked_flag) == 0) push_ready(current_slot_);
}

bool worker::depart_to(crew& other, std::coroutine_handle<> frame, promise_base* promise, if_refused then) {
    require_wait();
    task_slot& its = current_slot();
    // The task may end there, and that loop be destroyed, before we have rung: it waits for us.
    const crew::sending bringing(other);
    const unit_index seat = other.take_slot_to_spawn();
    if (seat == no_unit) {
        if (then == if_refused::throws) other.refuse_arrival();
        return false;
    }
    task_slot& next = other.slots_.at(seat);
    next.unseal();
    next.root = its.root;
    next.set_frame(frame);
    next.innermost = promise;
    task_control* const control = its.control();
    next.origin.store(its.origin.load(base::memory_order_relaxed) | task_slot::borrowed, base::memory_order_relaxed);
    if (other.settings_.records_locations) {
        const void* const where = control != nullptr ? control->where : its.where();
        other.location_of(seat).store(where, base::memory_order_relaxed);
    }
    has_departed_ = true;  // The slot is given back when the frame has let go of this thread's stack.
    waits_in_ = life_of(its.state.load(base::memory_order_relaxed));
    const state_word vacant = next.state.load(base::memory_order_relaxed);
    const state_word scheduled = with_cause(with_phase(vacant, task_phase::scheduled), wake_cause::completion);
    next.set_number(timed::unnumbered | other.first().seat_);
    // Release: as in crew::begin_task().
    next.state.store(scheduled | (other.is_alone_ ? linked_flag : 0), base::memory_order_release);
    if (control != nullptr) {
        // Who cancels it meanwhile marks the old slot or the new one; a mark on the old one comes along. Relaxed: he held the
        // lock that moved_to() has had since.
        control->moved_to(&other, seat);
        next.state.fetch_or(its.state.load(base::memory_order_relaxed) & doomed_flag, base::memory_order_relaxed);
    }
    other.count_spawn_elsewhere();
    other.send_scheduled(seat, next);  // With this the frame is theirs.
    return true;
}

void worker::end_task(std::coroutine_handle<> frame, promise_base& promise) noexcept {
    CHIME_CHECK_USE(current_slot_ != no_unit && current_slot().root == frame, resumed_by_its_loop);
    ended_ = frame;
    failure_ = std::move(promise.failure);
}

bool worker::current_is_doomed() const noexcept {
    return current_slot_ != no_unit &&
           (crew_.is_stopped() || (current_slot().state.load(base::memory_order_relaxed) & doomed_flag) != 0);
}

// --- Going on: the owner.

/// The timer of a wait, if it has one, is over.
void worker::end_timer(task_slot& its, wake_cause cause) noexcept {
    if (!its.is_numbered()) return;
    leave_wheel(its);
    part_with(its);  // The task may be resumed elsewhere.
    its.set_number(unnumbered());
    count_end(cause == wake_cause::timer);
    wheel_.limit_stale(units_);
}

/// What was counted when the wait began comes to its end, and so does its timer.
void worker::end_wait(task_slot& its, wake_cause cause) noexcept {
    counters_.waiting.subtract();
    counters_.resumed_by[static_cast<std::size_t>(cause)].add();
    cause_ = cause;
    end_timer(its, cause);
}

void worker::fire_sleeper(unit_index index, state_word value, ordinal now) {
    task_slot& its = slots_.at(index);
    its.set_ticket_word(its.ticket_word() | timed::gone_ticket);
    counters_.add_lateness(now, its.deadline_now());
    if (phase_of(value) == task_phase::scheduled) {
        if ((value & linked_flag) == 0) make_ready(index);
        return;
    }
    --inline_left_;
    counters_.resumed_inline.add();
    resume(index, wake_cause::timer);
}

/// From scheduled to executing, unless its deadline is being written (models/slot_word.pml). False: not yet.
bool worker::run_scheduled(unit_index index) {
    task_slot& its = slots_.at(index);
    state_word value = its.state.load(base::memory_order_relaxed);
    CHIME_CHECK(phase_of(value) == task_phase::scheduled, "I2: what is ready was scheduled, once");
    do {
        // Somebody is writing its deadline; nobody waits for him [slot_word: put back].
        if ((value & locked_flag) != 0) {
            push_ready(index);
            return false;
        }
        // Acquire: pairs with the release of who has woken it early, and of who has unlocked it: the next deadline comes after
        // his. Everything else has come by the queue.
    } while (!its.state.compare_exchange_weak(value, with_phase(value, task_phase::executing) & ~moved_flag,
                                              base::memory_order_acquire));
    its.set_number(unnumbered());  // It is ours now [slot_word: resume].
    counters_.resumed_queued.add();
    resume(index, cause_of(value));
    return true;
}

/// Relaxed: in that epoch nobody but this thread ends either phase.
bool worker::is_uncommitted(unit_index index, std::uint64_t epoch) const noexcept {
    const state_word value = slots_.at(index).state.load(base::memory_order_relaxed);
    return life_of(value) == epoch && is_being_committed(value);
}

/// Runs a task until it waits again or ends. Nothing resumes inside a resumption: only the turn calls this.
void worker::resume(unit_index index, wake_cause cause) {
    task_slot& its = slots_.at(index);
    const std::coroutine_handle<> frame = its.frame();
    end_wait(its, cause);
    current_slot_ = index;
    bool has_let_go = false;
    struct end_of_task {
        ~end_of_task() {
            mine.current_slot_ = no_unit;
            const std::uint64_t waits_in = std::exchange(mine.waits_in_, no_epoch);
            const bool is_condemned = std::exchange(mine.is_condemned_, false);
            has_let_go =
                mine.ended_ || (waits_in != no_epoch && (is_condemned || !mine.is_uncommitted(index, waits_in)));
            // From here on the slot may be anybody's, unless one of these says that it still is ours.
            if (mine.ended_) {
                if (waits_in != no_epoch) mine.end_lent_wait(index, waits_in, is_condemned);
                mine.finish_task(index, std::exchange(mine.ended_, nullptr));
            } else if (is_condemned) {
                mine.destroy_task(index);
            } else if (std::exchange(mine.has_departed_, false)) {
                mine.slots_.at(index).forget_control();
                mine.finish_task(index, nullptr);
            }
        }
        worker& mine;
        unit_index index;
        bool& has_let_go;
    };
    {
        const end_of_task at_the_end{*this, index, has_let_go};
        offer_work();
        const user_code running(*this);
        frame.resume();
    }
    CHIME_CHECK_USE(
        has_let_go,
        "a task suspends through an awaitable of chime, or one that is built on timer_cell and commits what it "
        "has prepared: await no other, because nobody would resume it, and spawn what shall run beside a task "
        "(with g++ 12 also: no co_await in the condition of an if or a loop)");
    if (failure_) [[unlikely]]
        std::rethrow_exception(std::exchange(failure_, nullptr));
}

/// A coroutine that the task has started beside itself, and that is no task, has taken the task's place to wait in, in this
/// epoch. Nobody will resume it any more: its wait ends with the task [slot_word: end lent wait]. If somebody has woken it by
/// then, it is about to run in the place of a task that is gone, or does so on another worker already: no way on from there.
void worker::end_lent_wait(unit_index index, std::uint64_t epoch, bool is_condemned) noexcept {
    task_slot& its = slots_.at(index);
    state_word value = its.state.load(base::memory_order_relaxed);
    // What was prepared and never committed is nobody else's either. Who is condemned was left where it stood, and nobody resumes
    // it; if it has only yielded, it stands as it ran.
    const auto is_still_there = [&, is_here = !has_departed_] {
        return is_here && life_of(value) == epoch &&
               (phase_of(value) == task_phase::idle || is_being_committed(value) ||
                (is_condemned && phase_of(value) == task_phase::executing));
    };
    do {
        CHIME_CHECK_USE(is_still_there(),
                        "a task does not end while a coroutine that it has started beside itself is being woken in its "
                        "place, or has gone to another context: spawn it, or await it at once");
        // Relaxed: who has moved it is acquired in finish_task(), which follows.
    } while (
        !its.state.compare_exchange_weak(value, with_phase(value, task_phase::executing), base::memory_order_relaxed));
    counters_.destroyed.add();
    counters_.waiting.subtract();
    end_timer(its, wake_cause::cancelled);
}

/// The task is through: its frame goes, its slot is free, unless it is in an inbox or locked (models/slot_word.pml).
void worker::finish_task(unit_index index, std::coroutine_handle<> frame) noexcept {
    task_slot& its = slots_.at(index);
    if (frame) {
        const user_code destructors(*this);
        frame.destroy();
    }
    if (task_control* const control = its.control()) {
        its.forget_control();
        control->end();
        const user_code destructors(*this);  // Of a result that nobody has asked for.
        control->drop_reference();
    }
    counters_.tasks.subtract();
    state_word value = its.state.load(base::memory_order_relaxed);
    state_word vacant = 0;
    do {
        // Whoever holds on to it, or drains it, gives it back then [slot_word: finish].
        vacant = ((life_of(value) + 1) << life_shift) | (value & (linked_flag | locked_flag));
        // Acquire: pairs with the release of who has moved a wait in its place: the next deadline in this slot comes after his. What
        // we did is published as in commit_suspension(), or by where it is free.
    } while (!its.state.compare_exchange_weak(value, vacant, base::memory_order_acquire));
    if ((vacant & (linked_flag | locked_flag)) == 0) free_slot(index);
}

/// Destroys a suspended task, innermost frame first: through destructors, a chain of a million awaits would overflow
/// the stack.
void worker::destroy_task(unit_index index) noexcept {
    task_slot& its = slots_.at(index);
    // Relaxed: the same is destroyed whether somebody has woken it or not. So if only that we see it woken kept what the waker has
    // written into the frame in order with its end, nothing would keep us from not seeing it, and then the two would race. Who
    // writes into a frame has to be waited for by what is in it, as a completion and a token are.
    state_word value = its.state.load(base::memory_order_relaxed);
    CHIME_CHECK(phase_of(value) != task_phase::vacant, "only what lives is destroyed");
    counters_.destroyed.add();
    counters_.waiting.subtract();
    end_timer(its, wake_cause::shutdown);
    state_word destroyed = 0;
    do {
        // A new epoch, in which nobody can wake it; who has done so a moment ago still has it in hand [slot_word: destroy].
        destroyed = ((life_of(value) + 1) << life_shift) | static_cast<state_word>(task_phase::executing) |
                    (value & linked_flag);
        // Relaxed: a step that reads and writes carries on what crew::begin_task() has released.
    } while (!its.state.compare_exchange_weak(value, destroyed, base::memory_order_relaxed));
    {
        const user_code destructors(*this);
        std::coroutine_handle<> frame = its.frame();
        promise_base* promise = base::has(base::old_bug::destroys_by_frame) ? nullptr : its.innermost;
        while (promise != nullptr) {
            const std::coroutine_handle<> continuation = promise->continuation;
            promise_base* const parent = promise->parent;
            if (promise->holder != nullptr) *promise->holder = nullptr;
            frame.destroy();
            frame = continuation;
            promise = parent;
            if (!frame) its.root = nullptr;  // That was the outermost one.
        }
        if (its.root) std::exchange(its.root, nullptr).destroy();
    }
    finish_task(index, nullptr);
}

}  // namespace chime::inline v0::detail
