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

/// So many timers due at once, and one after them: how late that was; or nothing if the machine was so slow that they were due
/// together.
std::optional<duration> lateness_after(io_context& context, int count) {
    time_point crowd_ran;
    time_point neighbour_ran;
    const time_point start = clock::now() + 5ms;
    for (int i = 0; i < count; ++i) context.timers().at(start, [&] { crowd_ran = clock::now(); });
    context.timers().at(start + gap, [&] { neighbour_ran = clock::now(); });
    context.run();
    context.restart();
    if (crowd_ran >= start + gap) return std::nullopt;
    EXPECT_GE(neighbour_ran, start + gap) << "never early [G1]";
    return neighbour_ran - (start + gap);
}

TEST(crowd, makes_the_next_wake_up_wait_for_its_neighbours) {
    const watchdog guard("a crowd of eight");
    io_context context({.crowd_slack = 2 * gap});
    std::optional<duration> late;
    while (!late) late = lateness_after(context, 8);
    EXPECT_GE(*late, 2 * gap);
    check_ledger_at_rest(context);
}

TEST(crowd, is_not_seven) {
    const watchdog guard("a crowd of seven");
    for (int round = 0; round < 3; ++round) {
        io_context context({.crowd_slack = 1h});
        static_cast<void>(lateness_after(context, 7));
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

TEST(crowd, delays_nobody_by_more_than_its_slack) {
    const watchdog guard("a crowd, and one that is late");
    io_context context({.crowd_slack = 1500ms});
    time_point turn_over;
    time_point late_one_ran;
    const time_point start = clock::now() + 5ms;
    for (int count = 0; count < 8; ++count) context.timers().at(start, [] {});
    context.timers().at(start, [&] {  // In the same turn.
        std::this_thread::sleep_for(1600ms);
        turn_over = clock::now();
    });
    context.timers().at(start + 10ms, [&] { late_one_ran = clock::now(); });  // Late by more than that already.
    EXPECT_EQ(context.run(), 10U);
    EXPECT_LT(late_one_ran - turn_over, 1s) << "a slack counts from the deadline";
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
