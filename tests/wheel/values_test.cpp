// SPDX-License-Identifier: MIT
//
// What may be carried by a timer: anything that moves, also if it moves badly.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/drive.hpp"
#include "support/failing_memory.hpp"
#include "support/random.hpp"
#include "support/virtual_time.hpp"

namespace chime::test {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

struct move_failed : std::runtime_error {
    move_failed() : std::runtime_error("a move failed") {}
};

/// Counts its living instances; its moves throw as soon as the set number of them has succeeded.
struct fragile {
    static inline int alive = 0;
    static inline int moves_left = 1'000'000'000;
    static void let_moves_pass(int count) { moves_left = count; }
    static void heal() { moves_left = 1'000'000'000; }

    explicit fragile(int n) : number(n) { ++alive; }
    fragile(fragile&& other) : number(other.number) {
        if (moves_left == 0) {
            throw move_failed();
        }
        --moves_left;
        ++alive;
    }
    fragile& operator=(fragile&& other) {
        if (moves_left == 0) {
            throw move_failed();
        }
        --moves_left;
        number = other.number;
        return *this;
    }
    ~fragile() { --alive; }
    int number;
};

class fragile_values : public ::testing::Test {
 protected:
    fragile_values() {
        fragile::heal();
        fragile::alive = 0;
        for (int i = 0; i < 20; ++i) {
            ids_.push_back(wheel_->arm(at_ns(100 + i), fragile(i)));
        }
    }
    ~fragile_values() override {
        fragile::heal();
        wheel_.reset();
        EXPECT_EQ(fragile::alive, 0) << "a value leaked or was destroyed twice";
    }
    void expect_untouched() {
        EXPECT_EQ(wheel_->size(), 20U);
        EXPECT_EQ(wheel_->stats().armed, 20U);
        EXPECT_EQ(wheel_->stats().cancelled, 0U);
        EXPECT_EQ(fragile::alive, 20);
        EXPECT_EQ(audit(*wheel_), "");
    }
    std::vector<int> fire_numbers(time_point now) {
        std::vector<int> numbers;
        wheel_->advance(now, [&](fragile&& value) { numbers.push_back(value.number); });
        return numbers;
    }

