// SPDX-License-Identifier: MIT
#include "shim/engine/explore.hpp"
#include "shim/small_crew.hpp"

#include <chime/clock_source.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>

// Clocks of the user's: what one thread has seen of the time holds for the others, and time goes on when it may. These
// clocks synchronise nothing themselves, so whoever learns something has learned it through the library.

namespace {

using namespace chime;
using namespace std::chrono_literals;
using shim::require;
using shim::thread;
using test::crew_threads;
using test::small_crew;

class quiet_clock : public clock_source {
 public:
    void attach(clock_listener&) override {}
    void detach(clock_listener&) noexcept override {}
    void begin_run(clock_listener&) noexcept override {}
    void end_run(clock_listener&) noexcept override {}
    bool begin_idle(clock_listener&, time_point, bool) noexcept override { return false; }
    void end_idle(clock_listener&) noexcept override {}

 protected:
    ~quiet_clock() = default;
};

/// Shows every thread a time of its own, as a clock may that is not the same on every processor.
class uneven_clock final : public quiet_clock {
 public:
    void show(time_point time) noexcept { shown_[shim::this_thread()] = time; }
    [[nodiscard]] time_point now() const noexcept override { return shown_[shim::this_thread()]; }

 private:
    std::array<time_point, 4> shown_{};  // Plain: each belongs to one thread.
};

detail::worker_settings following(clock_source& clock) {
    detail::worker_settings settings = small_crew::small();
    settings.clock = &clock;
    return settings;
}

/// The clock of one thread is behind. It gets the time of the other one, and what was done before that came; and the other
/// one keeps it, though its clock runs back.
CHIME_SCENARIO(clock, that_is_behind_shows_a_time_with_all_that_was_done_before_it_came, .is_small = true) {
    uneven_clock clock;
    detail::crew one(following(clock));
    const time_point start = clock.now();
    int done = 0;  // Plain: whoever sees the time may read it.
    thread ahead(
        [&] {
            done = 1;
            clock.show(start + 2ms);
            require(one.now() == start + 2ms, "nobody has seen a later time");
            clock.show(start);
            require(one.now() == start + 2ms, "time does not run back");
        },
        "ahead");
    clock.show(start + 1ms);
    const time_point seen = one.now();
    require(seen == start + 1ms || seen == start + 2ms, "one of them has shown it");
    if (seen == start + 2ms) require(done == 1, "what was done before it came is done");
    ahead.join();
}

/// Jumps to what its only loop sleeps for, as soon as it may. Only the thread of that loop asks for the time.
class jumping_clock final : public quiet_clock {
 public:
    [[nodiscard]] time_point now() const noexcept override { return now_; }
    bool begin_idle(clock_listener&, time_point deadline, bool may_jump) noexcept override {
        if (!may_jump || deadline == never) return false;
        now_ = deadline;
        return true;
    }

 private:
    time_point now_{};
};

/// The loop finds out itself that the last of it has ended, or is woken to find out.
CHIME_SCENARIO(clock, stands_still_until_the_last_work_that_does_not_follow_it_has_ended) {
    jumping_clock clock;
    small_crew one(1, 1, following(clock));
    std::array<bool, 2> is_over{};  // Plain: whoever sees time go on may read it.
    one.arm(clock.now() + 1h, [&] {
        require(is_over[0] && is_over[1], "time stands still before");
        one.note_end();
    });
    one->add_outside_work();
    one->add_outside_work();
    crew_threads workers(one, {&small_crew::drive});
    const auto end_work = [&](std::size_t which) {
        is_over[which] = true;
        one->drop_outside_work();
    };
    thread other([&] { end_work(1); }, "other");
    end_work(0);
    other.join();
    workers.finish();
}

}  // namespace
