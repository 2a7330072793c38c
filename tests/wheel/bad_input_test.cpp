// SPDX-License-Identifier: MIT
//
// Input that makes no sense or comes at a bad moment: each has an answer, and nothing else is disturbed.

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "support/drive.hpp"
#include "support/virtual_time.hpp"

namespace chime::test {
namespace {

using int_wheel = timer_wheel<int>;
using ints = std::vector<int>;
constexpr std::int64_t second_ns = 1'000'000'000;

struct refused_by_on_due : std::runtime_error {
    refused_by_on_due() : std::runtime_error("on_due does not want this one") {}
};

// ---- times

TEST(wheel_times, a_deadline_in_the_past_is_due_now_and_keeps_its_place_in_the_order) {
    int_wheel wheel(wheel_at(at_ns(second_ns)));
    wheel.arm(at_ns(second_ns), 3);
    wheel.arm(at_ns(5), 2);
    wheel.arm(at_ns(-5), 1);
    EXPECT_EQ(wheel.next_deadline(), at_ns(-5));
    EXPECT_EQ(fire(wheel, at_ns(second_ns)), (ints{1, 2, 3}));
}

TEST(wheel_times, the_earliest_deadline_there_is_is_due_now) {
    int_wheel wheel(wheel_at(at_ns(second_ns)));
    const timer_id id = wheel.arm(time_point::min(), 1);
    EXPECT_EQ(wheel.deadline_of(id), time_point::min());
    EXPECT_EQ(wheel.next_deadline(), time_point::min());
    EXPECT_EQ(fire(wheel, time_point::min()), ints{1}) << "the wheel's own now counts";
}

TEST(wheel_times, a_timer_for_never_waits_is_seen_and_can_be_cancelled) {
    int_wheel wheel(wheel_at(at_ns(0)));
    const timer_id id = wheel.arm(never, 1);
    EXPECT_EQ(wheel.next_deadline(), never);
    EXPECT_EQ(fire(wheel, at_ns(250 * year_ns)), ints{});
    EXPECT_EQ(wheel.deadline_of(id), never);
    EXPECT_EQ(wheel.cancel(id), 1);
    EXPECT_EQ(wheel.next_deadline(), std::nullopt);
}

TEST(wheel_times, postponing_to_never_and_to_the_earliest_time_works) {
    int_wheel wheel(wheel_at(at_ns(0)));
    const timer_id id = wheel.arm(at_ns(10), 1);
    EXPECT_TRUE(wheel.postpone(id, never));
    EXPECT_EQ(fire(wheel, at_ns(second_ns)), ints{});
    EXPECT_TRUE(wheel.postpone(id, time_point::min()));
    EXPECT_EQ(wheel.deadline_of(id), time_point::min());
    EXPECT_EQ(fire(wheel, at_ns(second_ns)), ints{1});
}

TEST(wheel_times, advance_going_back_counts_as_the_latest_now) {
    int_wheel wheel(wheel_at(at_ns(0)));
    fire(wheel, at_ns(second_ns));
    wheel.arm(at_ns(second_ns - 10), 1);
    wheel.arm(at_ns(second_ns + 10), 2);
    EXPECT_EQ(fire(wheel, at_ns(5)), ints{1});
    EXPECT_EQ(wheel.now(), at_ns(second_ns));
    EXPECT_EQ(fire(wheel, time_point::min()), ints{});
    EXPECT_EQ(wheel.now(), at_ns(second_ns));
    EXPECT_EQ(fire(wheel, at_ns(second_ns + 10)), ints{2});
}

TEST(wheel_times, a_wheel_that_starts_at_either_end_of_time_works) {
    for (const time_point start : {time_point::min(), time_point::max()}) {
        int_wheel wheel(wheel_at(start));
        EXPECT_EQ(wheel.now(), start);
        wheel.arm(time_point::max(), 3);
        wheel.arm(at_ns(0), 2);
        wheel.arm(time_point::min(), 1);
        EXPECT_EQ(audit(wheel), "");
        EXPECT_EQ(fire(wheel, start).size(), start == time_point::min() ? 1U : 3U);
        fire(wheel, time_point::max());
        EXPECT_TRUE(wheel.empty());
    }
}

// ---- on_due that interferes

TEST(wheel_on_due, may_arm_and_the_new_one_waits_for_the_next_call) {
    int_wheel wheel(wheel_at(at_ns(0)));
    wheel.arm(at_ns(1), 1);
    EXPECT_EQ(wheel.advance(at_ns(10), [&](int) { wheel.arm(at_ns(0), 2); }), 1U);
    EXPECT_EQ(wheel.next_deadline(), at_ns(0));
    EXPECT_EQ(fire(wheel, at_ns(10)), ints{2});
}

TEST(wheel_on_due, may_arm_so_many_that_everything_has_to_grow) {
    int_wheel wheel(wheel_at(at_ns(0)));
    for (int i = 0; i < 10; ++i) {
        wheel.arm(at_ns(i), i);
    }
    ints fired;
    wheel.advance(at_ns(10), [&](int value) {
        fired.push_back(value);
        for (int i = 0; i < 2'000; ++i) {
            wheel.arm(at_ns(5 + i % 3), 100 + i);
        }
    });
    EXPECT_EQ(fired, (ints{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    EXPECT_EQ(audit(wheel), "");
    EXPECT_EQ(fire(wheel, at_ns(10)).size(), 20'000U);
}

TEST(wheel_on_due, may_cancel_what_is_due_and_what_is_not) {
    int_wheel wheel(wheel_at(at_ns(0)));
    wheel.arm(at_ns(1), 1);
    const timer_id due = wheel.arm(at_ns(2), 2);
    wheel.arm(at_ns(3), 3);
    const timer_id later_on = wheel.arm(at_ns(second_ns), 4);
    ints fired;
    wheel.advance(at_ns(10), [&](int value) {
        fired.push_back(value);
        if (value == 1) {
            EXPECT_EQ(wheel.cancel(due), 2);
            EXPECT_EQ(wheel.cancel(later_on), 4);
        }
    });
    EXPECT_EQ(fired, (ints{1, 3}));
    EXPECT_TRUE(wheel.empty());
    EXPECT_EQ(audit(wheel), "");
}

TEST(wheel_on_due, may_postpone_what_is_due_out_of_the_call) {
    int_wheel wheel(wheel_at(at_ns(0)));
    wheel.arm(at_ns(1), 1);
    const timer_id due = wheel.arm(at_ns(2), 2);
    wheel.advance(at_ns(10), [&](int value) {
        ASSERT_EQ(value, 1);
        EXPECT_TRUE(wheel.postpone(due, at_ns(second_ns)));
    });
    EXPECT_EQ(wheel.deadline_of(due), at_ns(second_ns));
    EXPECT_EQ(fire(wheel, at_ns(second_ns - 1)), ints{});
    EXPECT_EQ(fire(wheel, at_ns(second_ns)), ints{2});
}

TEST(wheel_on_due, may_clear_and_nothing_more_fires) {
    int_wheel wheel(wheel_at(at_ns(0)));
    for (int i = 0; i < 1'000; ++i) {
        wheel.arm(at_ns(i * 1'000), i);
    }
    const std::size_t fired = wheel.advance(at_ns(second_ns), [&](int value) {
        if (value == 5) {
            wheel.clear();
            EXPECT_TRUE(wheel.empty());
            wheel.arm(at_ns(0), 7);
        }
    });
    EXPECT_EQ(fired, 6U);
    EXPECT_EQ(wheel.stats().cancelled, 994U);
    EXPECT_EQ(audit(wheel), "");
    EXPECT_EQ(fire(wheel, at_ns(second_ns)), ints{7});
}

TEST(wheel_on_due, that_advances_gets_nothing_and_changes_nothing) {
    int_wheel wheel(wheel_at(at_ns(0)));
    wheel.arm(at_ns(1), 1);
    wheel.arm(at_ns(2), 2);
    wheel.arm(at_ns(second_ns), 3);
    ints fired;
    wheel.advance(at_ns(10), [&](int value) {
        fired.push_back(value);
        EXPECT_EQ(wheel.advance(at_ns(2 * second_ns), [](int) { FAIL() << "fired inside on_due"; }), 0U);
        EXPECT_EQ(wheel.now(), at_ns(10));
    });
    EXPECT_EQ(fired, (ints{1, 2}));
    EXPECT_EQ(fire(wheel, at_ns(second_ns)), ints{3});
}

TEST(wheel_on_due, that_throws_has_fired_its_timer_and_the_others_stay_due) {
    int_wheel wheel(wheel_at(at_ns(0)));
    for (int i = 0; i < 10; ++i) {
        wheel.arm(at_ns(100 + i), i);
    }
    ints fired;
    const auto picky = [&](int value) {
        fired.push_back(value);
        if (value % 3 == 1) {
            throw refused_by_on_due();
        }
    };
    for (int attempts = 0; attempts < 3; ++attempts) {
        EXPECT_THROW(wheel.advance(at_ns(1'000), picky), refused_by_on_due);
        EXPECT_EQ(audit(wheel), "");
        EXPECT_EQ(wheel.stats().fired, fired.size());
        EXPECT_EQ(wheel.stats().armed, wheel.stats().fired + wheel.size());
        EXPECT_LE(*wheel.next_deadline(), at_ns(1'000));
    }
    EXPECT_EQ(wheel.advance(at_ns(1'000), picky), 2U);
    EXPECT_EQ(fired, (ints{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(wheel_on_due, that_throws_after_arming_leaves_the_new_one_for_the_next_call) {
    int_wheel wheel(wheel_at(at_ns(0)));
    wheel.arm(at_ns(1), 1);
    EXPECT_THROW(wheel.advance(at_ns(10),
                               [&](int) {
                                   wheel.arm(at_ns(2), 2);
                                   throw refused_by_on_due();
                               }),
                 refused_by_on_due);
    EXPECT_EQ(wheel.size(), 1U);
    EXPECT_EQ(wheel.next_deadline(), at_ns(2));
    EXPECT_EQ(fire(wheel, at_ns(10)), ints{2});
}

// ---- configurations

/// The message names the field and says something about what would be right.
void expect_refused(const wheel_config& config, const std::string& field) {
    const std::string complaint = config.validate();
    EXPECT_NE(complaint.find(field), std::string::npos) << "complaint: '" << complaint << "'";
    EXPECT_GT(complaint.size(), field.size() + 10) << "complaint: '" << complaint << "'";
    try {
        int_wheel wheel(config);
        ADD_FAILURE() << "accepted a bad " << field;
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::invalid_argument);
        EXPECT_NE(std::string(e.what()).find(field), std::string::npos) << e.what();
    }
}

TEST(wheel_config, that_is_untouched_is_usable) {
    EXPECT_EQ(wheel_config{}.validate(), "");
    int_wheel wheel;
    EXPECT_EQ(wheel.now(), time_point{});
    EXPECT_TRUE(wheel.empty());
}

TEST(wheel_config, with_a_resolution_out_of_range_is_refused) {
    for (const std::int64_t bad_ns :
         {std::int64_t{0}, std::int64_t{-1}, (std::int64_t{1} << 32) + 1, std::numeric_limits<std::int64_t>::max(),
          std::numeric_limits<std::int64_t>::min()}) {
        wheel_config config;
        config.resolution = nanoseconds(bad_ns);
        expect_refused(config, "resolution");
    }
    for (const std::int64_t good_ns : {std::int64_t{1}, std::int64_t{1} << 32}) {
        wheel_config config;
        config.resolution = nanoseconds(good_ns);
        EXPECT_EQ(config.validate(), "");
    }
}

TEST(wheel_config, with_a_cap_out_of_range_is_refused) {
    for (const std::size_t bad :
         {std::size_t{0}, (std::size_t{1} << 31) + 1, std::numeric_limits<std::size_t>::max()}) {
        wheel_config config;
        config.max_timers = bad;
        expect_refused(config, "max_timers");
    }
}

TEST(wheel_config, with_too_little_slack_is_refused) {
    for (const std::size_t bad : {std::size_t{0}, std::size_t{63}}) {
        wheel_config config;
        config.stale_slack = bad;
        expect_refused(config, "stale_slack");
    }
}

TEST(wheel_config, with_a_budget_for_scrubbing_that_bounds_nothing_is_refused) {
    for (const std::size_t bad : {std::size_t{0}, std::size_t{31}, std::numeric_limits<std::size_t>::max()}) {
        wheel_config config;
        config.scrub_budget = bad;
        expect_refused(config, "scrub_budget");
    }
}

TEST(wheel_config, with_more_slack_than_can_be_counted_is_refused) {
    wheel_config config;
    config.stale_slack = std::numeric_limits<std::size_t>::max();
    expect_refused(config, "stale_slack");
}

// ---- the cap

TEST(wheel_cap, arm_throws_and_try_arm_refuses_without_touching_the_value) {
    wheel_config config = wheel_at(at_ns(0));
    config.max_timers = 3;
    timer_wheel<std::string> wheel(config);
    const timer_id first = wheel.arm(at_ns(1), "a");
    wheel.arm(at_ns(2), "b");
    wheel.arm(at_ns(3), "c");
    try {
        wheel.arm(at_ns(4), "d");
        ADD_FAILURE() << "armed beyond the cap";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::resource_unavailable_try_again);
    }
    std::string kept(50, 'k');
    EXPECT_EQ(wheel.try_arm(at_ns(4), std::move(kept)), std::nullopt);
    EXPECT_EQ(kept,
              std::string(50, 'k'));  // NOLINT(bugprone-use-after-move): that it was not moved from is the promise
    EXPECT_EQ(wheel.size(), 3U);
    EXPECT_EQ(wheel.stats().armed, 3U);

    EXPECT_EQ(wheel.cancel(first), "a");
    EXPECT_TRUE(wheel.try_arm(at_ns(4), std::move(kept)).has_value());
    EXPECT_THROW(wheel.arm(at_ns(5), "e"), std::system_error);
    EXPECT_EQ(fire(wheel, at_ns(2)).size(), 1U);
    EXPECT_NO_THROW(wheel.arm(at_ns(5), "e"));
    EXPECT_EQ(audit(wheel), "");
    EXPECT_EQ(fire(wheel, at_ns(10)).size(), 3U);
}

TEST(wheel_cap, of_one_works) {
    wheel_config config = wheel_at(at_ns(0));
    config.max_timers = 1;
    int_wheel wheel(config);
    for (int i = 0; i < 1'000; ++i) {
        const timer_id id = wheel.arm(at_ns(i), i);
        const int copied = i;
        EXPECT_EQ(wheel.try_arm(at_ns(i), copied), std::nullopt);
        if (i % 2 == 0) {
            EXPECT_EQ(wheel.cancel(id), i);
        } else {
            EXPECT_EQ(fire(wheel, at_ns(i)), ints{i});
        }
    }
}

TEST(wheel_cap, is_free_again_inside_on_due_for_the_one_that_fires) {
    wheel_config config = wheel_at(at_ns(0));
    config.max_timers = 1;
    int_wheel wheel(config);
    wheel.arm(at_ns(1), 1);
    EXPECT_EQ(wheel.advance(at_ns(1), [&](int) { EXPECT_TRUE(wheel.try_arm(at_ns(2), 2).has_value()); }), 1U);
    EXPECT_EQ(fire(wheel, at_ns(2)), ints{2});
}

}  // namespace
}  // namespace chime::test
