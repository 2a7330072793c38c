// SPDX-License-Identifier: MIT
#include "base/atomic.hpp"
#include "shim/engine/explore.hpp"
#include "shim/small_crew.hpp"
#include "shim/small_loops.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>

// A record has so many lives and no more. Threads race for each of them, and know the handles of those before.

namespace {

using namespace chime;
using namespace std::chrono_literals;
using shim::require;
using shim::require_equal;
using shim::thread;
using test::account;
using test::small_crew;

using closure = test::watched_callback<true>;

/// Names nothing: there is no record, or it is on its way back.
timer_handle try_arm(detail::crew& on, account& its, time_point due) {
    const detail::arming begun = on.begin_arming();
    if (begun.closure == nullptr) return {};
    new (begun.closure) closure(test::callback_at(its, {due, due + 1ms}));
    return on.arm(begun.index, detail::closure_in_place<closure>::operations, detail::wait_limit::at(due));
}

/// The same, when all that were at it before are through.
timer_handle arm_when_it_is_back(detail::crew& on, account& its) {
    for (int tries = 0; tries < 3; ++tries) {
        if (const timer_handle made = try_arm(on, its, shim::now() + 1ms)) return made;
        shim::sleep_until(shim::now() + 1ms);
    }
    return {};
}

/// The only record is armed, fired, cancelled and postponed at once until it is used up. In each life, somebody tries to get
/// hold of it through the handle of the life before.
template <std::size_t Lives>
void use_up_the_only_record() {
    detail::worker_settings settings = small_crew::small();
    settings.max_timers = 1;
    settings.life_limit = Lives;
    small_crew one(1, 1, settings);
    std::array<timer_handle, Lives> handles;
    std::array<account, Lives> its;
    thread zero([&] { one.drive(0); }, "zero");
    for (std::size_t life = 0; life < Lives; ++life) {
        const timer_handle which = handles[life] = arm_when_it_is_back(*one, its[life]);
        require(static_cast<bool>(which), "it has lives left");
        const timer_handle before = life != 0 ? handles[life - 1] : timer_handle{};
        const time_point due = shim::now() + 1ms;
        cancel_result answer = cancel_result::gone;
        thread other(
            [&] {
                shim::sleep_until(due);
                require(one->cancel(before) == cancel_result::gone, "that life is over");
                answer = one->cancel(which);
            },
            "other");
        shim::sleep_until(due);
        require(!one->postpone(before, detail::wait_limit::at(due + 1h)), "that life is over");
        const bool did = one->postpone(which, detail::wait_limit::at(due + 1ms));
        other.join();
        shim::sleep_until(due + 1ms + 1ns);
        its[life].require_ended(answer == cancel_result::cancelled ? 0 : 1, 1);
        if (answer == cancel_result::gone && did) require(its[life].last_run() == due + 1ms, "the last word counts");
    }
    account none;
    require(!arm_when_it_is_back(*one, none), "it is used up");
    for (const timer_handle old : handles) {
        require(one->cancel(old) == cancel_result::gone && one->cancel_and_wait(old) == cancel_result::gone,
                "that life is over");
        require(!one->postpone(old, detail::wait_limit::at(shim::now())), "that life is over");
    }
    one.note_end();
    zero.join();
    one.require_rest();
    none.require_ended(0, 0);
    require_equal(one->stats().armed, Lives, "armed");
}

CHIME_SCENARIO(lives, of_a_record_are_used_up_while_threads_race_for_each_of_them, .share = 2) {
    use_up_the_only_record<3>();
}

CHIME_SCENARIO(lives, of_a_record_that_has_two_are_used_up) {
    use_up_the_only_record<2>();
}

}  // namespace
