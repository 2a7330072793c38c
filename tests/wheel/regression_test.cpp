// SPDX-License-Identifier: MIT
//
// Mistakes that were made once. Each keeps its sentence.

#include <chime/wheel.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "support/failing_memory.hpp"
#include "support/wheel_audit.hpp"

namespace chime::test {
namespace {

using namespace std::chrono_literals;
using time_point = std::chrono::steady_clock::time_point;
using nanoseconds = std::chrono::nanoseconds;

template <class Wheel>
std::string audit(const Wheel& wheel) {
    return detail::wheel_audit::check(wheel);
}

TEST(regression, an_id_of_a_wheel_of_another_type_is_foreign_too) {
    timer_wheel<int> ints;
    timer_wheel<long> longs;
    timer_wheel<int, 4> short_lived;
    const timer_id id = ints.arm(time_point{1s}, 1);
    longs.arm(time_point{1s}, 2);
    short_lived.arm(time_point{1s}, 3);
    EXPECT_FALSE(longs.cancel(id));
    EXPECT_FALSE(short_lived.cancel(id));
    EXPECT_EQ(longs.size() + short_lived.size(), 2U);
}

TEST(regression, timers_that_are_always_overdue_do_not_make_the_near_run_grow) {
    timer_wheel<int> wheel;
    const time_point past{-1s};
    wheel.arm(past, 1);
    wheel.arm(past, 2);
    std::size_t settled_bytes = 0;
    for (int turn = 0; turn < 300'000; ++turn) {
        wheel.advance(
            time_point{}, [&](int value) { wheel.arm(past, value); }, 1);
        if (turn == 100'000) settled_bytes = wheel.memory();
    }
    EXPECT_EQ(wheel.memory(), settled_bytes);
    EXPECT_EQ(audit(wheel), "");
}

TEST(regression, one_timer_moved_a_million_times_inside_on_due_leaves_a_bounded_number_of_tickets) {
    timer_wheel<int> wheel;
    wheel.arm(time_point{10ns}, 1);
    const timer_id moved = wheel.arm(time_point{30ns}, 2);
    wheel.advance(time_point{20ns}, [&](int) {
        for (int i = 0; i < 500'000; ++i) {
            wheel.postpone(moved, time_point{25ns});
            wheel.postpone(moved, time_point{30ns});
        }
        EXPECT_LE(wheel.stats().tickets, 2 + wheel_config{}.stale_slack);
    });
    EXPECT_EQ(audit(wheel), "");
}

TEST(regression, loaded_timers_cancelled_in_an_on_due_that_throws_leave_a_bounded_number_of_tickets) {
    timer_wheel<int> wheel;
    std::vector<timer_id> ids;
    for (int i = 0; i < 100'000; ++i) ids.push_back(wheel.arm(time_point{10ns}, i));
    const auto cancel_all = [&](int) {
        for (const timer_id id : ids) wheel.cancel(id);
        throw std::runtime_error("enough");
    };
    EXPECT_THROW(wheel.advance(time_point{10ns}, cancel_all), std::runtime_error);
    EXPECT_TRUE(wheel.empty());
    EXPECT_EQ(audit(wheel), "");
}

TEST(regression, stale_tickets_whose_stamps_have_wrapped_stay_within_the_bound) {
    timer_wheel<int> wheel;
    std::vector<timer_id> others;
    for (int i = 0; i < 200'000; ++i) others.push_back(wheel.arm(time_point{1h}, i));
    const timer_id moved = wheel.arm(time_point{60s}, -1);
    for (int i = 0; i < 140'000; ++i) {
        wheel.postpone(moved, time_point{50s});
        wheel.postpone(moved, time_point{60s});
    }
    for (const timer_id other : others) wheel.cancel(other);
    EXPECT_EQ(wheel.size(), 1U);
    EXPECT_EQ(audit(wheel), "");
}

/// Its moves throw as soon as the set number of them has succeeded.
struct moved_rarely {
    static inline int moves_left = 0;

    moved_rarely() = default;
    moved_rarely(moved_rarely&&) {
        if (moves_left-- <= 0) throw std::runtime_error("moved too often");
    }
};

TEST(regression, cancel_moves_the_value_once) {
    timer_wheel<moved_rarely> wheel;
    moved_rarely::moves_left = 1;
    const timer_id id = wheel.arm(time_point{1s}, {});
    moved_rarely::moves_left = 0;
    EXPECT_THROW(wheel.cancel(id), std::runtime_error);
    EXPECT_EQ(wheel.size(), 1U);
    moved_rarely::moves_left = 1;
    EXPECT_TRUE(wheel.cancel(id).has_value());
}

TEST(regression, a_growth_refused_between_two_chains_of_one_tick_leaves_the_next_deadline_right) {
    for (std::uint64_t allowed = 0; allowed < 4; ++allowed) {
        for (int count = 4000; count < 4100; count += 3) {
            failing_memory memory;
            wheel_config config;
            config.memory = &memory;
            config.resolution = nanoseconds{std::int64_t{1} << 32};
            timer_wheel<int> wheel(config);
            const time_point tick{config.resolution * 2};
            for (int i = 0; i < count; ++i) wheel.arm(tick + 3s + nanoseconds{i}, i);
            wheel.arm(tick + 1s, -1);
            wheel.advance(
                tick, [](int) {}, 16);  // Stops in the middle of the first chain.
            for (int i = 0; i < 100; ++i) wheel.arm(tick + 2s, i);
            memory.fail_after(allowed);
            try {
                wheel.advance(tick, [](int) {});
            } catch (const std::bad_alloc&) {
                ASSERT_EQ(audit(wheel), "") << count << " timers, " << allowed << " more allocations";
            }
            memory.fail_after(failing_memory::unlimited);
        }
    }
}

class flood : public ::testing::TestWithParam<std::tuple<std::size_t, std::size_t, bool>> {};

TEST_P(flood, of_timers_that_are_due_does_not_keep_an_older_one_from_firing) {
    const auto [budget, due_for_each, are_cancelled] = GetParam();
    timer_wheel<int> wheel;
    const time_point now{1s};
    wheel.advance(now, [](int) {});
    wheel.arm(now - 1ms, 1);
    bool has_fired = false;
    for (int call = 0; call < 100 && !has_fired; ++call) {
        for (std::size_t i = 0; i < due_for_each * budget; ++i) {
            const timer_id id = wheel.arm(now, 0);
            if (are_cancelled) wheel.cancel(id);
        }
        wheel.advance(
            now, [&](int value) { has_fired |= value == 1; }, budget);
    }
    EXPECT_TRUE(has_fired);
    EXPECT_EQ(audit(wheel), "");
}

INSTANTIATE_TEST_SUITE_P(regression, flood,
                         ::testing::Combine(::testing::Values(std::size_t{1}, std::size_t{64}, std::size_t{256}),
                                            ::testing::Values(std::size_t{17}, std::size_t{60}), ::testing::Bool()));

TEST(regression, a_cascade_that_is_cut_short_does_not_let_what_is_armed_next_wait_behind_later_ones) {
    const nanoseconds tick{std::int64_t{1} << 18};
    const time_point slot{tick * 256 * 20'000};
    wheel_config config;
    config.start = slot - tick * 300;
    timer_wheel<int> wheel(config);
    for (int i = 0; i < 200; ++i) wheel.arm(slot + tick * 100, 0);
    wheel.arm(slot + tick * 40, 2);
    std::vector<int> fired;
    const auto note = [&](int value) { fired.push_back(value); };
    ASSERT_EQ(wheel.advance(slot + tick, note, 1), 0U);
    wheel.arm(slot + tick * 20, 1);
    while (fired.size() < 2) wheel.advance(slot + tick * 60, note, 1);
    EXPECT_EQ(fired, (std::vector<int>{1, 2}));
}

TEST(regression, a_call_that_may_fire_nothing_begins_nothing) {
    timer_wheel<int> wheel;
    wheel.advance(
        time_point{1s}, [](int) {}, 0);
    wheel.arm(time_point{1s}, 1);
    EXPECT_EQ(wheel.advance(
                  time_point{1s}, [](int) {}, 10),
              1U);
}

TEST(regression, timers_that_are_postponed_before_every_call_do_not_keep_another_from_firing) {
    for (const std::size_t budget : {std::size_t{1}, std::size_t{64}}) {
        timer_wheel<int> wheel;
        time_point now{1s};
        wheel.advance(now, [](int) {});
        std::vector<timer_id> restless;
        for (std::size_t i = 0; i < 20 * (budget + 1) + 40; ++i) restless.push_back(wheel.arm(now, 0));
        bool has_fired = false;
        for (int call = 0; call < 100 && !has_fired; ++call) {
            if (call == 2) wheel.arm(now, 1);
            now += 1ms;
            for (timer_id& id : restless) {
                if (!wheel.postpone(id, now)) id = wheel.arm(now, 0);
            }
            wheel.advance(
                now, [&](int value) { has_fired |= value == 1; }, budget);
        }
        EXPECT_TRUE(has_fired) << "budget " << budget;
    }
}

TEST(regression, timers_that_are_armed_a_tick_ahead_before_every_call_do_not_keep_another_from_firing) {
    const nanoseconds tick{std::int64_t{1} << 18};
    for (const std::size_t budget : {std::size_t{1}, std::size_t{64}}) {
        timer_wheel<int> wheel;
        time_point now{tick * 4'000'000};
        wheel.advance(now, [](int) {});
        std::vector<timer_id> begun;
        for (std::size_t i = 0; i < 20 * (budget + 1) + 64; ++i) begun.push_back(wheel.arm(now, 0));
        ASSERT_EQ(wheel.advance(
                      now, [](int) {}, budget),
                  0U);
        for (const timer_id id : begun) wheel.cancel(id);
        wheel.arm(now, 1);
        bool has_fired = false;
        for (int call = 0; call < 100 && !has_fired; ++call) {
            for (std::size_t i = 0; i < 17 * (budget + 1) + 32; ++i) wheel.arm(now + tick, 0);
            now += tick;
            wheel.advance(
                now, [&](int value) { has_fired |= value == 1; }, budget);
        }
        EXPECT_TRUE(has_fired) << "budget " << budget;
    }
}

TEST(regression, a_call_without_a_budget_fires_what_came_while_another_was_interrupted) {
    timer_wheel<int> wheel;
    wheel.advance(time_point{1s}, [](int) {});
    std::vector<int> fired;
    const auto note = [&](int value) { fired.push_back(value); };
    for (int value = 1; value <= 64; ++value) wheel.arm(time_point{1s}, value);
    ASSERT_EQ(wheel.advance(time_point{1s}, note, 1), 0U) << "or this test tests nothing";
    wheel.arm(time_point{0s}, 0);
    EXPECT_EQ(wheel.advance(time_point{1s}, note), 65U);
    EXPECT_TRUE(std::is_sorted(fired.begin(), fired.end()));
}

TEST(regression, what_is_moved_while_an_advance_is_interrupted_keeps_the_order) {
    timer_wheel<int> wheel;
    wheel.advance(time_point{1s}, [](int) {});
    std::vector<int> fired;
    const auto note = [&](int value) { fired.push_back(value); };
    for (int value = 1; value <= 64; ++value) wheel.arm(time_point{1s}, value);
    const timer_id last = wheel.arm(time_point{60s}, 0);
    ASSERT_EQ(wheel.advance(time_point{1s}, note, 1), 0U) << "or this test tests nothing";
    wheel.postpone(last, time_point{0s});
    wheel.arm(time_point{0s}, 100);  // Was not there when the advance began.
    while (wheel.next_deadline() == time_point{0s}) wheel.advance(time_point{1s}, note, 1);
    ASSERT_GE(fired.size(), 2U);
    EXPECT_EQ(fired.front(), 0);
    EXPECT_LT(std::find(fired.begin(), fired.end(), 100) - fired.begin(), 4);
}

/// Arms another timer when it goes, and asks when to come back.
struct successor {
    timer_wheel<std::unique_ptr<successor>>* wheel = nullptr;
    std::optional<time_point>* answer = nullptr;

    ~successor() {
        if (answer == nullptr) return;
        wheel->arm(time_point{5s}, nullptr);
        *answer = wheel->next_deadline();
    }
};

TEST(regression, what_a_destructor_arms_during_clear_has_a_ticket) {
    std::optional<time_point> answer;
    timer_wheel<std::unique_ptr<successor>> wheel;
    wheel.arm(time_point{1s}, std::unique_ptr<successor>(new successor{&wheel, &answer}));
    wheel.cancel(wheel.arm(time_point{2s}, nullptr));  // Its ticket is there to be inherited, but not for long.
    wheel.clear();
    ASSERT_TRUE(answer);
    EXPECT_LE(*answer, time_point{5s});
    EXPECT_EQ(audit(wheel), "");
}

TEST(regression, stale_tickets_are_bounded_though_every_slot_holds_one_ticket_and_few_are_looked_at) {
    for (const std::size_t budget : {32U, 40U, 64U, 65536U}) {
        constexpr std::size_t live = 1000;
        wheel_config config;
        config.stale_slack = 64;
        config.scrub_budget = budget;
        timer_wheel<int> wheel(config);
        const auto at_tick = [&](std::uint64_t tick) {
            return time_point{nanoseconds{static_cast<std::int64_t>(tick) * config.resolution.count()}};
        };
        std::vector<timer_id> apart;
        for (std::size_t i = 0; i < live; ++i) apart.push_back(wheel.arm(at_tick((i % 255 + 1) << (i / 255 * 8)), 1));
        // Garbage behind all of them, until it has to be looked for.
        std::vector<timer_id> far;
        for (std::size_t i = 0; i < live; ++i) far.push_back(wheel.arm(at_tick(std::uint64_t{50} << 32), 2));
        for (std::size_t i = 0; i < far.size() && wheel.stats().scrubbed == 0; ++i) wheel.cancel(far[i]);
        for (const timer_id id : apart) {
            wheel.cancel(id);
            ASSERT_LE(wheel.stats().stale, wheel.size() + config.stale_slack) << "budget " << budget;
        }
    }
}

TEST(regression, a_wheel_that_is_cleared_has_compacted_nothing) {
    timer_wheel<int> wheel;
    for (int i = 1; i <= 100; ++i) wheel.arm(time_point{i * 1s}, i);
    wheel.clear();
    EXPECT_EQ(wheel.stats().compactions, 0U);
}

}  // namespace
}  // namespace chime::test
