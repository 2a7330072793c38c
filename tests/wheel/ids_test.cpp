// SPDX-License-Identifier: MIT
//
// Ids that name no timer, or no longer, or not here: harmless, always.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "support/drive.hpp"
#include "support/random.hpp"
#include "support/random_run.hpp"
#include "support/virtual_time.hpp"
#include "support/wheel_duel.hpp"

namespace chime::test {
namespace {

using int_wheel = timer_wheel<int>;
constexpr std::int64_t second_ns = 1'000'000'000;

/// All three operations answer "no" and the wheel does not notice.
template <class Wheel>
void expect_refused(Wheel& wheel, timer_id id) {
    const wheel_stats before = wheel.stats();
    EXPECT_FALSE(wheel.cancel(id).has_value());
    EXPECT_FALSE(wheel.postpone(id, at_ns(5)));
    EXPECT_FALSE(wheel.postpone(id, never));
    EXPECT_EQ(wheel.deadline_of(id), std::nullopt);
    const wheel_stats after = wheel.stats();
    EXPECT_EQ(after.pending, before.pending);
    EXPECT_EQ(after.cancelled, before.cancelled);
    EXPECT_EQ(after.postponed, before.postponed);
    EXPECT_EQ(audit(wheel), "");
}

TEST(timer_id, is_plain_data_and_a_value_initialised_one_names_no_timer) {
    static_assert(std::is_trivially_copyable_v<timer_id>);
    static_assert(sizeof(timer_id) == 12);
    EXPECT_FALSE(timer_id{});
    int_wheel wheel;
    expect_refused(wheel, timer_id{});
    const timer_id id = wheel.arm(at_ns(1), 1);
    EXPECT_TRUE(id);
    EXPECT_NE(id, timer_id{});
    expect_refused(wheel, timer_id{});
}

TEST(timer_id, is_stale_after_firing_and_after_cancelling) {
    int_wheel wheel(wheel_at(at_ns(0)));
    const timer_id fired = wheel.arm(at_ns(1), 1);
    const timer_id cancelled = wheel.arm(at_ns(2), 2);
    const timer_id alive = wheel.arm(at_ns(3), 3);
    wheel.cancel(cancelled);
    fire(wheel, at_ns(1));
    expect_refused(wheel, fired);
    expect_refused(wheel, cancelled);
    EXPECT_EQ(wheel.deadline_of(alive), at_ns(3));
    wheel.clear();
    expect_refused(wheel, alive);
}

TEST(timer_id, stays_stale_however_often_its_place_is_used_again) {
    int_wheel wheel(wheel_at(at_ns(0)));
    std::vector<timer_id> old;
    for (int i = 0; i < 2'000; ++i) {
        const timer_id id = wheel.arm(at_ns(second_ns), i);
        for (const timer_id stale : old) {
            ASSERT_NE(stale, id);
            ASSERT_FALSE(wheel.deadline_of(stale).has_value());
        }
        old.push_back(id);
        ASSERT_EQ(wheel.cancel(id), i);
    }
    wheel.arm(at_ns(second_ns), 0);
    for (const timer_id stale : old) {
        expect_refused(wheel, stale);
    }
    EXPECT_EQ(wheel.size(), 1U);
}

TEST(timer_id, can_be_a_key) {
    int_wheel wheel;
    std::unordered_map<timer_id, int> names;
    for (int number = 0; number < 1000; ++number) names[wheel.arm(at_ns(number), number)] = number;
    ASSERT_EQ(names.size(), 1000U);
    std::set<std::size_t> hashes;
    for (const auto& [id, number] : names) {
        EXPECT_EQ(wheel.cancel(id), number);
        hashes.insert(std::hash<timer_id>{}(id));
    }
    EXPECT_GT(hashes.size(), 990U) << "and is spread well";
}

TEST(timer_id, used_twice_works_once) {
    int_wheel wheel(wheel_at(at_ns(0)));
    const timer_id id = wheel.arm(at_ns(second_ns), 7);
    const timer_id copy = id;
    EXPECT_EQ(wheel.cancel(id), 7);
    expect_refused(wheel, id);
    expect_refused(wheel, copy);
}

TEST(timer_id, of_the_firing_timer_is_already_gone_inside_on_due) {
    int_wheel wheel(wheel_at(at_ns(0)));
    const timer_id id = wheel.arm(at_ns(1), 1);
    int calls = 0;
    wheel.advance(at_ns(1), [&](int) {
        ++calls;
        EXPECT_FALSE(wheel.cancel(id).has_value());
        EXPECT_FALSE(wheel.postpone(id, at_ns(100)));
        EXPECT_EQ(wheel.deadline_of(id), std::nullopt);
        EXPECT_EQ(wheel.size(), 0U);
    });
    EXPECT_EQ(calls, 1);
    EXPECT_TRUE(wheel.empty());
}

TEST(timer_id, forged_near_a_real_one_names_nothing) {
    int_wheel wheel(wheel_at(at_ns(0)));
    std::vector<timer_id> real;
    for (int i = 0; i < 100; ++i) {
        real.push_back(wheel.arm(at_ns(second_ns + i), i));
    }
    for (int i = 0; i < 100; i += 3) {  // some records are free, some in their second life
        wheel.cancel(real[static_cast<std::size_t>(i)]);
        if (i % 2 == 0) {
            real.push_back(wheel.arm(at_ns(second_ns), i));
        }
    }
    const std::size_t pending = wheel.size();
    const std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> given = [&] {
        std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> all;
        for (const timer_id id : real) {
            all.emplace(id.index, id.generation, id.wheel);
        }
        return all;
    }();
    const auto refuse = [&](timer_id forged) {
        if (!given.contains({forged.index, forged.generation, forged.wheel})) {
            expect_refused(wheel, forged);
        }
    };
    for (const timer_id id : real) {
        for (const int step : {-2, -1, 1, 2, 3, 4}) {
            const auto by = static_cast<std::uint32_t>(step);
            refuse({id.index, id.generation + by, id.wheel});
            refuse({id.index, id.generation, id.wheel + by});
        }
        for (unsigned bit = 0; bit < 32; ++bit) {
            refuse({id.index, id.generation ^ (1U << bit), id.wheel});
            refuse({id.index, id.generation, id.wheel ^ (1U << bit)});
            if (bit > 12) {  // below, it may be a neighbour's index
                refuse({id.index ^ (1U << bit), id.generation, id.wheel});
            }
        }
        refuse({0xFFFFFFFFU, id.generation, id.wheel});
        refuse({0x80000000U, id.generation, id.wheel});
        refuse({0x7FFFFFFFU, id.generation, id.wheel});
        refuse({id.index, 0, id.wheel});
        refuse({id.index, id.generation, 0});
        ASSERT_FALSE(HasFailure());
    }
    EXPECT_EQ(wheel.size(), pending);
}

TEST(timer_id, of_random_bits_names_nothing) {
    random_source random(process_seed());
    int_wheel wheel(wheel_at(at_ns(0)));
    for (int i = 0; i < 1'000; ++i) {
        wheel.arm(at_ns(second_ns), i);
    }
    const std::uint32_t own = wheel.arm(at_ns(second_ns), 0).wheel;
    for (int i = 0; i < 20'000; ++i) {
        const auto bits = random.next();
        // The generation is one that the first thousand timers cannot have, or the forger would have guessed right.
        const timer_id forged{static_cast<std::uint32_t>(bits) >> random.below(32),
                              static_cast<std::uint32_t>(bits >> 32) | 0x1000U,
                              random.one_in(2) ? own : static_cast<std::uint32_t>(random.next())};
        wheel.prefetch(forged);  // Must not even be noticed.
        ASSERT_FALSE(wheel.cancel(forged).has_value()) << replay_hint();
        ASSERT_FALSE(wheel.postpone(forged, at_ns(1))) << replay_hint();
        ASSERT_FALSE(wheel.deadline_of(forged).has_value()) << replay_hint();
    }
    EXPECT_EQ(wheel.size(), 1'001U);
}

TEST(timer_id, of_the_next_life_of_a_free_record_names_nothing_yet) {
    int_wheel wheel(wheel_at(at_ns(0)));
    const timer_id first = wheel.arm(at_ns(second_ns), 1);
    wheel.cancel(first);
    const timer_id second = wheel.arm(at_ns(second_ns), 2);
    wheel.cancel(second);
    // Whatever the step between two lives is, the next id can be foreseen. It must not work before it is given.
    for (std::uint32_t step = 1; step < 8; ++step) {
        expect_refused(wheel, {second.index, second.generation + step, second.wheel});
    }
    EXPECT_TRUE(wheel.empty());
}

TEST(timer_id, of_another_wheel_with_the_same_index_and_generation_names_nothing_here) {
    int_wheel here(wheel_at(at_ns(0)));
    int_wheel there(wheel_at(at_ns(0)));
    const timer_id mine = here.arm(at_ns(second_ns), 1);
    const timer_id foreign = there.arm(at_ns(second_ns), 2);
    ASSERT_EQ(mine.index, foreign.index);
    ASSERT_EQ(mine.generation, foreign.generation);
    EXPECT_NE(mine, foreign);
    expect_refused(here, foreign);
    expect_refused(there, mine);
    EXPECT_EQ(here.cancel(mine), 1);
    EXPECT_EQ(there.cancel(foreign), 2);
}

TEST(timer_id, of_a_wheel_that_is_gone_names_nothing_in_its_successor) {
    std::optional<int_wheel> slot;
    slot.emplace(wheel_at(at_ns(0)));
    const timer_id old = slot->arm(at_ns(second_ns), 1);
    slot.emplace(wheel_at(at_ns(0)));  // the same address, very likely the same memory
    slot->arm(at_ns(second_ns), 2);
    expect_refused(*slot, old);
    EXPECT_EQ(slot->size(), 1U);
}

TEST(four_bit_generations, are_used_up_and_no_id_is_given_twice) {
    timer_wheel<int, 4> wheel(wheel_at(at_ns(0)));
    std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> given;
    std::vector<timer_id> live;
    random_source random(process_seed());
    for (int i = 0; i < 20'000; ++i) {
        if (live.size() < 20 || random.one_in(3)) {
            const timer_id id = wheel.arm(later(wheel.now(), random.between(0, 100'000)), i);
            ASSERT_TRUE(given.emplace(id.index, id.generation, id.wheel).second) << "an id came back";
            live.push_back(id);
        } else if (random.one_in(4)) {
            wheel.advance(later(wheel.now(), 1'000), [](int) {});
        } else {
            const std::size_t chosen = random.below(live.size());
            wheel.cancel(live[chosen]);
            live.erase(live.begin() + static_cast<std::ptrdiff_t>(chosen));
        }
    }
    // An identity goes with fifteen timers, and whoever has armed so many gets another one.
    std::set<std::uint32_t> identities;
    for (const auto& [index, generation, identity] : given) {
        identities.insert(identity);
        EXPECT_GT(generation, 0U);
        EXPECT_LT(generation, 16U);
    }
    EXPECT_GE(identities.size() * 15, given.size());
    EXPECT_EQ(wheel.stats().armed, given.size());
    EXPECT_EQ(audit(wheel), "");
}

TEST(four_bit_generations, an_id_of_an_identity_that_is_used_up_stays_stale) {
    timer_wheel<int, 4> wheel(wheel_at(at_ns(0)));
    const timer_id first = wheel.arm(at_ns(second_ns), 0);
    wheel.cancel(first);
    for (int i = 0; i < 1'000; ++i) {
        const timer_id id = wheel.arm(at_ns(second_ns), i);
        ASSERT_EQ(id.index, first.index);
        ASSERT_NE(id, first);
        ASSERT_FALSE(wheel.deadline_of(first).has_value());
        ASSERT_EQ(wheel.cancel(id), i);
    }
    expect_refused(wheel, first);
}

TEST(four_bit_generations, count_what_is_armed_under_every_identity) {
    wheel_config config = wheel_at(at_ns(0));
    config.max_timers = 50;
    timer_wheel<int, 4> wheel(config);
    std::vector<timer_id> live;
    for (int i = 0; i < 50; ++i) {
        live.push_back(wheel.arm(at_ns(second_ns), i));
        ASSERT_EQ(wheel.size(), live.size());
    }
    EXPECT_FALSE(wheel.try_arm(at_ns(second_ns), 50).has_value());
    for (int i = 50; i < 1'000; ++i) {
        ASSERT_EQ(wheel.cancel(live[static_cast<std::size_t>(i % 50)]), i - 50);
        live[static_cast<std::size_t>(i % 50)] = wheel.arm(at_ns(second_ns), i);
        ASSERT_EQ(wheel.size(), 50U);
        ASSERT_FALSE(wheel.try_arm(at_ns(second_ns), 0).has_value());
    }
    EXPECT_EQ(wheel.stats().armed, 1'000U);
    EXPECT_EQ(wheel.stats().cancelled, 950U);
    std::vector<int> fired;
    wheel.advance(at_ns(second_ns), [&](int value) { fired.push_back(value); });
    ASSERT_EQ(fired.size(), 50U);
    EXPECT_TRUE(std::ranges::is_sorted(fired)) << "numbers of a later identity are greater";
}

TEST(four_bit_generations, of_two_wheels_never_meet) {
    timer_wheel<int, 4> here(wheel_at(at_ns(0)));
    timer_wheel<int, 4> there(wheel_at(at_ns(0)));
    std::vector<timer_id> foreign;
    for (int i = 0; i < 200; ++i) {
        here.arm(at_ns(second_ns), i);
        foreign.push_back(there.arm(at_ns(second_ns), i));
    }
    for (const timer_id id : foreign) expect_refused(here, id);
    EXPECT_EQ(here.size(), 200U);
}

}  // namespace
}  // namespace chime::test
