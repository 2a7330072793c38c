// SPDX-License-Identifier: MIT
//
// Cancelling and postponing a timer wherever it may be, and what that leaves behind.

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "support/drive.hpp"
#include "support/random.hpp"
#include "support/virtual_time.hpp"
#include "support/wheel_duel.hpp"

namespace chime::test {
namespace {

using duel_type = wheel_duel<>;
constexpr std::int64_t tick_ns = 1 << 18;
constexpr std::int64_t hour_ns = 3'600'000'000'000;

/// A place where a timer may be when it is cancelled: how to bring three timers of deadlines d, d, d + 1 ns there.
/// The middle one is the victim; the others must fire as if nothing had happened.
struct place {
    const char* name;
    std::int64_t delay_ns;
    std::function<void(duel_type&, time_point deadline)> arrive;

    friend std::ostream& operator<<(std::ostream& out, const place& there) { return out << there.name; }
};

const std::vector<place>& places() {
    static const std::vector<place> all = {
        {"on_a_far_level", hour_ns, [](duel_type&, time_point) {}},
        {"on_the_lowest_level", 10 * tick_ns + 77, [](duel_type&, time_point) {}},
        {"in_the_first_tick", 100, [](duel_type&, time_point) {}},
        {"already_due_when_armed", -100, [](duel_type&, time_point) {}},
        {"after_the_first_cascade", hour_ns,
         [](duel_type& duel, time_point deadline) { duel.advance(later(deadline, -hour_ns / 50)); }},
        {"after_all_cascades", hour_ns,
         [](duel_type& duel, time_point deadline) { duel.advance(later(deadline, -2 * tick_ns)); }},
        {"one_nanosecond_before_the_deadline", hour_ns,
         [](duel_type& duel, time_point deadline) { duel.advance(later(deadline, -1)); }},
        {"in_the_loaded_tick", 10 * tick_ns + 77,
         [](duel_type& duel, time_point deadline) {
             duel.arm(later(deadline, -50));
             ASSERT_EQ(duel.advance(later(deadline, -50)), 1U);
         }},
        {"due_but_cut_off_by_the_budget", 10 * tick_ns + 77,
         [](duel_type& duel, time_point deadline) {
             duel.arm(later(deadline, -50));
             ASSERT_EQ(duel.advance(later(deadline, 10), 1), 1U);
         }},
        {"due_and_not_even_loaded", 10 * tick_ns + 77,
         [](duel_type& duel, time_point deadline) { duel.advance(later(deadline, 10), 0); }},
    };
    return all;
}

class cancel_at_its_tick : public ::testing::TestWithParam<place> {
 protected:
    /// Three timers around the deadline, brought to the place.
    void set_up_three() {
        const auto& there = GetParam();
        deadline_ = later(duel_.model().now(), there.delay_ns);
        first_ = duel_.arm(deadline_);
        victim_ = duel_.arm(deadline_);
        last_ = duel_.arm(later(deadline_, 1));
        there.arrive(duel_, deadline_);
    }
    /// Fires what is left; the duel checks order and number.
    void finish() {
        duel_.drain(later(deadline_, 2 * hour_ns), 3);
        EXPECT_EQ(duel_.live().size(), 0U);
        EXPECT_EQ(duel_.wheel().next_deadline(), std::nullopt);
    }

