// SPDX-License-Identifier: MIT
#include "base/atomic.hpp"
#include "shim/engine/explore.hpp"
#include "shim/small_crew.hpp"

#include <chime/sleep.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

// The only record is in the reserve of a worker that goes to sleep. Whoever needs it is refused, and asks for it: when all
// have come to rest, anybody can have it.

namespace {

using namespace chime;
using namespace std::chrono_literals;
using shim::require;
using test::crew_threads;
using test::small_crew;

detail::worker_settings one_record() {
    detail::worker_settings settings = small_crew::small();
    settings.max_timers = 1;
    return settings;
}

/// True: there was one. It is for all to have afterwards.
bool try_record(small_crew& on) {
    const detail::arming begun = on->begin_arming();
    if (begun.closure == nullptr) return false;
    on->abandon_arming(begun);
    return true;
}

/// When the one who was asked has gone to sleep again.
void require_record(small_crew& on, std::uint32_t asked) {
    base::atomic<int> last{0};
    last.store(1, base::memory_order_seq_cst);  // So that what is looked at next is not how it was before.
    while (!on->at(asked).is_parked()) shim::yield();
    require(try_record(on), "who was asked has given it away");
}

/// It goes to sleep at this very time, and nothing will wake it any more.
task<> keep_record_and_sleep(small_crew& on, time_point due) {
    require(try_record(on), "nobody else has it");
    auto sleep = sleep_until(due);
    co_await sleep;
    on.note_end();
}

task<> need_record(small_crew& on, time_point due) {
    auto first = sleep_until(due);
    co_await first;
    if (!try_record(on)) {
        auto rest = sleep_until(due + 1ms);
        co_await rest;
        require_record(on, 1);
    }
    on.note_end();
}

CHIME_SCENARIO(reserve, of_one_who_goes_to_sleep_is_given_to_another_worker_who_asks_for_it, .share = 4) {
    small_crew both(2, 2, one_record());
    const time_point due = shim::now() + 1ms;
    both.spawn(keep_record_and_sleep(both, due));
    both.settle(1);
    both.spawn(need_record(both, due));
    both.settle(0);
    crew_threads workers(both, {&small_crew::drive_on, &small_crew::drive_on});
    workers.finish();
}

CHIME_SCENARIO(reserve, of_one_who_goes_to_sleep_is_given_to_a_thread_who_asks_for_it, .share = 4) {
    small_crew one(1, 2, one_record());
    const time_point due = shim::now() + 1ms;
    one.spawn(keep_record_and_sleep(one, due));
    one.settle(0);
    crew_threads workers(one, {&small_crew::drive_on});
    shim::sleep_until(due);
    if (!try_record(one)) {
        shim::sleep_until(due + 1ms);
        require_record(one, 0);
    }
    one.note_end();
    workers.finish();
}

}  // namespace
