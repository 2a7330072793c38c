// SPDX-License-Identifier: MIT
#include "shim/mutants.hpp"

#include <algorithm>

// Orders that are stronger than they have to be, each because of another one, and steps that only save work. Whoever
// changes one of the others looks here.

namespace chime::shim {

namespace {

struct excuse {
    std::string_view file;
    std::string_view source;  ///< Part of the line; where others read the same, with the beginning of the next one.
    std::string_view change;  ///< Part of what is changed; empty: whatever it is.
    std::string_view reason;
};

constexpr std::string_view swap_follows = "the compare-and-swap that follows acquires";
constexpr std::string_view mark_only = "it is a mark, and publishes nothing";
constexpr std::string_view queue_publishes =
    "the queue that it is put into publishes it, and was acquired by who takes it";
constexpr std::string_view only_counted = "it is only counted or printed";
constexpr std::string_view only_a_hint = "it is a hint: without it somebody makes new units, or looks once more";
constexpr std::string_view own_thread =
    "only who executes the task, or nobody else any more, has written what it would learn";
constexpr std::string_view held_back_reads = "it keeps a read from seeing a later store, which the engine cannot show";
constexpr std::string_view looks_again = "shutdown looks every millisecond; the bell only makes it quicker";

constexpr excuse excuses[] = {
    // The loop and the runtime.
    {"src/runtime/io_context.cpp", "state_->is_stopped.store(false", "seq_cst",
     "run() is called again by who knows of restart()"},
    {"src/worker/worker.hpp", "driver_.load", "acquire",
     "it keeps a look at a seat that was left from seeing what was before, for which nobody has a scenario"},
    {"src/worker/crew.hpp", "visitors_.load", "acquire", "only a forked child asks, and is alone"},
    {"src/runtime/runtime.cpp", "mine.gives_away.load", "acquire",
     "is_leaving is stored later and was acquired before"},
    {"src/runtime/runtime.cpp", "mine.is_leaving.load(base::memory_order_acquire)) {\nconst detail::turn_answer",
     "acquire", "the loop around it acquires it again"},
    {"src/runtime/runtime.cpp", "rest_bell", "", looks_again},
    {"src/runtime/runtime.cpp", "is_closing.store(true", "", looks_again},
    // Free units.
    {"src/timer/unit_pool.hpp", "tagged(top, no_unit)", "",
     "no worker calls it; a scenario does, when all others have ended"},
    {"src/timer/unit_pool.hpp", "top = shared_.load(base::memory_order_acquire);\nwhile (index_in(top) != no_unit &&",
     "acquire", swap_follows},
    // The crew.
    {"src/worker/crew.cpp", "phase_of(its.state.load(base::memory_order_acquire))", "acquire", own_thread},
    {"src/worker/crew.cpp", "state_word value = its.state.load(base::memory_order_acquire);", "acquire", swap_follows},
    {"src/worker/crew.cpp", "seats_[count].store", "release", "seat_count_ is released later, and acquired before"},
    {"src/worker/crew.hpp", "*seats_[seat].load", "acquire", "seat_count_ is released later, and acquired before"},
    {"src/worker/crew.cpp", "compare_exchange_weak(value, ending", "acq_rel",
     "the load before it acquires, and nobody arms a record twice any more; nothing was written before it"},
    {"src/worker/crew.cpp", "outside_work_.fetch_add", "seq_cst", "who adds work has no need to wake anybody"},
    {"src/worker/crew.cpp", "foreign_work_.fetch_add", "seq_cst", "who adds work has no need to wake anybody"},
    {"src/worker/crew_timers.cpp", "foreign_work_.fetch_add", "seq_cst", "the push that follows is seq_cst"},
    {"src/worker/crew.hpp", "is_closing_.store", "", "it takes a task that yields for ever: tests/many"},
    // Cancelling.
    {"src/worker/crew_cancel.cpp", "its.state.load(base::memory_order_acquire);  // As in cancel().", "acquire",
     "the compare-and-swap that follows acquires; where none does, cancel_whatever() looks again"},
    {"src/worker/crew_cancel.cpp", "compare_exchange_weak(value, ending", "to acquire",
     "nothing was written before the claim; giving the record back releases"},
    {"src/worker/crew_cancel.cpp",
     "value | last_run_flag, base::memory_order_acq_rel)) continue;\nreturn cancel_result::cancelled", "acq_rel",
     mark_only},
    {"src/worker/crew_cancel.cpp",
     "value | last_run_flag, base::memory_order_acq_rel)) continue;\nreturn cancel_result::running", "to acquire",
     mark_only},
    {"src/worker/crew_cancel.cpp", "value | waited_flag, base::memory_order_acq_rel)) {", "acq_rel", mark_only},
    {"src/worker/crew_cancel.cpp", "value | waited_flag, base::memory_order_acq_rel)) return true;", "to acquire",
     mark_only},
    {"src/worker/crew_cancel.cpp", "compare_exchange_strong(value, ended", "to acquire",
     "the push that follows releases"},
    {"src/worker/crew_cancel.cpp", "ended_runs_", "to relaxed",
     "the word is released by the end of the run, and acquired afterwards"},
    // Postponing.
    {"src/worker/crew_postpone.cpp", "value = its.state.load(base::memory_order_acquire);\nfor (;;) {", "acquire",
     swap_follows},
    {"src/worker/crew_postpone.cpp", "value = its.state.load(base::memory_order_acquire);\n} else if", "acquire",
     swap_follows},
    {"src/worker/crew_postpone.cpp", "compare_exchange_weak(value, unlocked", "seq_cst",
     "whoever comes after it has locked the word before he unlocks it, and that is seq_cst; a locked instruction either way"},
    {"src/worker/crew_postpone.cpp", "its.deadline.exchange", "acq_rel",
     "the word is unlocked afterwards, which releases"},
    // Tasks.
    {"src/worker/crew_tasks.cpp", "is_short_of_slots_", "", only_a_hint},
    {"src/worker/crew_timers.cpp", "is_short_of_callbacks_", "", only_a_hint},
    {"src/worker/worker.cpp", "is_short_of_", "", only_a_hint},
    {"src/worker/crew_tasks.cpp", "its.state.store(scheduled", "release", queue_publishes},
    {"src/worker/worker_tasks.cpp", "next.state.store(scheduled", "release", queue_publishes},
    {"src/worker/crew_timers.cpp", "timer_state::posted) | linked_flag", "release", queue_publishes},
    {"src/worker/crew_tasks.cpp", "state_word value = its.state.load(base::memory_order_acquire);", "acquire",
     swap_follows},
    {"src/worker/crew_tasks.cpp", "compare_exchange_weak(value, scheduled", "seq_cst",
     "the push that follows is seq_cst"},
    {"src/worker/crew_tasks.cpp", "compare_exchange_weak(value, early", "to release",
     "nothing is looked at afterwards; who suspends goes on himself"},
    {"src/worker/crew_tasks.cpp", "fetch_or(doomed_flag", "to acquire", mark_only},
    {"src/worker/crew_timers.cpp", "is_stopped_.load(base::memory_order_seq_cst)", "seq_cst",
     "the owner, who accepts it, looks as well"},
    {"src/worker/crew_timers.cpp", "its.state.store(preparing", "release", "registering with the token publishes it"},
    {"src/worker/crew_timers.cpp", "compare_exchange_strong(expected, armed", "to release", mark_only},
    // Queues.
    {"src/worker/inbox.hpp", "top_.store(no_unit, base::memory_order_release)", "release",
     "who pushes then learns nothing"},
    {"src/worker/ready_ring.hpp", "tail - head_.load(base::memory_order_acquire) == capacity", "acquire",
     held_back_reads},
    {"src/worker/ready_ring.hpp", "head_.compare_exchange_weak(head, head + ", "to release",
     "the head that it swaps was acquired when it was read, and no two heads are the same"},
    {"src/worker/ready_ring.hpp", "head_.compare_exchange_weak(head, head + half", "failure",
     "take_half() sees that its tail is older than its head: that makes more than there is room for"},
    {"src/worker/ready_ring.hpp", "head = head_.load(base::memory_order_acquire);", "acquire",
     "take_half() sees that its tail is older than its head; pop() does not, and there it is noticed"},
    {"src/worker/parking.hpp", "published_.compare_exchange_strong(published, awake", "left out",
     "others ring once more than they have to"},
    {"src/worker/parking.cpp", "both = descriptors_.load", "acquire",
     "what is behind it is read by the platform of the test build, where the engine does not look; has_descriptor(), which "
     "acquires the same, is noticed"},
    {"src/worker/worker_retire.cpp", "is_called_.exchange(false", "seq_cst to acq_rel",
     "steps that read and write are never held back in the engine; on paper it comes after withdrawing"},
    {"src/worker/scopes.hpp", "turning_thread_", "", "only who waits for himself is told by it: tests/runtime"},
    {"src/worker/scopes.hpp", "first_deadline_", "", only_counted},
    {"src/worker/worker_retire.cpp", "first_deadline_", "", only_counted},
    {"src/worker/worker.cpp", "before, driver::never", "", "who destroys a context knows that nobody drives it"},
    // Ends of tasks.
    {"src/worker/task_control.cpp", "is_detached", "", "it takes an exception that nobody asks for: tests/runtime"},
    {"src/worker/units.hpp", "link.store(no_unit", "left out", "the size says where the queue ends"},
    // The worker.
    {"src/worker/worker.cpp", "parked_.fetch_sub(1", "left out",
     "others look at who sleeps once more than they have to"},
    {"src/worker/worker_ready.cpp", "is_called_.exchange(false", "acquire to relaxed",
     "counting down follows counting up in the engine, because steps that read and write are never held back; on paper it "
     "needs to be acquired"},
    {"src/worker/worker.cpp", "wakeups_.fetch_add", "", only_counted},
    {"src/worker/worker.cpp", "state_word value = its.state.load(base::memory_order_acquire);", "acquire",
     "a step on the word that acquires follows"},
    {"src/worker/worker.cpp", "value & ~moved_flag", "acq_rel", "the load before it acquires; it publishes nothing"},
    {"src/worker/worker.cpp", "compare_exchange_weak(value, claimed", "acq_rel",
     "what was armed elsewhere came by the inbox, and the load before it acquires"},
    {"src/worker/worker.cpp", "is_swept_.store(true", "release", mark_only},
    {"src/worker/worker.hpp", "is_swept_.load", "acquire", mark_only},
    {"src/worker/worker_postpone.cpp", "fetch_and(~moved_flag", "",
     "taking it out of the inbox acquires; who fires clears it"},
    {"src/worker/worker_postpone.cpp", "value & ~moved_flag", "acq_rel",
     "the look before it acquires, and it publishes nothing; if it fails, the deadline that is stored next comes last in "
     "the engine anyway, and on paper it needs to be acquired"},
    {"src/worker/worker_retire.cpp", "state_word value = its.state.load(base::memory_order_acquire);", "acquire",
     swap_follows},
    {"src/worker/worker_retire.cpp", "value | linked_flag", "to acquire", "the push that follows releases"},
    {"src/worker/worker_tasks.cpp", "its.state.fetch_add(one_life + step", "acq_rel",
     "committing releases; nothing to learn yet"},
    {"src/worker/worker_tasks.cpp", "state_word value = its.state.load(base::memory_order_acquire);", "acquire",
     swap_follows},
    {"src/worker/worker_tasks.cpp", "compare_exchange_weak(value, executing", "acq_rel", "the load before it acquires"},
    {"src/worker/worker_tasks.cpp", "compare_exchange_weak(value, idle", "to release", "the load before it acquires"},
    {"src/worker/worker_tasks.cpp", "compare_exchange_weak(value, scheduled", "acq_rel", queue_publishes},
    {"src/worker/worker_tasks.cpp", "with_phase(value, task_phase::executing),", "acq_rel", own_thread},
    {"src/worker/worker_tasks.cpp", "while (!its.state.compare_exchange_weak(value, with_phase(value, task_", "acq_rel",
     queue_publishes},
    {"src/worker/worker_tasks.cpp", "& doomed_flag", "acquire", mark_only},
    {"src/worker/worker_tasks.cpp", "compare_exchange_weak(value, vacant", "acq_rel",
     "the magazine or the shared stack publishes it"},
    {"src/worker/worker_tasks.cpp", "its.state.store(((life_of(value) + 1)", "", own_thread},
    {"src/worker/worker_timers.cpp", "compare_exchange_strong(value, armed", "to release", mark_only},
    {"src/worker/worker_timers.cpp", "compare_exchange_weak(before, ((life + 1)", "to release", mark_only},
};

}  // namespace

std::string_view harmless_because(std::string_view file, std::string_view source, std::string_view change) {
    const std::size_t end_of_line = std::min(source.find('\n'), source.size());
    for (const excuse& each : excuses) {
        if (file == each.file && source.find(each.source) < end_of_line && change.find(each.change) != change.npos) {
            return each.reason;
        }
    }
    return {};
}

}  // namespace chime::shim
