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
    time_point due = shim::now() + 3ms;
    timer_handle which = crew.arm(due, [this] {
        require(shim::now() == expected, "it fires at its deadline");
        crew.note_end();
    });
    time_point expected = due - 1ms;

    /// So many postpone it, and who joins drives whatever seat it gets.
    void run(unsigned postponers) {
        crew.settle(0);
        crew.tell_to_retire(0);
        thread zero([this] { crew.drive_on(0); }, "zero");
        thread next([this] { crew.drive(crew->add_worker()->seat()); }, "next");
        thread other;
        const auto postpone = [this] { return crew->postpone(which, detail::wait_limit::at(expected)); };
        if (postponers == 2) other = thread([postpone] { static_cast<void>(postpone()); }, "other");
        require(postpone(), "it is pending");
        zero.join();
        next.join();
        if (postponers == 2) other.join();
    }
};

CHIME_SCENARIO(crew, fires_in_time_what_is_made_earlier_while_its_worker_leaves_and_another_one_joins, .share = 2) {
    succession().run(1);
}

/// One finds that the other has sent it already.
CHIME_SCENARIO(crew, fires_in_time_what_two_make_earlier_while_its_worker_leaves_and_another_one_joins, .share = 2) {
    succession().run(2);
}

}  // namespace
