// SPDX-License-Identifier: MIT
//
// Deadlines at the edges: of a tick, of a level, of all time.

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "support/drive.hpp"
#include "support/random.hpp"
#include "support/random_run.hpp"
#include "support/virtual_time.hpp"
#include "support/wheel_duel.hpp"

namespace chime::test {
namespace {

using int_wheel = timer_wheel<int>;
using ints = std::vector<int>;

/// Start times on both sides of every power of two, near zero, and at both ends of time. Of the powers, slow builds try
/// every fifth, which meets every level.
std::vector<time_point> start_times() {
    std::vector<time_point> starts = {time_point::min(), at_ns(0), later(time_point::min(), 1)};
    for (unsigned exponent = 0; exponent <= 62; exponent += slow_build ? 5 : 1) {
        for (const int offset : {-1, 0, 1}) {
            starts.push_back(at_ns(power_ns(exponent) + offset));
            starts.push_back(at_ns(-power_ns(exponent) + offset));
        }
    }
    return starts;
}

/// Asserts that a wheel with this one timer fires it at its deadline and not a nanosecond before, also when time
/// comes there in steps. Deadlines before the start are due at once.
void expect_exact(const wheel_config& config, time_point deadline) {
    int_wheel wheel(config);
    wheel.arm(deadline, 1);
    ASSERT_EQ(wheel.next_deadline(), deadline);
    if (deadline > config.start) {
        const std::int64_t gap_ns =
            to_ns(deadline) - (to_ns(config.start) < 0 && to_ns(deadline) >= 0 ? 0 : to_ns(config.start));
        for (const std::int64_t before_ns : {gap_ns / 2, gap_ns / 256, config.resolution.count(), std::int64_t{1}}) {
            if (later(deadline, -before_ns) >= deadline) {
                continue;
            }
            ASSERT_EQ(fire(wheel, later(deadline, -before_ns)), ints{}) << before_ns << " ns early";
            ASSERT_EQ(wheel.next_deadline(), deadline) << before_ns << " ns before it";
        }
    }
    ASSERT_EQ(audit(wheel), "");
    ASSERT_EQ(fire(wheel, deadline), ints{1});
    ASSERT_EQ(wheel.next_deadline(), std::nullopt);
}

TEST(wheel_levels, a_delay_of_each_levels_span_and_its_neighbours_fires_exactly_at_its_deadline) {
    for (const std::int64_t resolution_ns : resolutions_ns) {
        for (const time_point start : start_times()) {
            for (unsigned level = 0; level <= 8; ++level) {
                const unsigned exponent =
                    static_cast<unsigned>(std::countr_zero(static_cast<std::uint64_t>(resolution_ns))) + 8 * level;
                const std::int64_t span_ns = power_ns(exponent);
                for (const std::int64_t delay_ns :
                     {span_ns - 1, span_ns,
                      span_ns == std::numeric_limits<std::int64_t>::max() ? span_ns : span_ns + 1}) {
                    expect_exact(wheel_at(start, resolution_ns), later(start, delay_ns));
                    if (HasFatalFailure()) {
                        FAIL() << "resolution " << resolution_ns << ", start " << to_ns(start) << ", level " << level
                               << ", delay " << delay_ns;
                    }
                }
            }
        }
    }
}

TEST(wheel_levels, a_delay_of_one_tick_less_and_one_tick_more_than_a_span_fires_exactly_too) {
    for (const std::int64_t resolution_ns : {std::int64_t{1} << 10, std::int64_t{1} << 18}) {
        for (const std::int64_t start_ns : {std::int64_t{0}, resolution_ns - 1, resolution_ns * 255,
                                            resolution_ns * 256 - 1, resolution_ns * 65'535 + 7}) {
            for (unsigned level = 1; level <= 5; ++level) {
                const std::int64_t span_ns = resolution_ns << (8 * level);
                for (const std::int64_t ticks : {-1, 0, 1}) {
                    for (const std::int64_t extra_ns : {-1, 0, 1}) {
                        expect_exact(wheel_at(at_ns(start_ns), resolution_ns),
                                     at_ns(start_ns + span_ns + ticks * resolution_ns + extra_ns));
                        ASSERT_FALSE(HasFatalFailure());
                    }
                }
            }
        }
    }
}

TEST(wheel_levels, a_ten_year_timer_never_hides_a_near_one_wherever_the_wheel_starts) {
    for (const std::int64_t resolution_ns : resolutions_ns) {
        for (const time_point start : start_times()) {
            wheel_duel<> duel(wheel_at(start, resolution_ns), wheel_duel<>::audit::after_each_operation);
            duel.arm(later(start, 10 * year_ns));
            for (std::int64_t delay_ns = 1; delay_ns < 20'000'000'000; delay_ns *= 7) {
                duel.arm(later(start, delay_ns));
            }
            // Nothing was cancelled, so the wheel knows each next deadline exactly: one call for each is enough.
            while (duel.live().size() > 1) {
                const time_point next = *duel.model().next_deadline();
                ASSERT_EQ(duel.wheel().next_deadline(), next);
                ASSERT_EQ(duel.advance(later(next, -1)), 0U);
                ASSERT_GE(duel.advance(next), 1U);
            }
            ASSERT_EQ(duel.wheel().next_deadline(), later(start, 10 * year_ns));
        }
    }
}

TEST(wheel_levels, microsecond_timers_go_on_for_a_while_beside_a_ten_year_one_across_every_boundary) {
    for (unsigned exponent = 10; exponent <= 62; ++exponent) {
        const time_point boundary = at_ns(power_ns(exponent));
        wheel_duel<> duel(wheel_at(later(boundary, -5'000)));
        duel.arm(later(boundary, 10 * year_ns));
        duel.arm(later(boundary, -4'000));
        for (int i = 0; i < 40; ++i) {
            const time_point next = *duel.wheel().next_deadline();
            ASSERT_EQ(duel.advance(next, 1, [&](auto& inside) { inside.arm(later(next, 1'000)); }), 1U)
                << "2^" << exponent;
        }
        ASSERT_EQ(duel.live().size(), 2U);
    }
}

TEST(wheel_levels, delays_from_a_millisecond_to_ten_years_fire_in_order_each_at_its_deadline) {
    for (const std::int64_t resolution_ns : resolutions_ns) {
        wheel_duel<> duel(wheel_at(at_ns(987'654'321), resolution_ns), wheel_duel<>::audit::after_each_operation);
        std::vector<std::int64_t> delays_ns;
        for (double delay_ns = 1e6; delay_ns <= 10.0 * static_cast<double>(year_ns); delay_ns *= 1.09) {
            delays_ns.push_back(static_cast<std::int64_t>(delay_ns));
        }
        for (std::size_t i = 0; i < delays_ns.size(); ++i) {  // neither ascending nor descending
            duel.arm(later(at_ns(987'654'321), delays_ns[i * 37 % delays_ns.size()]));
        }
        std::size_t calls = 0;
        while (duel.live().size() != 0) {
            duel.advance(*duel.wheel().next_deadline());
            ++calls;
        }
        EXPECT_LE(calls, delays_ns.size());
    }
}

TEST(wheel_levels, deadlines_at_the_very_ends_of_time_fire_in_order_when_time_gets_there) {
    for (const time_point start : {time_point::min(), at_ns(-1), at_ns(0), at_ns(1), later(time_point::max(), -1)}) {
        for (const std::int64_t resolution_ns : resolutions_ns) {
            int_wheel wheel(wheel_at(start, resolution_ns));
            wheel.arm(time_point::max(), 5);
            wheel.arm(later(time_point::max(), -1), 4);
            wheel.arm(later(time_point::max(), -2), 3);
            wheel.arm(time_point::min(), 1);
            wheel.arm(later(time_point::min(), 1), 2);
            ASSERT_EQ(audit(wheel), "");
            ASSERT_EQ(wheel.next_deadline(), time_point::min());
            const auto early = fire(wheel, start);
            ASSERT_GE(early.size(), start == time_point::min() ? 1U : 2U);
            ASSERT_EQ(early.front(), 1);
            fire(wheel, later(time_point::max(), -3));
            ASSERT_EQ(wheel.size(), start == later(time_point::max(), -1) ? 1U : 3U);
            fire(wheel, later(time_point::max(), -2));
            fire(wheel, later(time_point::max(), -1));
            ASSERT_EQ(wheel.size(), 1U);
            ASSERT_EQ(wheel.next_deadline(), time_point::max());
            ASSERT_EQ(fire(wheel, time_point::max()), ints{5});
            ASSERT_TRUE(wheel.empty());
            wheel.arm(time_point::max(), 6);
            ASSERT_EQ(fire(wheel, time_point::max()), ints{6});
            ASSERT_EQ(audit(wheel), "");
        }
    }
}

TEST(wheel_levels, past_and_far_deadlines_mixed_never_move_the_clock_back) {
    int_wheel wheel(wheel_at(at_ns(1'000'000'000)));
    time_point highest = wheel.now();
    random_source random(process_seed());
    for (int i = 0; i < 20'000; ++i) {
        const time_point now = later(highest, random.between(-5'000'000, 1'000'000));
        wheel.arm(random.one_in(2) ? later(highest, -random.between(0, 2'000'000'000))
                                   : later(highest, random.between(1, 10 * year_ns)),
                  i);
        fire(wheel, now);
        highest = std::max(highest, now);
        ASSERT_EQ(wheel.now(), highest) << replay_hint();
        ASSERT_TRUE(!wheel.next_deadline() || *wheel.next_deadline() > highest) << replay_hint();
    }
}

TEST(wheel_levels, nothing_fires_one_nanosecond_before_its_deadline) {
    for (const std::int64_t resolution_ns : resolutions_ns) {
        for (const std::int64_t start_ns : {std::int64_t{0}, std::int64_t{1}, resolution_ns - 1, resolution_ns,
                                            3 * resolution_ns - 1, std::int64_t{-1}}) {
            int_wheel wheel(wheel_at(at_ns(start_ns), resolution_ns));
            wheel.arm(at_ns(start_ns + 1), 1);
            wheel.arm(at_ns(start_ns + 2), 2);
            ASSERT_EQ(fire(wheel, at_ns(start_ns)), ints{});
            ASSERT_EQ(fire(wheel, at_ns(start_ns + 1)), ints{1});
            ASSERT_EQ(fire(wheel, at_ns(start_ns + 1)), ints{});
            ASSERT_EQ(fire(wheel, at_ns(start_ns + 2)), ints{2});
        }
    }
}

TEST(wheel_levels, a_resolution_that_is_no_power_of_two_changes_neither_order_nor_deadlines) {
    for (const std::int64_t resolution_ns : {3, 1'000, 999'999, 1'000'000'000}) {
        wheel_duel<> duel(wheel_at(at_ns(42), resolution_ns), wheel_duel<>::audit::after_each_operation);
        random_source random(static_cast<std::uint64_t>(resolution_ns));
        for (int i = 0; i < 300; ++i) {
            duel.arm(later(at_ns(42), random.between(0, 4'000'000)));
        }
        for (std::int64_t now_ns = 0; now_ns < 5'000'000; now_ns += 9'999) {
            duel.advance(at_ns(now_ns));
        }
        EXPECT_EQ(duel.live().size(), 0U);
    }
}

// A wheel that walks through the gap tick by tick would need 3 * 10^18 steps: it would not return in our lifetime.
TEST(wheel_levels, a_gap_of_a_hundred_years_is_skipped_at_once_even_with_ticks_of_a_nanosecond) {
    int_wheel wheel(wheel_at(at_ns(7), 1));
    for (int i = 0; i < 1'000; ++i) {
        const time_point deadline = later(wheel.now(), i % 2 == 0 ? 100'000'000 : 3'600'000'000'000);
        wheel.arm(deadline, i);
        const auto before = wheel.stats().cascaded;
        ASSERT_EQ(fire(wheel, deadline), ints{i});
        ASSERT_LE(wheel.stats().cascaded - before, 8U) << "a ticket moves at most once for each level";
    }
    const time_point far = later(wheel.now(), 100 * year_ns);
    wheel.arm(far, -1);
    ASSERT_EQ(fire(wheel, later(far, -1)), ints{});
    ASSERT_EQ(fire(wheel, far), ints{-1});
    ASSERT_EQ(fire(wheel, time_point::max()), ints{});
}

TEST(wheel_levels, next_deadline_of_a_near_timer_stays_exact_when_a_far_one_is_cancelled_or_moved) {
    timer_wheel<int> wheel(wheel_at(at_ns(0)));
    const time_point near = at_ns(1'000'000);
    wheel.arm(near, 1);
    const timer_id cancelled = wheel.arm(at_ns(3'600'000'000'000), 2);
    const timer_id moved = wheel.arm(at_ns(7'200'000'000'000), 3);
    EXPECT_EQ(wheel.next_deadline(), near);
    wheel.cancel(cancelled);
    EXPECT_EQ(wheel.next_deadline(), near);
    wheel.postpone(moved, at_ns(5'000'000'000'000));
    EXPECT_EQ(wheel.next_deadline(), near);
    wheel.postpone(moved, at_ns(500'000));
    EXPECT_EQ(wheel.next_deadline(), at_ns(500'000));
}

}  // namespace
}  // namespace chime::test
