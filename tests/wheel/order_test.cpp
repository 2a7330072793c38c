// SPDX-License-Identifier: MIT
//
// The order of firing, and the work of one call however many timers share a tick.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "support/drive.hpp"
#include "support/random.hpp"
#include "support/virtual_time.hpp"
#include "support/wheel_duel.hpp"

namespace chime::test {
namespace {

using int_wheel = timer_wheel<int>;
using ints = std::vector<int>;
constexpr std::int64_t tick_ns = 1 << 18;

TEST(wheel_order, equal_deadlines_fire_in_the_order_of_arming) {
    for (const std::int64_t delay_ns :
         {std::int64_t{0}, std::int64_t{5}, tick_ns, 300 * tick_ns, 70'000 * tick_ns, 10 * year_ns}) {
        int_wheel wheel(wheel_at(at_ns(1)));
        ints expected;
        for (int i = 0; i < 1'000; ++i) {
            wheel.arm(at_ns(1 + delay_ns), i);
            expected.push_back(i);
        }
        EXPECT_EQ(fire(wheel, at_ns(1 + delay_ns)), expected) << delay_ns;
    }
}

TEST(wheel_order, deadlines_a_nanosecond_apart_in_one_tick_fire_in_order_of_deadline) {
    int_wheel wheel(wheel_at(at_ns(0), std::int64_t{1} << 30));
    ints expected;
    for (int i = 0; i < 5'000; ++i) {
        wheel.arm(at_ns(1'000'000 - i), i);
        expected.push_back(4'999 - i);
    }
    EXPECT_EQ(fire(wheel, at_ns(1'000'000)), expected);
}

TEST(wheel_order, equal_deadlines_armed_at_different_times_and_distances_fire_in_the_order_of_arming) {
    // The same deadline is placed on a lower level each time, so the timers meet again only at the end.
    const time_point deadline = at_ns(10 * year_ns);
    int_wheel wheel(wheel_at(at_ns(0)));
    ints expected;
    int number = 0;
    for (std::int64_t distance_ns = 10 * year_ns; distance_ns > 1; distance_ns /= 3) {
        fire(wheel, later(deadline, -distance_ns));
        wheel.arm(deadline, number);
        expected.push_back(number++);
    }
    EXPECT_EQ(fire(wheel, deadline), expected);
}

TEST(wheel_order, a_postponed_timer_keeps_its_arming_number) {
    const time_point deadline = at_ns(100 * tick_ns + 9);
    for (const time_point first_deadline : {at_ns(3), at_ns(50 * tick_ns), at_ns(101 * tick_ns), at_ns(year_ns)}) {
        int_wheel wheel(wheel_at(at_ns(0)));
        const timer_id oldest = wheel.arm(first_deadline, 1);
        wheel.arm(deadline, 2);
        const timer_id youngest = wheel.arm(first_deadline, 3);
        EXPECT_TRUE(wheel.postpone(youngest, deadline));
        EXPECT_TRUE(wheel.postpone(oldest, deadline));
        EXPECT_EQ(fire(wheel, deadline), (ints{1, 2, 3}));
    }
}

TEST(wheel_order, a_timer_postponed_inside_on_due_may_still_fire_in_the_same_call_in_its_place) {
    timer_wheel<int> wheel(wheel_at(at_ns(0)));
    wheel.arm(at_ns(10), 1);
    wheel.arm(at_ns(20), 2);
    const timer_id pulled = wheel.arm(at_ns(year_ns), 4);
    wheel.arm(at_ns(30), 3);
    const timer_id pushed = wheel.arm(at_ns(25), 5);
    ints fired;
    wheel.advance(at_ns(100), [&](int value) {
        fired.push_back(value);
        if (value == 1) {
            wheel.postpone(pulled, at_ns(40));
            wheel.postpone(pushed, at_ns(50));
        }
    });
    EXPECT_EQ(fired, (ints{1, 2, 3, 4, 5}));
}

TEST(wheel_order, what_on_due_arms_waits_for_the_next_call_whatever_its_deadline) {
    for (const std::int64_t delay_ns : {std::int64_t{-1'000'000'000}, std::int64_t{-1}, std::int64_t{0}, tick_ns}) {
        int_wheel wheel(wheel_at(at_ns(0)));
        for (int i = 0; i < 4; ++i) {
            wheel.arm(at_ns(1'000 + i * tick_ns), i);
        }
        const time_point now = at_ns(8 * tick_ns);
        ints fired;
        wheel.advance(now, [&](int value) {
            fired.push_back(value);
            wheel.arm(later(now, delay_ns), 10 + value);
        });
        EXPECT_EQ(fired, (ints{0, 1, 2, 3})) << delay_ns;
        EXPECT_EQ(wheel.next_deadline(), later(now, delay_ns));
        EXPECT_EQ(fire(wheel, later(now, tick_ns)), (ints{10, 11, 12, 13})) << delay_ns;
    }
}

// What a cancelled timer leaves behind in the sorted run must not be taken for a later timer of the same record, also
// when the record has lived so often that every small counter in it has come round.
TEST(wheel_order, what_on_due_arms_waits_also_when_its_record_has_been_used_many_times_in_this_call) {
    for (int lives = 1; lives <= 600; ++lives) {
        int_wheel wheel(wheel_at(at_ns(0)));
        wheel.arm(at_ns(10), 1);
        const timer_id victim = wheel.arm(at_ns(20), 2);
        wheel.arm(at_ns(30), 3);
        ints fired;
        wheel.advance(at_ns(100), [&](int value) {
            fired.push_back(value);
            if (value == 1) {
                wheel.cancel(victim);
                timer_id last;
                for (int i = 0; i < lives; ++i) {
                    wheel.cancel(last);
                    last = wheel.arm(at_ns(15), 4);
                }
            }
        });
        ASSERT_EQ(fired, (ints{1, 3})) << "after " << lives << " lives";
        ASSERT_EQ(audit(wheel), "");
        ASSERT_EQ(fire(wheel, at_ns(100)), ints{4});
    }
}

TEST(wheel_order, a_timer_moved_many_times_in_one_call_fires_once_and_in_its_place) {
    for (int moves = 1; moves <= 600; ++moves) {
        int_wheel wheel(wheel_at(at_ns(0)));
        wheel.arm(at_ns(10), 1);
        const timer_id moved = wheel.arm(at_ns(5'000), 3);
        wheel.arm(at_ns(30), 2);
        wheel.arm(at_ns(tick_ns), 4);
        ints fired;
        wheel.advance(at_ns(tick_ns), [&](int value) {
            fired.push_back(value);
            for (int i = 0; value == 1 && i < moves; ++i) {
                ASSERT_TRUE(wheel.postpone(moved, at_ns(4'000 - i)));
            }
        });
        ASSERT_EQ(fired, (ints{1, 2, 3, 4})) << "after " << moves << " moves";
        ASSERT_EQ(audit(wheel), "");
    }
}

TEST(wheel_order, a_timer_that_arms_itself_for_now_fires_once_in_each_call) {
    int_wheel wheel(wheel_at(at_ns(0)));
    wheel.arm(at_ns(5), 0);
    for (int i = 0; i < 100; ++i) {
        int count = 0;
        EXPECT_EQ(wheel.advance(at_ns(5),
                                [&](int value) {
                                    ++count;
                                    wheel.arm(at_ns(5), value + 1);
                                }),
                  1U);
        EXPECT_EQ(count, 1);
    }
}

TEST(wheel_order, on_due_is_told_the_deadline_in_force) {
    int_wheel wheel(wheel_at(at_ns(0)));
    wheel.postpone(wheel.arm(at_ns(100), 1), at_ns(777'777));
    wheel.postpone(wheel.arm(at_ns(900'000), 2), at_ns(333));
    std::vector<std::pair<int, time_point>> fired;
    wheel.advance(at_ns(1'000'000), [&](int&& value, time_point deadline) { fired.emplace_back(value, deadline); });
    EXPECT_EQ(fired, (std::vector<std::pair<int, time_point>>{{2, at_ns(333)}, {1, at_ns(777'777)}}));
}

TEST(wheel_budget, every_budget_fires_a_prefix_and_the_next_call_goes_on) {
    for (std::size_t budget = 1; budget < 40; ++budget) {
        wheel_duel<> duel(wheel_at(at_ns(0)), wheel_duel<>::audit::after_each_operation);
        random_source random(budget);
        for (int i = 0; i < 200; ++i) {
            duel.arm(at_ns(random.between(0, 3) * tick_ns + random.between(0, 20)));
        }
        EXPECT_EQ(duel.drain(at_ns(10 * tick_ns), budget), 200U);
    }
}

TEST(wheel_budget, a_budget_of_nothing_fires_nothing) {
    int_wheel wheel(wheel_at(at_ns(0)));
    wheel.arm(at_ns(10), 1);
    EXPECT_EQ(fire(wheel, at_ns(20), 0), ints{});
    EXPECT_EQ(wheel.now(), at_ns(20));
    EXPECT_EQ(wheel.next_deadline(), at_ns(10));
    EXPECT_EQ(fire(wheel, at_ns(20)), ints{1});
}

TEST(wheel_budget, what_is_armed_between_two_calls_takes_its_place_among_what_is_still_due) {
    wheel_duel<> duel(wheel_at(at_ns(0)), wheel_duel<>::audit::after_each_operation);
    for (int i = 0; i < 100; ++i) {
        duel.arm(at_ns(1'000 + 10 * i));
    }
    for (int i = 0; i < 50; ++i) {
        duel.advance(at_ns(tick_ns), 1);
        duel.arm(at_ns(1'000 + 15 * i));
    }
    duel.drain(at_ns(tick_ns), 1);
    EXPECT_EQ(duel.live().size(), 0U);
}

/// A value that counts how often any of its kind was moved: a measure of the work of one call.
struct counted_move {
    explicit counted_move(std::uint32_t n) : number(n) {}
    counted_move(counted_move&& other) noexcept : number(other.number) { ++moves; }
    counted_move& operator=(counted_move&& other) noexcept {
        number = other.number;
        ++moves;
        return *this;
    }
    std::uint32_t number;
    static inline std::uint64_t moves = 0;
};

/// Arms a crowd around one tick and fires it with a small budget: bounded work in each call, the right order in all.
class a_million_on_one_tick : public ::testing::Test {
 protected:
    static constexpr std::uint32_t crowd = static_cast<std::uint32_t>(scaled(1'000'000));
    static constexpr std::size_t budget = 64;

    template <class DeadlineOf>
    void arm_crowd(const DeadlineOf& deadline_of) {
        for (std::uint32_t i = 0; i < crowd; ++i) {
            ids_.push_back(wheel_.arm(deadline_of(i), counted_move(i)));
            expected_.emplace_back(deadline_of(i), i);
        }
        std::sort(expected_.begin(), expected_.end());
    }

    /// One call's work: what the wheel moved about, what it dropped, what it fired.
    std::uint64_t work() const {
        const wheel_stats stats = wheel_.stats();
        return stats.cascaded + stats.stale_dropped + stats.scrubbed + stats.fired + counted_move::moves;
    }

    void fire_in_small_steps(time_point now) {
        std::size_t fired = 0;
        std::size_t calls = 0;
        while (!wheel_.empty()) {
            const std::uint64_t before = work();
            const std::size_t count = wheel_.advance(
                now,
                [&](counted_move&& value, time_point deadline) {
                    ASSERT_EQ(expected_[fired], std::pair(deadline, value.number));
                    ++fired;
                },
                budget);
            ASSERT_FALSE(HasFatalFailure());
            ASSERT_LE(count, budget);
            ASSERT_LE(work() - before, 64 * budget);
            ASSERT_TRUE(wheel_.empty() || *wheel_.next_deadline() <= now);
            ASSERT_LE(++calls, 8 * (crowd / budget) + 1'000) << "each call has to get on";
        }
        EXPECT_EQ(fired, crowd);
    }

    timer_wheel<counted_move> wheel_{wheel_at(at_ns(0), 1 << 20)};
    std::vector<timer_id> ids_;
    std::vector<std::pair<time_point, std::uint32_t>> expected_;
    static constexpr std::int64_t second_ns = 1'000'000'000;
};

TEST_F(a_million_on_one_tick, with_the_same_deadline_fire_in_the_order_of_arming) {
    arm_crowd([](std::uint32_t) { return at_ns(second_ns); });
    fire_in_small_steps(at_ns(second_ns));
}

TEST_F(a_million_on_one_tick, with_deadlines_that_descend_fire_in_order_of_deadline) {
    constexpr std::int64_t tick_start_ns = second_ns >> 20 << 20;
    arm_crowd([](std::uint32_t i) { return at_ns(tick_start_ns + ((1 << 20) - 1 - i)); });
    fire_in_small_steps(at_ns(2 * second_ns));
}

TEST_F(a_million_on_one_tick, with_deadlines_in_disorder_fire_in_order_of_deadline) {
    constexpr std::int64_t tick_start_ns = second_ns >> 20 << 20;
    arm_crowd([](std::uint32_t i) { return at_ns(tick_start_ns + (std::int64_t{i} * 7'919'993) % (1 << 20)); });
    fire_in_small_steps(at_ns(2 * second_ns));
}

TEST_F(a_million_on_one_tick, already_due_when_armed_fire_in_order_of_deadline) {
    arm_crowd([](std::uint32_t i) { return at_ns(-(std::int64_t{i} * 7'919'993) % (1 << 20)); });
    fire_in_small_steps(at_ns(0));
}

TEST_F(a_million_on_one_tick, in_one_far_slot_cascade_within_the_budget) {
    // A year away and spread over an hour: one slot of a high level that has to be dealt out.
    arm_crowd([](std::uint32_t i) { return at_ns(year_ns + (std::int64_t{i} * 7'919'993) % 3'600'000'000'000); });
    const time_point before = at_ns(year_ns - 1);
    while (wheel_.now() < before || *wheel_.next_deadline() <= wheel_.now()) {
        const std::uint64_t so_far = work();
        ASSERT_EQ(wheel_.advance(
                      before, [](counted_move&&) {}, budget),
                  0U);
        ASSERT_LE(work() - so_far, 64 * budget);
    }
    fire_in_small_steps(at_ns(2 * year_ns));
}

TEST_F(a_million_on_one_tick, all_cancelled_one_nanosecond_before_never_fire) {
    arm_crowd([](std::uint32_t) { return at_ns(second_ns); });
    ASSERT_EQ(wheel_.advance(at_ns(second_ns - 1), [](counted_move&&) {}), 0U);
    for (const timer_id id : ids_) {
        ASSERT_TRUE(wheel_.cancel(id).has_value());
        const wheel_stats stats = wheel_.stats();
        ASSERT_LE(stats.tickets, 2 * stats.pending + 64 + 512);
    }
    EXPECT_EQ(wheel_.next_deadline(), std::nullopt);
    EXPECT_EQ(wheel_.advance(at_ns(second_ns), [](counted_move&&) { FAIL() << "fired after cancel"; }), 0U);
    EXPECT_EQ(wheel_.stats().cancelled, crowd);
}

TEST_F(a_million_on_one_tick, half_of_them_cancelled_halfway_through_leave_the_others_in_order) {
    arm_crowd([](std::uint32_t) { return at_ns(second_ns); });
    std::vector<std::uint32_t> fired;
    const auto note = [&](counted_move&& value) { fired.push_back(value.number); };
    while (fired.size() < crowd / 2) {
        wheel_.advance(at_ns(second_ns), note, budget);
    }
    for (std::uint32_t i = 0; i < crowd; i += 2) {
        wheel_.cancel(ids_[i]);
    }
    while (!wheel_.empty()) {
        const std::uint64_t before = work();
        ASSERT_LE(wheel_.advance(at_ns(second_ns), note, budget), budget);
        ASSERT_LE(work() - before, 64 * budget);
    }
    EXPECT_TRUE(std::is_sorted(fired.begin(), fired.end()));
    EXPECT_EQ(wheel_.stats().fired + wheel_.stats().cancelled, crowd);
}

}  // namespace
}  // namespace chime::test
