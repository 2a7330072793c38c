// SPDX-License-Identifier: MIT
//
// Where timers crowd, a wake-up waits for a few more: how long, for whom, and for whom not. Against the real clock, because
// no other one sleeps.

#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"

#include <chime/io_context.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

constexpr auto gap = 30ms;  ///< Between the crowd and the one that comes after it.

struct crowd_and_neighbour {
    time_point crowd;  ///< When the last of the crowd has run.
    time_point neighbour;
};

/// So many timers due at once, and one after them; nothing if the machine was so slow that they were due together.
std::optional<crowd_and_neighbour> fire_crowd(io_context& context, int count) {
    crowd_and_neighbour ran;
    const time_point start = clock::now() + 5ms;
    for (int i = 0; i < count; ++i) context.timers().at(start, [&ran] { ran.crowd = clock::now(); });
    context.timers().at(start + gap, [&ran] { ran.neighbour = clock::now(); });
    context.run();
    context.restart();
    if (ran.crowd >= start + gap) return std::nullopt;
    EXPECT_GE(ran.neighbour, start + gap) << "never early [G1]";
    return ran;
}

TEST(crowd, makes_the_next_wake_up_wait_for_its_neighbours) {
    const watchdog guard("a crowd of eight");
    io_context context({.crowd_slack = 2 * gap});
    std::optional<crowd_and_neighbour> ran;
    while (!ran) ran = fire_crowd(context, 8);
    EXPECT_GE(ran->neighbour - ran->crowd, 2 * gap);
    check_ledger_at_rest(context);
}

TEST(crowd, is_not_seven) {
    const watchdog guard("a crowd of seven");
    for (int round = 0; round < 3; ++round) {
        io_context context({.crowd_slack = 1h});
        static_cast<void>(fire_crowd(context, 7));
        check_ledger_at_rest(context);
    }
}

TEST(crowd, is_not_eight_that_come_one_by_one) {
    const watchdog guard("eight, one by one");
    io_context context({.crowd_slack = 1h});
    for (int count = 0; count < 8; ++count) {
        context.timers().after(0s, [] {});
        while (context.poll() == 0) {}
    }
    context.timers().after(1ms, [] {});
    EXPECT_EQ(context.run(), 1U);
    check_ledger_at_rest(context);
}

TEST(crowd, delays_nobody_who_is_due_already) {
    const watchdog guard("a crowd, and one that is late");
    io_context context({.crowd_slack = 1h});
    const time_point start = clock::now() + 5ms;
    for (int count = 0; count < 8; ++count) {
        context.timers().at(start, [] {});
    }
    context.timers().at(start, [] { std::this_thread::sleep_for(20ms); });  // Due when this turn began: the ninth.
    context.timers().at(start + 10ms, [] {});                               // Due when it ends.
    EXPECT_EQ(context.run(), 10U);
    check_ledger_at_rest(context);
}

TEST(crowd, delays_neither_what_others_arm_meanwhile_nor_the_end_of_run_for) {
    const watchdog guard("a crowd, and others");
    io_context context({.crowd_slack = 1h});
    const auto arm_crowd = [&] {
        for (int i = 0; i < 8; ++i) context.timers().after(0s, [] {});
    };
    context.timers().after(50ms, [] {});
    arm_crowd();
    context.run_for(10ms);  // Returns, at its limit.
    arm_crowd();
    std::atomic<bool> has_returned{false};
    std::thread other([&] {
        while (!has_returned) {
            std::this_thread::sleep_for(10ms);
            context.timers().after(0s, [] {});
        }
    });
    context.run();  // Would sleep for an hour now; the other's timers wake it, and they are no crowd.
    has_returned = true;
    other.join();
    context.run();  // What the other has armed last.
    check_ledger_at_rest(context);
}

}  // namespace
}  // namespace chime::test
