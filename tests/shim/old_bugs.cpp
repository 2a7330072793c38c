// SPDX-License-Identifier: MIT
#include "base/old_bug.hpp"
#include "shim/engine/explore.hpp"
#include "shim/engine/sites.hpp"
#include "shim/mutants.hpp"

#include <iostream>
#include <string>
#include <utility>
#include <vector>

// Bugs of history: somebody, here or elsewhere, has shipped them. Each is put back, and a scenario that is named for it must
// notice. Those of the wheel and of rounding, B09, B14, B17, B20, B21, B23, B26, B32 and B33, are put back in
// tests/wheel/old_bugs. B35, an owner that is dropped where it is made, cannot be: the compiler refuses it, and
// tests/refused/dropping_a_scoped_timer.cpp sees to that. B03 and B19 are not known to us.

namespace chime::shim {

namespace {

/// A change of one atomic step, or a switch in the code.
struct known_bug {
    std::string_view name;
    std::string_view noticed_by;  ///< suite.name
    std::string_view file;
    std::string_view source;  ///< Part of the line.
    std::string_view change;
    base::old_bug in_the_code = base::old_bug::none;
    /// It takes a load that gives what is stored later: part of the line where that is.
    std::string_view foreseen_at = {};
};

constexpr known_bug known_bugs[] = {
    {"B01: the next deadline is not published in time",
     "loop.fires_on_time_what_others_arm_earlier_and_later_than_what_it_sleeps_for", "src/worker/parking.hpp",
     "published_.store(deadline", "left out"},
    {"B01: rung before it sleeps, it sleeps all the same", "parking.nobody_sleeps_through_what_was_sent_before",
     "src/worker/parking.cpp", "bell_.fetch_add", "left out"},
    {"B02: a seq_cst load does not order an earlier release store",
     "parking.nobody_sleeps_through_what_was_sent_before", "src/worker/parking.hpp", "published_.store(deadline",
     "seq_cst to release"},
    {"B02: the last look before sleeping sees what was", "parking.nobody_sleeps_through_what_was_sent_before",
     "src/worker/inbox.hpp", "top_.load(base::memory_order_seq_cst)", "seq_cst to acquire"},
    {"B02: who is stopping everything does not see who is coming", "crew.that_ends_refuses_a_task_or_destroys_it",
     "src/worker/crew_ends.cpp", "visits_.fetch_add(0, base::memory_order_acq_rel) & all_senders",
     "acq_rel to acquire"},
    {"B04, B05: what was pushed hangs on nothing", "inbox.gives_its_owner_everything_once_while_many_push",
     "src/worker/inbox.hpp", "link.store(index_in(top)", "left out"},
    {"B06: a search that is over seems to go on, and nobody is called",
     "crew.calls_somebody_for_what_comes_while_the_last_who_looked_is_busy", "src/worker/worker_ready.cpp",
     "searching_.fetch_sub", "left out"},
    {"B07: cancelled in its own callback, it leaves nobody to wake up for the next one",
     "timer.that_cancels_itself_leaves_the_next_one_to_fire", "", "", "", base::old_bug::counts_out_twice},
    {"B08: the loop wakes up, again and again, for what was cancelled", "timer.that_was_cancelled_wakes_nobody", "", "",
     "", base::old_bug::remembers_the_first},
    {"B10: postponed while it is fired, it keeps the loop from everything else",
     "timer.is_postponed_or_fires_when_both_come_at_once", "src/worker/worker.cpp", "value & ~moved_flag", "left out"},
    {"B11: the answer says that this was its last run", "timer.that_is_periodic_is_cancelled_in_any_of_its_ticks",
     "src/worker/crew_cancel.cpp", "value | last_run_flag", "left out"},
    {"B12: a record that nobody can link or free any more", "task.is_cancelled_while_it_begins_to_sleep",
     "src/worker/worker_commands.cpp", "fetch_and(~linked_flag", "left out"},
    {"B13: a handle of another context is taken for one of this", "timer.of_another_loop_is_not_touched",
     "src/worker/crew.cpp", "last.fetch_add(1", "left out"},
    {"B15: as long as there is something else to do, no timer fires",
     "task.that_yields_until_a_timer_has_fired_comes_to_its_end", "", "", "", base::old_bug::runs_tasks_alone},
    {"B16: cancelled at the very moment when it is due, it runs all the same",
     "timer.is_cancelled_or_fires_when_both_come_at_once", "src/worker/worker.cpp",
     "compare_exchange_weak(value, claimed", "left out"},
    {"B18: a call is not heard", "crew.hears_the_call_that_was_made_before_it_woke_up_by_itself",
     "src/worker/worker_ready.cpp", "is_called_.load", "seq_cst to acquire"},
    {"B22: what is sent to who has left is forgotten", "inbox.takes_or_refuses_while_it_is_closed_but_never_both",
     "src/worker/inbox.hpp", "top, closed", "left out"},
    {"B22: a timer is linked twice while it moves", "retirement.takes_timers_along_that_others_postpone_meanwhile",
     "src/worker/worker_retire.cpp", "value | linked_flag", "left out"},
    {"B24, B34: what is due at once keeps everything else waiting", "task.that_sleeps_for_no_time_lets_others_run", "",
     "", "", base::old_bug::runs_timers_alone},
    {"B25: stop is not seen", "loop.is_stopped_in_any_window_and_runs_again", "src/runtime/io_context.cpp",
     "is_stopped.store(true", "left out"},
    {"B27: frames destroy each other, one inside the other, until the stack is full",
     "task.that_sleeps_deep_inside_of_others_ends_with_its_loop", "", "", "", base::old_bug::destroys_by_frame},
    {"B28: accepted, and then nobody is left to end it", "crew.that_ends_refuses_a_task_or_destroys_it",
     "src/worker/crew_ends.cpp", "is_stopped_.store(true", "left out"},
    {"B29: who was cancelled is never resumed", "task.is_cancelled_while_it_begins_to_sleep", "src/worker/inbox.hpp",
     "top_.compare_exchange_weak", "left out"},
    {"B30: who wakes a loop touches it when it is gone",
     "task.that_ends_elsewhere_does_not_leave_its_sender_with_a_loop_that_is_gone", "src/worker/crew.hpp",
     "visits_.fetch_add(counts_as_", "left out"},
    {"B31: it runs after it was cancelled", "timer.is_cancelled_or_fires_when_both_come_at_once",
     "src/worker/crew_cancel.cpp", "compare_exchange_weak(value, ending", "left out"},
    {"B36: a sleep that ends in time swallows the end of the task",
     "task.that_is_cancelled_when_it_wakes_sleeps_no_more", "", "", "", base::old_bug::forgets_the_doom},
    {"a deadline is written into a record that is used again",
     "timer.that_has_fired_lends_its_record_to_one_that_is_not_postponed_in_its_place", "src/worker/crew_postpone.cpp",
     "value | locked_flag", "left out"},
    {"a postponement is written over", "timer.that_has_no_deadline_yet_is_postponed_by_another_thread",
     "src/worker/worker_postpone.cpp", "is_stamping_.store(true", "left out"},
    {"who has waited for the end of a closure does not know of it",
     "timer.that_is_cancelled_on_the_loop_is_waited_for_by_others", "src/worker/crew_cancel.cpp",
     "its.state.exchange(vacant", "release to relaxed"},
    // Hard to meet, and so with a scenario of their own.
    {"when all has stopped, what is given back late waits for ever",
     "crew.that_was_stopped_comes_to_rest_though_somebody_gives_back_late", "src/worker/hot_paths.hpp",
     "crew_.is_stopped_.load(base::memory_order_seq_cst))", "seq_cst to acquire"},
    {"who has called nobody does not see that others have relied on it",
     "crew.calls_somebody_for_the_second_of_two_who_call_at_once", "src/worker/crew.cpp", "while (searching_.fetch_sub",
     "seq_cst to acq_rel"},
    {"who goes to sleep does not see who has just joined with work for him",
     "crew.goes_to_sleep_only_after_a_look_at_who_has_just_joined", "src/worker/crew.hpp", "seat_count_.load",
     "seq_cst to acquire"},
    {"who has linked a record does not see that others have relied on it",
     "timer.that_two_postpone_to_before_and_after_what_the_loop_sleeps_for_fires_at_the_last_word",
     "src/worker/crew_postpone.cpp", "its.state.load(base::memory_order_seq_cst) != unlocked", "seq_cst to acquire"},
    {"who retires takes away a timer that has moved already",
     "crew.fires_once_what_is_postponed_while_its_worker_retires", "src/worker/worker_retire.cpp",
     "value | linked_flag", "acquire to relaxed"},
    {"who has just joined is not seen by who goes to sleep",
     "crew.goes_to_sleep_only_after_a_look_at_who_has_just_joined", "src/worker/crew.cpp", "seat_count_.store",
     "seq_cst to release"},
    {"who has just joined is not known to who rings for him",
     "crew.fires_in_time_what_two_make_earlier_while_its_worker_leaves_and_another_one_joins", "src/worker/crew.cpp",
     "seats_[count].store", "release to relaxed"},
    {"who rings for one who has just joined does not know of him",
     "crew.fires_in_time_what_two_make_earlier_while_its_worker_leaves_and_another_one_joins", "src/worker/crew.cpp",
     "= seats_[seat].load", "acquire to relaxed"},
    {"who gives away a seat does not see who is about to push what its last owner had",
     "crew.fires_what_is_on_its_way_to_a_seat_that_somebody_else_gets", "src/worker/worker.hpp",
     "driver_.load(base::memory_order_acquire) == driver::somebody", "acquire to relaxed"},
    {"who finds that somebody has left does not know what he has said before",
     "crew.fires_in_order_what_was_accepted_by_who_retires_and_what_comes_then", "src/worker/inbox.hpp",
     "std::uint64_t top = top_.load(base::memory_order_acquire)", "acquire to relaxed"},
    {"who is told that somebody has left this moment does not know what he has said before",
     "crew.fires_in_order_what_was_accepted_by_who_retires_and_what_comes_then", "src/worker/inbox.hpp",
     "top_.compare_exchange_weak(top, pushed", "failure acquire to weaker"},
    {"who takes a timer in does not see that it was moved a moment ago",
     "timer.that_is_made_later_when_it_has_just_arrived_fires_at_the_last_word", "src/worker/worker_postpone.cpp",
     "fetch_and(~moved_flag", "acquire to relaxed"},
    // On paper alone: no machine does it where one of the two steps waits for the other, but the language does not forbid it.
    {"who waits for the end of a run has read the count that is only counted when he waits",
     "timer.is_over_when_who_cancels_and_waits_goes_on", "src/worker/crew_cancel.cpp", "ended_runs_.load",
     "acquire to relaxed", base::old_bug::none, "ended_runs_.load"},
    {"the end of a run is counted before anybody can wait for it", "timer.is_over_when_who_cancels_and_waits_goes_on",
     "src/worker/crew_cancel.cpp", "ended_runs_.fetch_add", "release to relaxed", base::old_bug::none,
     "ended_runs_.load"},
    {"who has moved a wait has read the deadline of the next one there",
     "task.in_the_slot_of_one_whose_wait_was_moved_when_it_ended_sleeps_for_its_own_time",
     "src/worker/worker_tasks.cpp", "compare_exchange_weak(value, vacant", "acquire to relaxed", base::old_bug::none,
     "its.deadline.exchange(target"},
    {"who destroys a context has found claimed what somebody claims who has not been there yet",
     "context.that_is_destroyed_waits_for_a_token_that_ends_its_timer", "src/worker/crew_ends.cpp",
     "visits_.fetch_add(0, base::memory_order_acq_rel) != 0", "acq_rel to acquire", base::old_bug::none,
     "// Was it claimed by others?"},
    {"a thief has read what is written when he has gone on", "ready_ring.gives_a_thief_what_was_there_when_he_came",
     "src/worker/ready_ring.hpp", "- head_.load", "acquire to relaxed", base::old_bug::none,
     "unit_index first = entries_["},
};

constexpr std::uint64_t most_seeds = 60'000;

const scenario* scenario_named(std::string_view name) {
    for (const scenario& each : all_scenarios()) {
        if (std::string(each.suite) + "." + each.name == name) return &each;
    }
    return nullptr;
}

bool is_at(const known_bug& bug, const mutant& tried) {
    return tried.where->file == bug.file && tried.change == bug.change &&
           source_line(tried.where->name()).find(bug.source) != std::string::npos;
}

/// Loads at some places may give what is stored later from now on. False: that alone is noticed.
bool stands_foresight(const known_bug& bug, const scenario& named) {
    constexpr std::uint64_t seeds = 4000;
    std::vector<std::pair<site*, weakening>> changed;
    for (site* const place : all_sites()) {
        if (place->weakened != weakening::none) changed.emplace_back(place, place->weakened);
        if (place->file.starts_with("src/") && source_line(place->name()).find(bug.foreseen_at) != std::string::npos) {
            let_foresee(*place);
        }
    }
    for (const auto& [place, how] : changed) place->weakened = weakening::none;
    const bool holds = !try_seeds(named.body, 1, seeds).has_failed;
    for (const auto& [place, how] : changed) place->weakened = how;
    return holds;
}

/// In a child process. All places that the description fits are changed.
std::string who_notices(const known_bug& bug, const scenario& named) {
    constexpr std::uint64_t seeds_to_find_places = 100;
    warm_up(named.body);
    const finding without = try_seeds(named.body, 1, seeds_to_find_places);
    if (without.has_failed) return "";
    bool is_there = bug.in_the_code != base::old_bug::none;
    base::put_back = bug.in_the_code;
    for (const mutant& each : mutants_of_places(bug.file)) {
        if (bug.file.empty() || !is_at(bug, each)) continue;
        is_there = true;
        each.put_in_force();
    }
    if (!is_there) return "";
    if (!bug.foreseen_at.empty() && !stands_foresight(bug, named)) return "";
    finding found = try_seeds(named.body, wanted("CHIME_FIRST_SEED", 1), most_seeds);
    std::uint64_t tried = found.executions;
    if (!found.has_failed && named.is_small) {
        found = try_all(named.body, 2, 2, 20'000);
        tried += found.executions;
    }
    return found.has_failed ? "after " + std::to_string(tried) + " schedules: " + found.message : "";
}

const known_bug* find_bug(const mutant& tried) {
    for (const known_bug& each : known_bugs) {
        if (!each.file.empty() && is_at(each, tried)) return &each;
    }
    return nullptr;
}

}  // namespace

int run_old_bugs(std::string_view filter) {
    unsigned unnoticed = 0;
    unsigned count = 0;
    for (const known_bug& each : known_bugs) {
        if (each.name.find(filter) == each.name.npos) continue;
        const scenario* const named = scenario_named(each.noticed_by);
        const std::string answer = named == nullptr ? "" : answer_of_child([&] { return who_notices(each, *named); });
        ++count;
        unnoticed += answer.empty();
        std::cout << each.name << "\n    " << (answer.empty() ? "NOT NOTICED by " : "noticed by ") << each.noticed_by;
        if (!answer.empty()) std::cout << ' ' << answer.substr(0, 90);
        std::cout << std::endl;
    }
    std::cout << count << " old bugs: " << count - unnoticed << " noticed, " << unnoticed << " not noticed\n";
    return unnoticed == 0 ? 0 : 1;
}

std::string_view old_bug_named(const mutant& tried) {
    const known_bug* const found = find_bug(tried);
    return found != nullptr ? found->name : std::string_view{};
}

std::string answer_of_its_scenario(const mutant& tried) {
    const known_bug* const found = find_bug(tried);
    const scenario* const named = found != nullptr ? scenario_named(found->noticed_by) : nullptr;
    const std::string answer = named != nullptr ? who_notices(*found, *named) : "";
    return answer.empty() ? "" : std::string(found->noticed_by) + " " + answer.substr(0, 90);
}

}  // namespace chime::shim
