// SPDX-License-Identifier: MIT
#include "shim/mutants.hpp"

// What no scenario notices, and why it stays as it is. Where a weaker order is proven to be enough and the code is as clear
// with it, that is what the code says. Whoever changes a step that a reason speaks of looks here.

namespace chime::shim {

namespace {

constexpr std::string_view acquire_less = "acquire to relaxed";
constexpr std::string_view release_less = "release to relaxed";
constexpr std::string_view left_out = "left out";

constexpr std::string_view only_counted = "it is only printed; kept, because it is";
constexpr std::string_view only_a_hint =
    "it is a hint, without which somebody makes new units, or looks once more; kept, because it saves that";

constexpr std::string_view adds_nothing =
    "it adds nothing, so there is nothing to leave out; it is there for its order, and that is noticed";

constexpr excuse proven[] = {
    // The loop and the runtime.
    {"src/runtime/io_context.cpp", "restart", "is_stopped.store(false", "seq_cst to release",
     "run() is called again by who knows of restart(); kept, because it is the counterpart of stop(), and rare"},
    {"src/worker/crew.cpp", "add_worker", "most_undrained_.store", left_out,
     "whoever sends anything wakes who is to clean up; kept, because it saves that"},
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
    {"src/worker/hot_paths.hpp", "ring_for", "wakeups_.fetch_add", left_out, only_counted},
    // The end.
    {"src/worker/worker.cpp", "try_end_for_good", "before, driver::never", acquire_less,
     "who destroys a context knows that nobody drives it; kept, because it is rare"},
    {"src/worker/worker.cpp", "try_end_for_good", "before, driver::never", left_out,
     "nobody begins to drive what is being destroyed; kept, because who does is refused by it"},
    {"src/worker/crew_ends.cpp", "wait_for_visitors", "visits_.fetch_add(0", left_out, adds_nothing},
    {"src/worker/crew_ends.cpp", "wait_for_senders", "visits_.fetch_add(0", left_out, adds_nothing},
    {"src/worker/worker_tasks.cpp", "destroy_task", "compare_exchange_weak(value, destroyed", left_out,
     "who is condemned is not idle, so nobody schedules it, and when all is destroyed nobody runs what is scheduled; kept, so "
     "that it holds whoever destroys it when"},
};

}  // namespace

std::span<const excuse> proven_harmless() noexcept {
    return proven;
}

}  // namespace chime::shim
