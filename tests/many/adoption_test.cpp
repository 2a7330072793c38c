// SPDX-License-Identifier: MIT
//
// Timers that a retired worker has left: whoever adopts them fires them in their order, whatever its wheel is in the middle of.

#include "worker/crew.hpp"

#include <chime/detail/arming.hpp>
#include <chime/detail/closure.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds tick(1 << 18);
constexpr time_point start = time_point{} + 1000 * tick;

task<> run(std::function<void()> run_it) {
    run_it();
    co_return;
}

/// Two workers, which are driven by the test, one turn at a time.
class two_workers {
 public:
    two_workers() : clock_(testing::when_idle::stand_still, start), both_(bounded(), 2) {
        EXPECT_NE(both_.add_worker(), nullptr);
        EXPECT_TRUE(both_.at(0).try_begin_drive());
        EXPECT_TRUE(both_.at(1).try_begin_drive());
    }
    two_workers(const two_workers&) = delete;
    two_workers& operator=(const two_workers&) = delete;
    ~two_workers() { both_.at(staying_).end_drive(); }

    /// Runs `run_it` as a task on that worker.
    void on(std::uint32_t seat, std::function<void()> run_it) {
        detail::spawn_task(both_, run(std::move(run_it)), nullptr, nullptr);
        turn(seat);
    }

    detail::turn_answer turn(std::uint32_t seat) {
        detail::worker& its = both_.at(seat);
        detail::worker::assume_owner(&its);
        return its.turn({.is_leaving = is_leaving_});
    }

    void turns(std::uint32_t seat, int count) {
        for (; count != 0; --count) turn(seat);
    }

    template <class Function>
    timer_handle arm(time_point deadline, Function call) {
        static_assert(sizeof(Function) <= detail::closure_bytes);
        const detail::arming begun = both_.begin_arming();
        new (begun.closure) Function(std::move(call));
        return both_.arm(begun.index, detail::closure_in_place<Function>::operations, detail::wait_limit::at(deadline));
    }

    void cancel(timer_handle which) { EXPECT_EQ(both_.cancel(which), cancel_result::cancelled); }

    void advance_to(time_point time) { clock_.advance_to(time); }

    void retire_the_first() { retire(0); }
    /// After the first: somebody else has its seat by then.
    void replace_the_second() {
        EXPECT_EQ(both_.add_worker(), &both_.at(0));
        EXPECT_TRUE(both_.at(0).try_begin_drive());
        staying_ = 0;
        retire(1);
    }

    [[nodiscard]] timer_stats stats() const { return both_.stats(); }

 private:
    void retire(std::uint32_t seat) {
        detail::worker& its = both_.at(seat);
        detail::worker::assume_owner(&its);
        its.retire();
        its.end_drive();
    }

    [[nodiscard]] detail::worker_settings bounded() {
        detail::worker_settings settings;
        settings.clock = &clock_;
        settings.fire_budget = 1;  // And a few dozen tickets are looked at in a turn.
        settings.command_budget = 3;
        settings.adoption_budget = 2;
        return settings;
    }

    testing::virtual_clock clock_;
    detail::crew both_;
    std::uint32_t staying_ = 1;
    base::atomic<bool> is_leaving_{false};
};

/// Two of the first worker, due so many ticks after the start. They are adopted when both are due, while the second worker
/// has looked at a part only of what was armed there for the past.
std::string order_after_adoption(int first_ticks, int second_ticks) {
    constexpr unsigned many = 500;
    two_workers both;
    std::string order;
    both.on(0, [&] {
        both.arm(start + first_ticks * tick, [&order] { order += 'a'; });
        both.arm(start + second_ticks * tick, [&order] { order += 'b'; });
    });
    both.on(1, [&] { both.arm(start + 1000 * tick, [] {}); });
    both.turn(1);  // It knows what time it is.
    both.on(1, [&] {
        // Nothing of it is left to fire, so what the wheel comes to next is what has just been adopted.
        std::vector<timer_handle> armed;
        for (unsigned count = 0; count < many; ++count) armed.push_back(both.arm(start - tick, [] {}));
        for (const timer_handle each : armed) both.cancel(each);
    });
    EXPECT_EQ(both.turn(1).ran, 0U);
    both.advance_to(start + 10 * tick);
    both.retire_the_first();
    for (unsigned turns = 0; turns < many; ++turns) both.turn(1);
    const timer_stats sums = both.stats();
    EXPECT_EQ(sums.fired, 2U);
    EXPECT_EQ(sums.armed, sums.fired + sums.cancelled + sums.pending) << "L1";
    EXPECT_EQ(sums.migrated, 2U);
    EXPECT_EQ(sums.adopted, 2U) << "L7";
    return order;
}

TEST(adopted_timers, fire_in_their_order_though_the_wheel_is_in_the_middle_of_something) {
    for (int first = -3; first <= 3; ++first) {
        for (int second = -3; second <= 3; ++second) {
            EXPECT_EQ(order_after_adoption(first, second), first <= second ? "ab" : "ba") << first << " and " << second;
        }
    }
}

