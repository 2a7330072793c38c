// SPDX-License-Identifier: MIT
#include "worker/crew.hpp"
#include "worker/hot_paths.hpp"

#include <chime/detail/task_control.hpp>
#include <chime/error.hpp>

#include <string>
#include <system_error>

// Tasks, from any thread: how they begin, and how they are woken. For a waiting task its word alone decides who wakes it
// and why (models/slot_word.pml).

namespace chime::inline v0::detail {

unit_index crew::take_slot() {
    if (worker* const mine = here()) {
        worker::assume_owner(mine);
        return mine->take_slot();
    }
    unit_index taken = slots_.pop_shared();
    if (taken == no_unit) {
        is_short_of_slots_.store(true, base::memory_order_relaxed);  // A worker may have plenty; see its next turn.
        taken = slots_.carve(1);
    }
    if (taken == no_unit && tidy_up()) taken = slots_.pop_shared();
    return taken;
}

void crew::refuse_arrival() const {
    if (is_stopped()) {
        throw std::system_error(make_error_code(errc::stopped), std::string("chime::scheduler::schedule: ") +
                                                                    reason_of_stop() + "; the task stays where it is");
    }
    throw std::system_error(make_error_code(errc::too_many_tasks),
                            std::string("chime::scheduler::schedule: as many tasks live as the ") + noun() +
                                " to go to may hold; raise max_tasks in its configuration");
}

void crew::count_spawn_elsewhere() noexcept {
    outside_.add(outside_count::spawned, 1);
    add_work();
}

/// To whoever shall run what this thread has scheduled: to the one loop, which it has linked it for; or for all to take.
void crew::send_scheduled(unit_index index, timed& its) noexcept {
    if (is_alone_) {
        send(index, its, 0);
    } else {
        inject(index);
    }
}

/// Relaxed: who is not seen to have stopped everything waits for us, because we are senders since before, or workers.
unit_index crew::take_slot_to_spawn() {
    const unit_index index = is_stopped() ? no_unit : take_slot();
    if (index == no_unit) outside_.add(outside_count::refused, 1);
    return index;
}

/// Nobody has used it. Whether it was borrowed the last time was counted when it was given back then.
void crew::untake_slot(unit_index index) noexcept {
    worker* const mine = here();
    worker::assume_owner(mine);
    if (mine != nullptr) {
        if (mine->free_slots_.push(index)) return;
        mine->part_with(slots_.at(index));
    }
    slots_.push_shared(index, index);
}

bool crew::spawn(std::coroutine_handle<> root, task_control* control, const void* where) {
    const sending bringing(*this);  // Whoever ends this crew waits for it, so that the task is refused or is seen.
    const unit_index index = take_slot_to_spawn();
    if (index == no_unit) return false;
    begin_task(index, root, control, where);
    return true;
}

bool crew::spawn(const frame_maker& maker, const void* where) {
    const sending bringing(*this);  // As above.
    const unit_index index = take_slot_to_spawn();
    if (index == no_unit) return false;
    made_frame made;
    try {
        made = maker.make(maker.from);
    } catch (...) {
        untake_slot(index);
        throw;
    }
    begin_task(index, made.root, made.control, where);
    return true;
}

void crew::begin_task(unit_index index, std::coroutine_handle<> root, task_control* control,
                      const void* where) noexcept {
    task_slot& its = slots_.at(index);
    its.set_up(root, control, where, here() == nullptr);
    if (settings_.records_locations) location_of(index).store(where, base::memory_order_relaxed);
    if (control != nullptr) control->moved_to(this, index);
    const state_word vacant = its.state.load(base::memory_order_relaxed);
    // As if it had just been woken [slot_word: spawn].
    const state_word scheduled = with_cause(with_phase(vacant, task_phase::scheduled), wake_cause::completion);
    if (worker* const mine = here()) {
        worker::assume_owner(mine);
        its.set_number(mine->unnumbered());
        mine->part_with(its);
        mine->counters_.tasks.add();
        mine->counters_.suspensions.add();
        mine->counters_.waiting.add();
        // Release, here and below: pairs with the acquire in dump_pending(), which prints where it was spawned. For who runs it
        // the queue publishes it.
        its.state.store(scheduled, base::memory_order_release);
        mine->push_ready(index);
        mine->offer_work();
    } else {
        its.set_number(timed::unnumbered | first().seat_);
        count_spawn_elsewhere();
        its.state.store(scheduled | (is_alone_ ? linked_flag : 0), base::memory_order_release);
        send_scheduled(index, its);
    }
}

/// From idle to scheduled, or from suspending to woken early, in this epoch alone (models/slot_word.pml).
bool crew::wake(unit_index index, std::uint64_t epoch, wake_cause cause) noexcept {
    task_slot& its = slots_.at(index);
    worker* const mine = here();
    worker::assume_owner(mine);
    // Whoever is told that everything stops, and waits again, is destroyed where it stands.
    const state_word told = cause == wake_cause::shutdown ? told_flag : 0;
    // Acquire, also where a step on it fails: pairs with the release in commit_suspension(). Whose it is, and whether it has a
    // timer, is read before it is claimed.
    state_word value = its.state.load(base::memory_order_acquire);
    for (;;) {
        if (life_of(value) != epoch) return false;
        if (phase_of(value) == task_phase::suspending) {
            // It has not let go of its frame: it finds out when it commits [slot_word: wake early].
            const state_word early = with_cause(with_phase(value, task_phase::woken_early), cause) | told;
            if (its.state.compare_exchange_weak(value, early, base::memory_order_acq_rel)) return true;
            continue;
        }
        if (phase_of(value) != task_phase::idle) return false;
        const bool is_linked = (value & linked_flag) != 0;
        // Whether it is ours, and whether it has a timer, does not change while it is in this wait. Without a timer there
        // is no ticket either, so anybody may take it over.
        const bool is_ours = mine != nullptr && its.owner() == mine->seat_;
        const bool is_free = !is_alone_ && !its.is_numbered();
        const bool links = !is_ours && !is_free && !is_linked;
        const state_word scheduled =
            with_cause(with_phase(value, task_phase::scheduled), cause) | (links ? linked_flag : 0) | told;
        // From here on nobody else wakes it [slot_word: wake].
        // Release: what the waker did comes before what the task does next. Seq_cst: comes before the look at what the owner has
        // published, if somebody else has linked it; pairs with his look at the word after the push.
        if (!its.state.compare_exchange_weak(value, scheduled, base::memory_order_seq_cst)) continue;
        if (links) {
            send(index, its, 0);
        } else if (is_linked) {
            if (!is_ours) ring_owner(its, 0);  // The drain finds it.
        } else if (is_ours) {
            mine->make_ready(index);
            mine->offer_work();
        } else if (mine != nullptr) {
            its.set_number(mine->unnumbered());
            mine->push_ready(index);
            mine->offer_work();
        } else {
            inject(index);
        }
        return true;
    }
}

/// The mark first, and then a look whether it sleeps (models/slot_word.pml).
void crew::doom(unit_index index) noexcept {
    task_slot& its = slots_.at(index);
    // It holds for all waits to come [slot_word: doom].
    // Acquire: pairs with the release in commit_suspension(). Release: what was done before comes before what the task does
    // when it finds the mark, there.
    const state_word value = its.state.fetch_or(doomed_flag, base::memory_order_acq_rel);
    // Suspending: it finds the mark itself. A wait without a deadline, for a job or another task, goes on to its
    // end [slot_word: wake doomed].
    if (phase_of(value) == task_phase::idle && its.is_numbered()) wake(index, life_of(value), wake_cause::cancelled);
}

}  // namespace chime::inline v0::detail