    duel_type duel_{wheel_at(at_ns(5 * hour_ns + 12'345)), duel_type::audit::after_each_operation};
    time_point deadline_;
    std::uint64_t first_ = 0;
    std::uint64_t victim_ = 0;
    std::uint64_t last_ = 0;
};

TEST_P(cancel_at_its_tick, the_cancelled_one_never_fires_and_its_neighbours_do) {
    set_up_three();
    EXPECT_TRUE(duel_.cancel(victim_));
    EXPECT_FALSE(duel_.cancel(victim_));
    finish();
}

TEST_P(cancel_at_its_tick, cancelling_all_three_leaves_nothing) {
    set_up_three();
    for (const std::uint64_t number : {last_, first_, victim_}) {
        EXPECT_TRUE(duel_.cancel(number));
    }
    EXPECT_EQ(duel_.wheel().next_deadline(), std::nullopt);
    finish();
}

TEST_P(cancel_at_its_tick, a_new_timer_in_the_same_place_is_not_taken_for_the_cancelled_one) {
    set_up_three();
    duel_.cancel(victim_);
    const std::uint64_t replacement = duel_.arm(deadline_);
    EXPECT_FALSE(duel_.cancel(victim_));
    EXPECT_TRUE(duel_.model().pending(replacement));
    finish();
}

TEST_P(cancel_at_its_tick, postponed_to_later_it_fires_later) {
    for (const std::int64_t by_ns : {std::int64_t{1}, std::int64_t{2}, tick_ns, 300 * tick_ns, hour_ns}) {
        set_up_three();
        EXPECT_TRUE(duel_.postpone(victim_, later(deadline_, by_ns)));
        duel_.advance(later(deadline_, by_ns - 1));
        EXPECT_EQ(duel_.model().pending(victim_), duel_.model().now() < later(deadline_, by_ns));
        finish();
    }
}

TEST_P(cancel_at_its_tick, postponed_to_earlier_it_fires_earlier) {
    for (const std::int64_t by_ns : {std::int64_t{1}, std::int64_t{60}, tick_ns, 300 * tick_ns, hour_ns}) {
        set_up_three();
        EXPECT_TRUE(duel_.postpone(victim_, later(deadline_, -by_ns)));
        duel_.advance(later(deadline_, -by_ns));
        EXPECT_FALSE(duel_.model().pending(victim_));
        finish();
    }
}

TEST_P(cancel_at_its_tick, postponed_there_and_back_it_fires_once_where_it_was) {
    set_up_three();
    for (const std::int64_t by_ns : {hour_ns, -tick_ns, tick_ns, std::int64_t{-1}, std::int64_t{0}}) {
        EXPECT_TRUE(duel_.postpone(victim_, later(deadline_, by_ns)));
    }
    finish();
}

TEST_P(cancel_at_its_tick, cancelled_from_inside_on_due_of_the_one_before_it) {
    set_up_three();
    duel_.advance(later(deadline_, 1), 100, [&](duel_type& inside) { inside.cancel(victim_); });
    finish();
    EXPECT_EQ(duel_.model().cancelled(), 1U);
}

TEST_P(cancel_at_its_tick, postponed_from_inside_on_due_of_the_one_before_it) {
    for (const std::int64_t by_ns : {std::int64_t{-7}, std::int64_t{0}, std::int64_t{2}, 3 * tick_ns, hour_ns}) {
        set_up_three();
        bool done = false;
        duel_.advance(later(deadline_, 1), 100, [&](duel_type& inside) {
            if (!done) {
                inside.postpone(victim_, later(deadline_, by_ns));
                done = true;
            }
        });
        finish();
    }
}

INSTANTIATE_TEST_SUITE_P(wheel, cancel_at_its_tick, ::testing::ValuesIn(places()),
                         [](const auto& made) { return std::string(made.param.name); });

TEST(wheel_cancel, a_timer_armed_late_into_the_current_tick_can_be_cancelled) {
    duel_type duel(wheel_at(at_ns(0)), duel_type::audit::after_each_operation);
    duel.arm(at_ns(tick_ns + 10));
    duel.arm(at_ns(tick_ns + 1'000));
    duel.advance(at_ns(tick_ns + 10));
    std::vector<std::uint64_t> late;
    for (int i = 0; i < 20; ++i) {
        late.push_back(duel.arm(at_ns(tick_ns + 1'010 - i)));
    }
    for (std::size_t i = 0; i < late.size(); i += 2) {
        EXPECT_TRUE(duel.cancel(late[i]));
    }
    EXPECT_EQ(duel.advance(at_ns(tick_ns + 2'000)), 11U);
}

TEST(wheel_cancel, when_all_are_cancelled_there_is_no_next_deadline) {
    for (const std::int64_t longest_ns : {std::int64_t{1'000}, std::int64_t{1'000'000'000}, 10 * year_ns}) {
        duel_type duel(wheel_at(at_ns(0)), duel_type::audit::after_each_operation);
        random_source random(process_seed());
        for (int i = 0; i < 500; ++i) {
            duel.arm(at_ns(random.between(0, longest_ns)));
        }
        duel.advance(at_ns(longest_ns / 3), 50);
        while (!duel.live().empty()) {
            duel.cancel(duel.live().front());
        }
        EXPECT_EQ(duel.wheel().next_deadline(), std::nullopt);
        EXPECT_EQ(duel.advance(at_ns(longest_ns)), 0U);
        EXPECT_EQ(duel.wheel().stats().tickets, 0U) << "what was stale is gone once its time has come";
    }
}

TEST(wheel_cancel, the_value_comes_back) {
    timer_wheel<std::string> wheel(wheel_at(at_ns(0)));
    const timer_id id = wheel.arm(at_ns(hour_ns), std::string(100, 'x'));
    EXPECT_EQ(wheel.cancel(id), std::string(100, 'x'));
    EXPECT_EQ(wheel.cancel(id), std::nullopt);
}

TEST(wheel_postpone, alternating_earlier_and_later_leaves_a_bounded_number_of_tickets) {
    duel_type duel(wheel_at(at_ns(0)));
    const std::uint64_t number = duel.arm(at_ns(hour_ns));
    for (int i = 0; i < 200'000 / CHIME_TEST_SCALE; ++i) {
        ASSERT_TRUE(duel.postpone(number, at_ns(i % 2 == 0 ? hour_ns / 2 - i : 2 * hour_ns)));
        ASSERT_LE(duel.wheel().stats().tickets, 2 + 64U + 512U);
    }
    EXPECT_LE(duel.wheel().memory(), std::size_t{4} << 20);
    EXPECT_EQ(duel.advance(at_ns(3 * hour_ns)), 1U);
}

TEST(wheel_postpone, moving_ever_earlier_leaves_a_bounded_number_of_tickets) {
    duel_type duel(wheel_at(at_ns(0)));
    const std::uint64_t number = duel.arm(at_ns(hour_ns));
    for (std::int64_t deadline_ns = hour_ns; deadline_ns > 1'000; deadline_ns -= deadline_ns / 100 + 1) {
        ASSERT_TRUE(duel.postpone(number, at_ns(deadline_ns)));
        ASSERT_LE(duel.wheel().stats().tickets, 2 + 64U + 512U);
    }
    EXPECT_EQ(duel.advance(at_ns(hour_ns)), 1U);
}

TEST(wheel_postpone, moving_within_the_current_tick_between_small_advances_leaves_a_bounded_number_of_tickets) {
    for (const std::size_t crowd : {1'000U, 10'000U}) {
        random_source random(crowd);
        duel_type duel(wheel_at(at_ns(0)));
        const auto draw = [&] { return later(duel.model().now(), random.between(0, tick_ns)); };
        for (std::size_t i = 0; i < 20 * crowd; ++i) {
            while (duel.live().size() < crowd) {
                duel.arm(draw());
            }
            duel.postpone(duel.live()[random.below(crowd)], draw());  // the duel checks the bound after each operation
            if (i % 25 == 0) {
                duel.advance(later(duel.model().now(), 50), 100);
            }
        }
    }
}

TEST(wheel_postpone, a_timer_kept_alive_for_a_day_fires_only_after_the_last_postponement) {
    duel_type duel(wheel_at(at_ns(0)), duel_type::audit::after_each_operation);
    const std::uint64_t number = duel.arm(at_ns(30'000'000'000));
    std::int64_t now_ns = 0;
    while (now_ns < 24 * hour_ns) {
        now_ns += 29'999'999'999;
        ASSERT_EQ(duel.advance(at_ns(now_ns)), 0U);
        ASSERT_TRUE(duel.postpone(number, at_ns(now_ns + 30'000'000'000)));
    }
    EXPECT_EQ(duel.advance(at_ns(now_ns + 29'999'999'999)), 0U);
    EXPECT_EQ(duel.advance(at_ns(now_ns + 30'000'000'000)), 1U);
}

TEST(wheel_postpone, hundred_thousand_random_postponements_agree_with_the_model) {
    random_source random(process_seed());
    duel_type duel(wheel_at(at_ns(0)), duel_type::audit::off);
    try {
        for (std::uint64_t i = 0; i < scaled(100'000); ++i) {
            if (duel.live().size() < 50) {
                duel.arm(later(duel.model().now(), random.between(0, hour_ns >> random.below(36))));
            }
            duel.postpone(duel.live()[random.below(duel.live().size())],
                          later(duel.model().now(), random.between(-10, hour_ns >> random.below(36))));
            if (random.one_in(10)) {
                duel.advance(later(duel.model().now(), random.between(0, 1'000'000)), 1 + random.below(5));
            }
        }
    } catch (const disagreement& e) {
        FAIL() << e.what() << "\n" << replay_hint();
    }
}

/// What cancelled timers may hold on to: with one-hour timers it would be gigabytes if they stayed until their hour.
class cancelled_timers_hold_no_memory : public ::testing::Test {
 protected:
    void arm() { live_.push_back(wheel_.arm(later(wheel_.now(), hour_ns + random_.between(0, 1'000'000'000)), 0)); }
    void cancel_oldest() {
        ASSERT_TRUE(wheel_.cancel(live_.front()).has_value());
        live_.pop_front();
    }
    void check_tickets() {
        const wheel_stats stats = wheel_.stats();
        ASSERT_EQ(stats.pending, live_.size());
        ASSERT_LE(stats.tickets, 2 * stats.pending + 4096 + 512);
    }
    static constexpr std::uint64_t rounds = scaled(1'000'000);

    timer_wheel<std::uint64_t> wheel_;
    std::deque<timer_id> live_;
    random_source random_{process_seed()};
};

TEST_F(cancelled_timers_hold_no_memory, when_armed_and_cancelled_one_by_one) {
    std::size_t warm = 0;
    for (std::uint64_t i = 0; i < rounds; ++i) {
        arm();
        cancel_oldest();
        check_tickets();
        ASSERT_FALSE(HasFatalFailure());
        if (i == rounds / 10) {
            warm = wheel_.memory();
        }
    }
    EXPECT_LE(wheel_.memory(), warm + warm / 4);
}

TEST_F(cancelled_timers_hold_no_memory, when_a_thousand_are_always_pending_and_time_goes_on) {
    std::size_t warm = 0;
    for (std::uint64_t i = 0; i < rounds; ++i) {
        arm();
        if (live_.size() > 1'000) {
            cancel_oldest();
        }
        if (i % 64 == 0) {
            ASSERT_TRUE(fire(wheel_, later(wheel_.now(), 1'000'000)).empty());
        }
        check_tickets();
        ASSERT_FALSE(HasFatalFailure());
        if (i == rounds / 10) {
            warm = wheel_.memory();
        }
    }
    EXPECT_LE(wheel_.memory(), warm + warm / 4);
}

TEST_F(cancelled_timers_hold_no_memory, when_a_million_are_armed_and_then_only_cancelled) {
    for (std::uint64_t i = 0; i < rounds; ++i) {
        arm();
    }
    const std::size_t peak = wheel_.memory();
    while (!live_.empty()) {
        cancel_oldest();
        check_tickets();
        ASSERT_FALSE(HasFatalFailure());
    }
    EXPECT_LE(wheel_.memory(), peak);
    EXPECT_EQ(wheel_.next_deadline(), std::nullopt);
    // The storage is used again, not added to.
    for (std::uint64_t i = 0; i < rounds; ++i) {
        arm();
    }
    EXPECT_LE(wheel_.memory(), peak + peak / 8);
}

TEST_F(cancelled_timers_hold_no_memory, when_the_live_ones_fire_and_only_stale_tickets_stay_far_away) {
    for (std::uint64_t i = 0; i < rounds / 4; ++i) {
        arm();  // far, to be cancelled
        wheel_.arm(later(wheel_.now(), 1'000'000 + random_.between(0, 1'000'000)), 1);
        ASSERT_TRUE(wheel_.cancel(live_.back()).has_value());
        live_.pop_back();
    }
    // A live timer tolerates one stale ticket. When it fires, somebody has to clear away what it tolerated.
    while (!wheel_.empty()) {
        fire(wheel_, later(wheel_.now(), 1'000), 256);
        const wheel_stats stats = wheel_.stats();
        ASSERT_LE(stats.tickets, 2 * stats.pending + 4096 + 512);
    }
}

TEST_F(cancelled_timers_hold_no_memory, when_everything_is_cleared_again_and_again) {
    std::size_t warm = 0;
    for (int round = 0; round < 20; ++round) {
        for (std::uint64_t i = 0; i < rounds / 20; ++i) {
            arm();
        }
        wheel_.clear();
        live_.clear();
        check_tickets();
        ASSERT_FALSE(HasFatalFailure());
        if (round == 2) {
            warm = wheel_.memory();
        }
    }
    EXPECT_LE(wheel_.memory(), warm + warm / 8);
}

TEST_F(cancelled_timers_hold_no_memory, and_a_pending_timer_costs_little_more_than_its_record) {
    const std::size_t before = wheel_.memory();
    for (std::uint64_t i = 0; i < rounds; ++i) {
        arm();
    }
    // A record of at most 48 bytes, the value, a ticket of at most 16; the last chunk may be empty but for one.
    EXPECT_LE(wheel_.memory() - before, rounds * (48 + sizeof(std::uint64_t) + 16) * 5 / 4 + (std::size_t{1} << 20));
}

}  // namespace
}  // namespace chime::test