/// All have fired, in the order in which they were armed [G2].
void expect_all_in_order(const std::vector<int>& order, int count) {
    EXPECT_EQ(order.size(), static_cast<std::size_t>(count));
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(adopted_timers, fire_in_their_order_though_they_are_adopted_a_few_at_a_time) {
    constexpr int many = 1000;
    two_workers both;
    std::vector<int> order;
    both.on(0, [&] {
        // All of them in two ticks, an hour after the worker has last looked at the clock; the last is due first.
        for (int rank = many; rank != 0; --rank) {
            both.arm(start + 1h + rank * 500ns, [&order, rank] { order.push_back(rank); });
        }
    });
    both.advance_to(start + 1h + 10 * tick);
    both.retire_the_first();
    both.turns(1, 3 * many);
    expect_all_in_order(order, many);
}

/// So many of the first worker that adopting them takes a while, which are not due for an hour.
void arm_for_later(two_workers& both, int count, std::vector<int>& order) {
    both.on(0, [&] {
        for (int rank = 0; rank < count; ++rank) {
            both.arm(start + 1h, [&order, rank] { order.push_back(rank); });
        }
    });
}

TEST(adopted_timers, that_are_due_much_later_keep_nobody_waiting) {
    constexpr int many = 1000;
    two_workers both;
    std::vector<int> order;
    arm_for_later(both, many, order);
    both.turn(1);
    both.retire_the_first();
    bool has_fired = false;
    both.arm(start + 200ns, [&has_fired] { has_fired = true; });
    both.turn(1);
    both.advance_to(start + 200ns);
    both.turn(1);
    EXPECT_TRUE(has_fired);
    EXPECT_LT(both.stats().adopted, 10U) << "the others have time";
    int turns_until_rest = 0;
    while (turns_until_rest < many && both.turn(1).is_busy) ++turns_until_rest;
    EXPECT_EQ(both.stats().adopted, static_cast<std::uint64_t>(many)) << "L7";
    both.advance_to(start + 1h);
    both.turns(1, 2 * many);
    expect_all_in_order(order, many);
}

TEST(adopted_timers, go_on_to_the_next_if_who_adopts_them_leaves_in_the_middle_of_it) {
    constexpr int many = 100;
    two_workers all;
    std::vector<int> order;
    arm_for_later(all, many, order);
    all.turn(1);
    all.retire_the_first();
    all.turns(1, 10);
    EXPECT_EQ(all.stats().adopted, 20U);
    all.replace_the_second();
    all.turns(0, many);
    EXPECT_EQ(all.stats().adopted, 120U);
    EXPECT_EQ(all.stats().migrated, 120U) << "L7";
    all.advance_to(start + 1h);
    all.turns(0, 2 * many);
    expect_all_in_order(order, many);
}

TEST(adopted_timers, come_before_what_was_armed_for_the_same_time_after_they_were_left) {
    constexpr int many = 100;
    two_workers both;
    std::vector<int> order;
    arm_for_later(both, many, order);
    both.turn(1);
    both.retire_the_first();
    both.arm(start + 1h, [&order, last = many] { order.push_back(last); });
    both.turns(1, many);
    both.advance_to(start + 1h);
    both.turns(1, 2 * many);
    expect_all_in_order(order, many + 1);
}

TEST(adopted_timers, fire_in_their_order_though_who_adopts_them_has_long_turns) {
    constexpr int many = 1000;
    two_workers both;
    std::vector<int> order;
    both.on(0, [&] {
        for (int rank = 0; rank < many; ++rank) both.arm(start + 600ms, [&order, rank] { order.push_back(rank); });
    });
    both.turn(1);
    both.retire_the_first();
    // Two in a turn would take five seconds.
    for (int turns = 0; turns < 3 * many; ++turns) {
        both.advance_to(start + turns * 10ms);
        both.turn(1);
    }
    expect_all_in_order(order, many);
}

TEST(adopted_timers, that_have_become_urgent_go_first_when_who_adopts_them_leaves) {
    constexpr int many = 1000;
    two_workers all;
    std::vector<int> order;
    bool has_fired = false;
    arm_for_later(all, many / 2, order);
    all.on(0, [&] { all.arm(start + 500ms, [&has_fired] { has_fired = true; }); });
    arm_for_later(all, many / 2, order);
    all.turn(1);
    all.retire_the_first();
    all.turns(1, 10);
    all.advance_to(start + 495ms);
    all.replace_the_second();
    all.advance_to(start + 500ms);
    all.turns(0, 20);
    EXPECT_TRUE(has_fired);
}

/// How many fire while somebody arms more for the past than is looked at in a turn, and so many are to be adopted.
std::uint64_t fired_under_pressure(int to_adopt) {
    two_workers both;
    std::vector<int> order;
    if (to_adopt != 0) arm_for_later(both, to_adopt, order);
    both.turn(1);
    both.retire_the_first();
    both.advance_to(start + 5ms);
    for (int turns = 0; turns < 200; ++turns) {
        both.on(1, [&] {
            for (int count = 0; count < 400; ++count) both.arm(start, [] {});
        });
    }
    return both.stats().fired;
}

TEST(adopted_timers, that_are_due_much_later_do_not_keep_others_from_firing) {
    const std::uint64_t alone = fired_under_pressure(0);
    EXPECT_GT(alone, 50U);
    EXPECT_GE(fired_under_pressure(4000), alone);
}

}  // namespace
}  // namespace chime::test
