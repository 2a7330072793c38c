// SPDX-License-Identifier: MIT
#include "shim/mutants.hpp"

// What no scenario notices, and why it stays as it is. Where a weaker order is proven to be enough and the code is as clear
// with it, that is what the code says; so what is left is of two kinds. Whoever changes a step that a reason speaks of looks
// here.

namespace chime::shim {

namespace {

constexpr std::string_view to_release = "acq_rel to release";
constexpr std::string_view acquire_less = "acquire to relaxed";
constexpr std::string_view release_less = "release to relaxed";
constexpr std::string_view left_out = "left out";

constexpr std::string_view only_counted = "it is only printed; kept, because it is";
constexpr std::string_view only_a_hint =
    "it is a hint, without which somebody makes new units, or looks once more; kept, because it saves that";

constexpr excuse proven[] = {
    // The loop and the runtime.
    {"src/runtime/io_context.cpp", "restart", "is_stopped.store(false", "seq_cst to release",
     "run() is called again by who knows of restart(); kept, because it is the counterpart of stop(), and rare"},
    // Free units.
    {"src/timer/unit_pool.hpp", "pop_all_shared", "tagged(top, no_unit)", acquire_less,
     "tests alone call it, when all others have ended; kept, because it is meant for any thread"},
    {"src/timer/unit_pool.hpp", "pop_all_shared", "tagged(top, no_unit)", left_out,
     "tests alone call it, and for the last time; kept, because otherwise it would take nothing"},
    {"src/worker/crew_tasks.cpp", "take_slot", "is_short_of_slots_.store", left_out, only_a_hint},
    {"src/worker/crew_timers.cpp", "take_callback", "is_short_of_callbacks_.store", left_out, only_a_hint},
    {"src/worker/worker.cpp", "turn", "is_short_of_callbacks_.store", left_out,
     "every turn would give away what is free; kept, because it saves that"},
    {"src/worker/worker.cpp", "turn", "is_short_of_slots_.store", left_out,
     "every turn would give away what is free; kept, because it saves that"},
    // Timers.
    {"src/worker/crew_postpone.cpp", "postpone_from_elsewhere", "compare_exchange_weak(value, unlocked",
     "seq_cst to acq_rel",
     "who has linked it and looks at the word after his push sees at least that it was locked, which is seq_cst and comes "
     "before our look at what is published; kept, because it is the same instruction"},
    {"src/worker/worker_postpone.cpp", "accept", "fetch_and(~moved_flag", left_out,
     "who fires finds the mark, takes it off, and looks at the deadline once more; kept, because it saves that"},
    {"src/worker/worker.cpp", "fire_one", "compare_exchange_weak(value, claimed", acquire_less,
     "what was armed elsewhere has come by the inbox, and a deadline from elsewhere with a mark that was taken off before; "
     "kept, so that who fires has seen all of it, whatever way it came"},
    // Queues and sleeping.
    {"src/worker/inbox.hpp", "open", "top_.store(no_unit", release_less,
     "who pushes then touches nothing but what is atomic and was made before; kept, because it is once in the life of a "
     "worker"},
    {"src/worker/parking.hpp", "wake_before", "published_.compare_exchange_strong", left_out,
     "others ring once more than they have to; kept, because it saves that"},
    {"src/worker/units.hpp", "push", "link.store(no_unit", left_out,
     "the size says where the queue ends; kept, so that no link leads to what is not in it"},
    {"src/worker/worker.cpp", "end_park", "parked_.fetch_sub", left_out,
     "others look at who sleeps once more than they have to; kept, because it saves that"},
    {"src/worker/worker.cpp", "wake_up", "wakeups_.fetch_add", left_out, only_counted},
    {"src/worker/worker.cpp", "ring_for", "wakeups_.fetch_add", left_out, only_counted},
    // The end.
    {"src/worker/worker.cpp", "try_end_for_good", "before, driver::never", acquire_less,
     "who destroys a context knows that nobody drives it; kept, because it is rare"},
    {"src/worker/worker.cpp", "try_end_for_good", "before, driver::never", left_out,
     "nobody begins to drive what is being destroyed; kept, because who does is refused by it"},
    {"src/worker/worker_tasks.cpp", "destroy_task", "its.state.store(((life_of(value) + 1)", left_out,
     "who is condemned is not idle, so nobody schedules it, and when all is destroyed nobody runs what is scheduled; kept, so "
     "that it holds whoever destroys it when"},
};

constexpr std::string_view no_load_buffering = "in the engine no load gives what is stored later";
constexpr std::string_view owner_may_be_new =
    "who reads an owner that has adopted a unit this moment has not looked at seat_count(), and no scenario has one that has "
    "just joined by then";
constexpr std::string_view waker_wrote =
    "who has woken it may have written into the frame before; no scenario destroys what a thread outside has just woken";
constexpr std::string_view late_linker =
    "somebody has linked it while it slept, and finds our inbox closed, because we have retired since: who adopts it from "
    "him learns of the frame by the word alone, and no scenario has all of that";
constexpr std::string_view counts_turns =
    "who sees the mark has to see the turn counted that has set it; counters are no choice points of the engine";

constexpr std::string_view printed_where =
    "dump_pending() reads where it was spawned after it has acquired the word; what it looks at is no step of a scenario";

constexpr excuse beyond[] = {
    // Noticed by tests of the library as it is.
    {"src/worker/crew.hpp", "begin_closing", "is_closing_.store", left_out,
     "it takes a task that yields for ever: shutdown.ends_although_a_task_yields_for_ever in tests/many"},
    {"src/worker/scopes.hpp", "turn_scope", "turning_thread_", left_out,
     "it takes who waits for himself, through another loop: tests/runtime"},
    {"src/worker/task_control.cpp", "detach", "is_detached.store", left_out,
     "it takes an exception that nobody asks for: tests/runtime"},
    // The crew.
    {"src/worker/crew.cpp", "add_worker", "seats_[count].store", release_less, owner_may_be_new},
    {"src/worker/crew.hpp", "at", "seats_[seat].load", acquire_less, owner_may_be_new},
    {"src/worker/crew.cpp", "destroy_pending", "phase_of(its.state.load", acquire_less, waker_wrote},
    {"src/worker/crew.cpp", "tell_of_rest", "rest_bell_.fetch_add", release_less, no_load_buffering},
    {"src/worker/crew.cpp", "wait_for_rest", "rest_bell_.load", acquire_less, no_load_buffering},
    {"src/worker/crew_timers.cpp", "end_if_stopped", "is_stopped_.load", "seq_cst to acquire",
     "an owner that accepts it looks as well; it takes one that nobody drives any more"},
    {"src/worker/crew_timers.cpp", "post", "timer_state::posted) | linked_flag", release_less,
     "who destroys what was posted and not taken does not look into the inbox; in all scenarios he has joined who has posted it"},
    {"src/worker/worker.hpp", "is_driven", "driver_.load", acquire_less,
     "who gives a seat to the next one looks at what the last one has left there; no scenario has a unit of his that is held "
     "by then"},
    {"src/worker/worker.cpp", "sweep", "is_swept_.store(true", release_less, counts_turns},
    {"src/worker/worker.hpp", "is_swept", "is_swept_.load", acquire_less, counts_turns},
    // Timers.
    {"src/worker/crew_cancel.cpp", "cancel_and_wait", "ended_runs_.load", acquire_less, no_load_buffering},
    {"src/worker/crew_cancel.cpp", "notify_waiters", "ended_runs_.fetch_add", release_less, no_load_buffering},
    {"src/worker/worker_postpone.cpp", "accept", "fetch_and(~moved_flag", acquire_less,
     "between the step that has unlinked it and this one somebody may have moved it to later, and the mark that goes here was "
     "all that tells; who fires reads an old deadline only if nobody has waited for it"},
    {"src/worker/worker_postpone.cpp", "postpone_here", "value & ~moved_flag", acquire_less,
     "what is stored is the last in the order of its location in the engine; on paper the deadline of who has set the mark "
     "could come after ours"},
    // Tasks.
    {"src/worker/crew_tasks.cpp", "wake", "state_word value = its.state.load", acquire_less,
     "whose it is, and whether it has a timer, is read before the step that claims it; in all scenarios whoever wakes a task "
     "was told of it after that was written"},
    {"src/worker/crew_tasks.cpp", "wake", "compare_exchange_weak(value, early", to_release,
     "if it fails because the task is idle by now, the same is read next"},
    {"src/worker/crew_tasks.cpp", "wake", "compare_exchange_weak(value, scheduled", "seq_cst to acq_rel",
     "if somebody else has linked it, it comes before the look at what is published; steps that read and write are never held "
     "back in the engine"},
    {"src/worker/crew_tasks.cpp", "begin_task", "its.state.store(scheduled,", release_less, printed_where},
    {"src/worker/crew_tasks.cpp", "begin_task", "its.state.store(scheduled |", release_less, printed_where},
    {"src/worker/worker_tasks.cpp", "depart_to", "next.state.store(scheduled", release_less, printed_where},
    {"src/worker/worker_tasks.cpp", "destroy_task", "its.state.store(((life_of(value) + 1)", release_less,
     printed_where},
    {"src/worker/worker_tasks.cpp", "abandon_suspension", "compare_exchange_weak(value, with_phase", acquire_less,
     "who has woken it may have written into what goes away now; all who do in a scenario hold a lock that is asked for, too"},
    {"src/worker/worker_tasks.cpp", "end_borrowed_wait", "compare_exchange_weak(value, with_phase", acquire_less,
     "the next deadline in this slot comes after that of who has moved it; no scenario moves the wait of one that has taken "
     "the place of a task"},
    {"src/worker/worker_tasks.cpp", "commit_suspension", "compare_exchange_weak(value, scheduled", release_less,
     late_linker},
    {"src/worker/worker_tasks.cpp", "yield", "compare_exchange_weak(value, scheduled", release_less, late_linker},
    {"src/worker/worker_tasks.cpp", "finish_task", "compare_exchange_weak(value, vacant", release_less, late_linker},
    {"src/worker/worker_tasks.cpp", "destroy_task", "state_word value = its.state.load", acquire_less, waker_wrote},
    // Queues and sleeping.
    {"src/worker/ready_ring.hpp", "push", "head_.load", acquire_less, no_load_buffering},
    {"src/worker/parking.cpp", "ring", "both = descriptors_.load", acquire_less,
     "what is behind it is read by the platform of the test build, where the engine does not look; has_descriptor(), which "
     "acquires the same, is noticed"},
    {"src/worker/worker_ready.cpp", "find_work", "is_called_.exchange(false", acquire_less,
     "who calls has counted us before, and we count down afterwards; steps that read and write are never held back in the "
     "engine"},
    {"src/worker/worker_retire.cpp", "pass_on_call", "is_called_.exchange(false", "seq_cst to acq_rel",
     "it comes after withdrawing; steps that read and write are never held back in the engine"},
};

}  // namespace

std::span<const excuse> proven_harmless() noexcept {
    return proven;
}

std::span<const excuse> beyond_the_engine() noexcept {
    return beyond;
}

}  // namespace chime::shim
