// SPDX-License-Identifier: MIT
//
// Counts every call of operator new in this process: after warm-up the wheel makes none.

#include <gtest/gtest.h>

#include <chime/wheel.hpp>

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <vector>

#include "support/counted_new.hpp"
#include "support/random.hpp"
#include "support/virtual_time.hpp"

namespace chime::test {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::size_t population = 20'000;

/// A wheel in the middle of its life, used in all ways at once. Everything the test itself needs is allocated first.
class busy_wheel {
 public:
    busy_wheel() : wheel_(config()) { ids_.resize(2 * population); }

    /// Fills the wheel to `pending` timers, uses it, and empties half of it, `rounds` times.
    void work(std::size_t pending, int rounds) {
        for (int round = 0; round < rounds; ++round) {
            for (std::size_t i = 0; i < pending; ++i) {
                if (!wheel_.deadline_of(ids_[i])) ids_[i] = wheel_.arm(draw(), i);
            }
            for (std::size_t i = 0; i < pending; ++i) wheel_.postpone(ids_[random_.below(pending)], draw());
            for (int i = 0; i < 100; ++i) {
                wheel_.advance(
                    later(wheel_.now(), 20'000'000),
                    [this](std::size_t place) {
                        ++fired_;
                        ids_[place] = wheel_.arm(draw(), place);  // as a periodic timer does
                    },
                    500);
                next_ = wheel_.next_deadline();
            }
            for (std::size_t i = 0; i < pending / 2; ++i) {
                const timer_id id = ids_[random_.below(pending)];
                cancelled_ += wheel_.cancel(id).has_value() ? 1U : 0U;
            }
        }
    }

    std::uint64_t fired() const { return fired_; }
    std::uint64_t cancelled() const { return cancelled_; }
    timer_wheel<std::size_t>& wheel() { return wheel_; }

 private:
    static wheel_config config() {
        wheel_config config;
        config.start = at_ns(987 * second_ns);
        return config;
    }
    time_point draw() { return later(wheel_.now(), random_.between(0, (60 * second_ns) >> random_.below(20))); }

    timer_wheel<std::size_t> wheel_;
    std::vector<timer_id> ids_;
    std::optional<time_point> next_;
    random_source random_{process_seed()};
    std::uint64_t fired_ = 0;
    std::uint64_t cancelled_ = 0;
};

TEST(wheel_allocations, are_none_after_warm_up) {
    busy_wheel busy;
    busy.work(2 * population, 3);  // twice the crowd, so that no unlucky draw needs more than has been seen
    const std::uint64_t warm = allocations;
    const std::uint64_t fired = busy.fired();
    const std::uint64_t cancelled = busy.cancelled();
    ASSERT_GT(warm, 0U) << "the counter does not count";

    busy.work(population, static_cast<int>(20 / (CHIME_TEST_SCALE > 1 ? 4 : 1)));

    EXPECT_EQ(allocations, warm) << replay_hint();
    EXPECT_GT(busy.fired(), fired + population);
    EXPECT_GT(busy.cancelled(), cancelled + population);
}

TEST(wheel_allocations, are_none_when_a_cleared_wheel_is_filled_again) {
    busy_wheel busy;
    busy.work(2 * population, 3);
    const std::uint64_t warm = allocations;
    for (int i = 0; i < 3; ++i) {
        busy.wheel().clear();
        busy.work(population, 1);
    }
    EXPECT_EQ(allocations, warm) << replay_hint();
}

TEST(wheel_allocations, do_not_happen_in_cancel_and_the_questions_even_without_warm_up) {
    timer_wheel<int> wheel;
    std::vector<timer_id> ids;
    for (int i = 0; i < 10'000; ++i) ids.push_back(wheel.arm(at_ns(i * second_ns), i));
    const std::uint64_t before = allocations;
    std::size_t known = 0;
    for (const timer_id id : ids) {
        known += wheel.deadline_of(id).has_value() ? 1U : 0U;
        known += wheel.next_deadline().has_value() ? 1U : 0U;
        known += wheel.cancel(id).has_value() ? 1U : 0U;
        known += wheel.memory() != 0 && wheel.stats().armed == 10'000 ? 1U : 0U;
    }
    wheel.clear();
    EXPECT_EQ(allocations, before);
    EXPECT_EQ(known, 40'000U);
}

TEST(wheel_allocations, come_from_the_given_memory_only) {
    alignas(64) static std::byte room[std::size_t{64} << 20];
    std::pmr::monotonic_buffer_resource arena(room, sizeof room, std::pmr::null_memory_resource());
    wheel_config config;
    config.memory = &arena;
    const std::uint64_t before = allocations;
    {
        timer_wheel<int> wheel(config);
        for (int i = 0; i < 50'000; ++i) wheel.arm(at_ns(i * 1'000), i);
        wheel.advance(at_ns(second_ns), [](int) {});
    }
    EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace chime::test
