// SPDX-License-Identifier: MIT
//
// Where storage comes from, and what happens when there is none.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "support/drive.hpp"
#include "support/failing_memory.hpp"
#include "support/random.hpp"
#include "support/virtual_time.hpp"
#include "support/wheel_duel.hpp"

namespace chime::test {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::int64_t hour_ns = 3'600 * second_ns;
using duel_type = wheel_duel<>;

/// Runs a whole life of a wheel whose memory fails at the i-th allocation. After the failure the wheel must be as it
/// was, the same call must succeed once there is memory again, and the model must agree all the way.
class life_with_one_failure {
 public:
    explicit life_with_one_failure(std::uint64_t allocations_before) {
        memory_.fail_after(allocations_before);
        config_ = wheel_at(at_ns(0));
        config_.memory = &memory_;
    }

    /// True: the memory never failed, so all sites have been tried.
    bool live() {
        std::optional<duel_type> duel;
        attempt(duel, [&] { duel.emplace(config_, duel_type::audit::off); });
        random_source random(17);
        // Everywhere at once: every level of the wheel, the current tick, the past.
        for (int i = 0; i < 3'000; ++i) {
            attempt(duel, [&] { duel->arm(at_ns(random.between(-100, std::int64_t{1} << (4 + random.below(58))))); });
        }
        for (int i = 0; i < 3'000; ++i) {
            const std::uint64_t number = duel->live()[random.below(duel->live().size())];
            const time_point deadline = at_ns(random.between(0, hour_ns >> random.below(40)));
            attempt(duel, [&] { duel->postpone(number, deadline); });
            if (i % 4 == 0) {
                attempt(duel, [&] { duel->cancel(duel->live()[random.below(duel->live().size())]); });
            }
        }
        for (std::int64_t now_ns = 1; now_ns < 2 * hour_ns; now_ns *= 3) {
            attempt(duel, [&] { duel->drain(at_ns(now_ns), 7); });
            for (int i = 0; i < 100; ++i) {
                attempt(duel, [&] { duel->arm(at_ns(now_ns + random.between(0, 1 << 18))); });
            }
            attempt(duel, [&] {
                duel->advance(at_ns(now_ns + 1'000), 50, [&](duel_type& inside) { inside.arm(at_ns(now_ns + 5)); });
            });
        }
        attempt(duel, [&] { duel->drain(time_point::max(), 100); });
        EXPECT_EQ(duel->live().size(), 0U);
        duel.reset();
        EXPECT_EQ(memory_.lent_bytes(), 0U) << "storage was not given back";
        return memory_.refusals() == 0;
    }

 private:
    template <class Action>
    void attempt(std::optional<duel_type>& duel, const Action& action) {
        try {
            action();
        } catch (const std::bad_alloc&) {
            if (duel) {
                duel->agree("no memory");
                EXPECT_EQ(audit(duel->wheel()), "");
            }
            memory_.fail_after(failing_memory::unlimited);
            action();
        }
    }

    failing_memory memory_;
    wheel_config config_;
};

TEST(wheel_without_memory, is_as_it_was_before_whichever_allocation_failed) {
    std::uint64_t site = 0;
    for (; !life_with_one_failure(site).live(); ++site) {
        ASSERT_FALSE(HasFailure()) << "allocation " << site;
        ASSERT_LT(site, 5'000U) << "it never ends";
    }
    EXPECT_GT(site, 5U) << "the scenario is meant to make everything grow";
    std::cout << site << " allocations failed in turn\n";
}

TEST(wheel_without_memory, that_never_comes_back_still_cancels_fires_and_answers) {
    failing_memory memory;
    wheel_config config = wheel_at(at_ns(0));
    config.memory = &memory;
    duel_type duel(config, duel_type::audit::off);
    random_source random(process_seed());
    for (int i = 0; i < 20'000; ++i) {
        duel.arm(at_ns(random.between(0, second_ns)));
    }
    memory.fail_after(0);
    for (int i = 0; i < 10'000; ++i) {
        ASSERT_NO_THROW(duel.cancel(duel.live()[random.below(duel.live().size())]));
    }
    int refused = 0;
    for (int i = 0; i < 20'000; ++i) {
        try {
            duel.arm(at_ns(random.between(0, hour_ns)));
        } catch (const std::bad_alloc&) {
            ++refused;
            duel.agree("no memory");
        }
    }
    EXPECT_GT(refused, 0) << "twice as many timers cannot fit into the same memory";
    EXPECT_EQ(audit(duel.wheel()), "");
    // Firing may need memory for its sorted run. It says so, and nothing is lost.
    bool starved = false;
    try {
        duel.drain(at_ns(second_ns / 2), 100);
    } catch (const std::bad_alloc&) {
        starved = true;
        duel.agree("no memory");
        EXPECT_EQ(audit(duel.wheel()), "");
    }
    memory.fail_after(failing_memory::unlimited);
    duel.drain(at_ns(2 * hour_ns), 100);
    EXPECT_EQ(duel.live().size(), 0U);
    RecordProperty("starved", starved);
}

TEST(wheel_without_memory, refuses_to_be_built_and_leaks_nothing) {
    for (std::uint64_t allowed = 0; allowed < 100; ++allowed) {
        failing_memory memory;
        memory.fail_after(allowed);
        wheel_config config;
        config.memory = &memory;
        try {
            timer_wheel<int> wheel(config);
            wheel.arm(at_ns(1), 1);
            EXPECT_EQ(wheel.size(), 1U);
            return;
        } catch (const std::bad_alloc&) {
            EXPECT_EQ(memory.lent_bytes(), 0U);
        }
    }
    FAIL() << "a hundred allocations were not enough for one timer";
}

TEST(wheel_without_memory, try_arm_does_not_move_from_the_value) {
    failing_memory memory;
    wheel_config config = wheel_at(at_ns(0));
    config.memory = &memory;
    timer_wheel<std::string> wheel(config);
    memory.fail_after(0);
    std::string value(60, 'v');
    bool refused = false;
    for (int i = 0; i < 1'000'000 && !refused; ++i) {
        try {
            value.assign(60, 'v');
            static_cast<void>(wheel.try_arm(at_ns(i), std::move(value)));
        } catch (const std::bad_alloc&) {
            refused = true;
            EXPECT_EQ(value, std::string(60, 'v'));
            EXPECT_EQ(wheel.size(), static_cast<std::size_t>(i));
        }
    }
    EXPECT_TRUE(refused);
    EXPECT_EQ(audit(wheel), "");
}

TEST(wheel_memory, counts_what_the_resource_has_lent) {
    failing_memory memory;
    wheel_config config = wheel_at(at_ns(0));
    config.memory = &memory;
    {
        timer_wheel<std::uint64_t> wheel(config);
        for (std::uint64_t i = 0; i < 50'000; ++i) {
            wheel.arm(at_ns(static_cast<std::int64_t>(i * 1'000'003 % 1'000'000'000)), i);
            if (i % 1'000 == 0) {
                ASSERT_GE(wheel.memory(), memory.lent_bytes());
                ASSERT_LE(wheel.memory(), memory.lent_bytes() + sizeof(wheel) + 256);
            }
        }
        const std::size_t peak = wheel.memory();
        wheel.clear();
        EXPECT_LE(wheel.memory(), peak);
        EXPECT_GE(wheel.memory(), memory.lent_bytes());
    }
    EXPECT_EQ(memory.lent_bytes(), 0U);
    EXPECT_GT(memory.allocations(), 0U);
}

TEST(wheel_memory, is_given_back_with_timers_still_pending_and_after_an_exception) {
    failing_memory memory;
    wheel_config config = wheel_at(at_ns(0));
    config.memory = &memory;
    {
        timer_wheel<std::string> wheel(config);
        for (int i = 0; i < 1'000; ++i) {
            wheel.arm(at_ns(i), std::string(100, 'x'));
        }
        EXPECT_THROW(wheel.advance(at_ns(100), [](std::string&&) { throw 1; }), int);
    }
    EXPECT_EQ(memory.lent_bytes(), 0U);
}

}  // namespace
}  // namespace chime::test