    std::unique_ptr<timer_wheel<fragile>> wheel_ = std::make_unique<timer_wheel<fragile>>(wheel_at(at_ns(0)));
    std::vector<timer_id> ids_;
};

TEST_F(fragile_values, a_move_that_throws_in_arm_arms_nothing) {
    bool passed = false;
    for (int moves = 0; !passed; ++moves) {
        ASSERT_LT(moves, 10);
        fragile::let_moves_pass(moves);
        try {
            const timer_id id = wheel_->arm(at_ns(50), fragile(99));
            passed = true;
            fragile::heal();
            EXPECT_GT(moves, 0) << "the value cannot have got there without a move";
            wheel_->cancel(id);
        } catch (const move_failed&) {
            fragile::heal();
            expect_untouched();
            EXPECT_EQ(wheel_->next_deadline(), at_ns(100));
        }
    }
    EXPECT_EQ(fire_numbers(at_ns(1'000)).size(), 20U);
}

TEST_F(fragile_values, a_move_that_throws_in_try_arm_arms_nothing) {
    fragile value(99);
    fragile::let_moves_pass(0);
    EXPECT_THROW(static_cast<void>(wheel_->try_arm(at_ns(50), std::move(value))), move_failed);
    fragile::heal();
    EXPECT_EQ(wheel_->size(), 20U);
    EXPECT_EQ(wheel_->next_deadline(), at_ns(100));
    EXPECT_EQ(audit(*wheel_), "");
    const auto id = wheel_->try_arm(at_ns(50), std::move(value));
    ASSERT_TRUE(id.has_value());
    EXPECT_EQ(fire_numbers(at_ns(50)), std::vector<int>{99});
}

TEST_F(fragile_values, a_move_that_throws_in_cancel_leaves_the_timer_armed) {
    fragile::let_moves_pass(0);
    EXPECT_THROW(wheel_->cancel(ids_[7]), move_failed);
    fragile::heal();
    expect_untouched();
    EXPECT_EQ(wheel_->deadline_of(ids_[7]), at_ns(107));
    const auto value = wheel_->cancel(ids_[7]);
    ASSERT_TRUE(value.has_value());
    EXPECT_EQ(value->number, 7);
    EXPECT_EQ(fire_numbers(at_ns(1'000)).size(), 19U);
}

TEST_F(fragile_values, a_move_that_throws_while_firing_disturbs_no_other_timer) {
    std::vector<int> fired;
    int failures = 0;
    fragile::let_moves_pass(0);
    for (int attempts = 0; attempts < 40 && !wheel_->empty(); ++attempts) {
        try {
            wheel_->advance(at_ns(1'000), [&](fragile&& value) { fired.push_back(value.number); });
        } catch (const move_failed&) {
            ++failures;
            fragile::heal();
        }
        EXPECT_EQ(audit(*wheel_), "");
        const wheel_stats stats = wheel_->stats();
        EXPECT_EQ(stats.armed, stats.fired + stats.cancelled + stats.pending);
    }
    // Whether firing moves the value at all is the wheel's own business; nothing may be lost silently.
    EXPECT_TRUE(wheel_->empty());
    EXPECT_GE(static_cast<int>(fired.size()) + failures, 20);
    EXPECT_TRUE(std::is_sorted(fired.begin(), fired.end()));
    EXPECT_EQ(fragile::alive, 0);
}

TEST_F(fragile_values, clear_destroys_each_once) {
    EXPECT_EQ(fragile::alive, 20);
    wheel_->clear();
    EXPECT_EQ(fragile::alive, 0);
    EXPECT_EQ(wheel_->stats().cancelled, 20U);
}

TEST_F(fragile_values, are_destroyed_with_the_wheel) {
    wheel_->cancel(ids_[3]);
    fire_numbers(at_ns(110));
    EXPECT_EQ(fragile::alive, 9);
    wheel_.reset();
    EXPECT_EQ(fragile::alive, 0);
}

TEST_F(fragile_values, are_destroyed_as_soon_as_they_have_fired) {
    int alive_in_the_second_call = -1;
    wheel_->advance(at_ns(101), [&](fragile&& value) {
        if (value.number == 1) {
            alive_in_the_second_call = fragile::alive;
        }
    });
    EXPECT_GE(alive_in_the_second_call, 18);
    EXPECT_LE(alive_in_the_second_call, 19) << "the first value is still alive while the second fires";
    EXPECT_EQ(fragile::alive, 18);
}

TEST_F(fragile_values, are_destroyed_when_on_due_throws) {
    EXPECT_THROW(wheel_->advance(at_ns(100), [](fragile&&) { throw std::runtime_error("no"); }), std::runtime_error);
    EXPECT_EQ(fragile::alive, 19);
    EXPECT_EQ(wheel_->size(), 19U);
}

TEST_F(fragile_values, do_not_leak_when_there_is_no_memory_for_the_ticket) {
    wheel_.reset();
    int refusals = 0;
    for (std::uint64_t allocations = 0; allocations < 20; ++allocations) {
        failing_memory memory;
        wheel_config config = wheel_at(at_ns(0));
        config.memory = &memory;
        timer_wheel<fragile> wheel(config);
        memory.fail_after(allocations);
        try {
            for (int i = 0; i < 5'000; ++i) {
                wheel.arm(at_ns((i % 256 + std::int64_t{1}) << (18 + i / 256)),
                          fragile(i));  // each in a slot of its own
            }
        } catch (const std::bad_alloc&) {
            ++refusals;
        }
        ASSERT_EQ(fragile::alive, static_cast<int>(wheel.size())) << "after " << allocations << " allocations";
        ASSERT_EQ(audit(wheel), "");
    }
    EXPECT_GT(refusals, 3);
}

TEST(wheel_values, may_be_move_only) {
    timer_wheel<std::unique_ptr<int>> wheel(wheel_at(at_ns(0)));
    const timer_id id = wheel.arm(at_ns(1), std::make_unique<int>(1));
    wheel.arm(at_ns(2), std::make_unique<int>(2));
    const auto back = wheel.cancel(id);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(**back, 1);
    std::unique_ptr<int> kept;
    wheel.advance(at_ns(2), [&](std::unique_ptr<int>&& value) { kept = std::move(value); });
    ASSERT_NE(kept, nullptr);
    EXPECT_EQ(*kept, 2);
}

TEST(wheel_values, need_neither_a_default_constructor_nor_assignment) {
    struct rigid {
        explicit rigid(int n) : number(n) {}
        rigid(rigid&&) = default;
        rigid& operator=(rigid&&) = delete;
        const int number;
    };
    timer_wheel<rigid> wheel(wheel_at(at_ns(0)));
    wheel.cancel(wheel.arm(at_ns(1), rigid(1)));
    wheel.arm(at_ns(1), rigid(2));
    int seen = 0;
    wheel.advance(at_ns(1), [&](rigid&& value) { seen = value.number; });
    EXPECT_EQ(seen, 2);
}

struct alignas(64) wide {
    explicit wide(int n) : number(n) { filling.fill(static_cast<std::byte>(n)); }
    bool intact() const {
        return reinterpret_cast<std::uintptr_t>(this) % 64 == 0 && filling == [this] {
            std::array<std::byte, 300> expected{};
            expected.fill(static_cast<std::byte>(number));
            return expected;
        }();
    }
    int number;
    std::array<std::byte, 300> filling{};
};

TEST(wheel_values, may_be_large_and_over_aligned) {
    failing_memory memory;
    {
        wheel_config config = wheel_at(at_ns(0));
        config.memory = &memory;
        timer_wheel<wide> wheel(config);
        std::vector<timer_id> ids;
        for (int i = 0; i < 3'000; ++i) {
            ids.push_back(wheel.arm(at_ns(i), wide(i % 128)));
        }
        for (std::size_t i = 0; i < ids.size(); i += 3) {
            const auto value = wheel.cancel(ids[i]);
            ASSERT_TRUE(value.has_value());
            ASSERT_TRUE(value->intact());
        }
        wheel.advance(at_ns(second_ns), [&](wide&& value) { ASSERT_TRUE(value.intact()); });
        EXPECT_TRUE(wheel.empty());
    }
    EXPECT_EQ(memory.lent_bytes(), 0U);
}

TEST(wheel_values, may_arm_and_cancel_from_their_destructors) {
    struct last_will {
        explicit last_will(timer_wheel<last_will>* heir) : wheel(heir) {}
        last_will(last_will&& other) noexcept : wheel(std::exchange(other.wheel, nullptr)) {}
        last_will& operator=(last_will&&) = delete;
        ~last_will() {
            if (wheel != nullptr) {
                wheel->arm(at_ns(second_ns), last_will(nullptr));
            }
        }
        timer_wheel<last_will>* wheel;
    };
    timer_wheel<last_will> wheel(wheel_at(at_ns(0)));
    wheel.arm(at_ns(1), last_will(&wheel));
    const timer_id id = wheel.arm(at_ns(2), last_will(&wheel));
    EXPECT_EQ(wheel.advance(at_ns(1), [](last_will&&) {}), 1U);
    EXPECT_EQ(wheel.size(), 2U);
    EXPECT_TRUE(wheel.cancel(id).has_value());
    EXPECT_EQ(wheel.size(), 2U);
    EXPECT_EQ(audit(wheel), "");
    EXPECT_EQ(wheel.advance(at_ns(second_ns), [](last_will&&) {}), 2U);
}

TEST(wheel_values, may_be_offered_by_reference_when_they_can_be_copied) {
    timer_wheel<std::string> wheel(wheel_at(at_ns(0)));
    const std::string text(40, 't');
    EXPECT_TRUE(wheel.try_arm(at_ns(1), text).has_value());
    EXPECT_EQ(text, std::string(40, 't'));
    EXPECT_EQ(fire(wheel, at_ns(1)), std::vector<std::string>{text});
}

TEST(wheel_values, are_given_to_on_due_with_or_without_the_deadline_and_by_value_or_reference) {
    timer_wheel<int> wheel(wheel_at(at_ns(0)));
    for (int i = 0; i < 4; ++i) {
        wheel.arm(at_ns(i), i);
    }
    int sum = 0;
    wheel.advance(at_ns(0), [&](int value) { sum += value; });
    wheel.advance(at_ns(1), [&](int&& value) { sum += value; });
    wheel.advance(at_ns(2), [&](int value, time_point deadline) { sum += value + (deadline == at_ns(2) ? 100 : 0); });
    wheel.advance(at_ns(3), [&](const int& value, time_point) { sum += value; });
    EXPECT_EQ(sum, 106);
}

}  // namespace
}  // namespace chime::test
