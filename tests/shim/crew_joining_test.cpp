// SPDX-License-Identifier: MIT
#include "shim/engine/explore.hpp"
#include "shim/small_crew.hpp"

#include <gtest/gtest.h>

#include <chrono>

// A worker joins, in a new seat or in one that somebody has left, while others are at timers that it gets to have. They hear
// of it by the owner in the timer alone.

namespace {

using namespace chime;
using namespace std::chrono_literals;
using shim::require;
using shim::thread;
using test::small_crew;

/// So few that a look at all of them is short.
detail::worker_settings one_record() {
    detail::worker_settings settings = small_crew::small();
    settings.max_timers = settings.max_tasks = 1;
    return settings;
}

/// The only worker leaves its timer to whoever joins; meanwhile its deadline is moved from elsewhere.
struct succession {
    small_crew crew{1, 1, one_record()};
    time_point due;
    time_point expected;
    timer_handle which;

    succession(std::chrono::milliseconds armed_for, std::chrono::milliseconds moved_to)
        : due(shim::now() + armed_for), expected(shim::now() + moved_to), which(crew.arm(due, [this] {
              require(shim::now() == expected, "it fires at its deadline");
              crew.note_end();
          })) {}

    /// So many postpone it, and who joins drives whatever seat it gets.
    void run(unsigned postponers) {
        crew.settle(0);
        run_from_here(postponers);
    }
    void run_from_here(unsigned postponers) {
        crew.tell_to_retire(0);
        thread zero([this] { crew.drive_on(0); }, "zero");
        thread next([this] { crew.join_and_drive(); }, "next");
        thread other;
        const auto postpone = [this] { return crew->postpone(which, detail::wait_limit::at(expected)); };
        if (postponers == 2) other = thread([postpone] { static_cast<void>(postpone()); }, "other");
        require(postpone(), "it is pending");
        zero.join();
        next.join();
        if (postponers == 2) other.join();
        crew.require_all_ran();
    }
};

CHIME_SCENARIO(crew, fires_in_time_what_is_made_earlier_while_its_worker_leaves_and_another_one_joins, .share = 2) {
    succession(3ms, 2ms).run(1);
}

/// One finds that the other has sent it already.
CHIME_SCENARIO(crew, fires_in_time_what_two_make_earlier_while_its_worker_leaves_and_another_one_joins, .share = 2) {
    succession(3ms, 2ms).run(2);
}

/// Its ticket is met before its deadline, so whoever believes that it has the ticket leaves it at that. Who joins gets the seat
/// only if nobody is about to push what its last owner had.
CHIME_SCENARIO(crew, fires_what_is_on_its_way_to_a_seat_that_somebody_else_gets, .share = 2) {
    succession it(1s, 1min);
    it.crew.settle(0);
    require(it.crew->postpone(it.which, detail::wait_limit::at(it.due + 1h)), "it is pending");
    it.crew.turn(0);
    it.run_from_here(1);
}

}  // namespace
