// SPDX-License-Identifier: MIT
//
// What is free is out of bounds: the address sanitizer says so to whoever uses it, although the memory is there. The words,
// which anybody may look at, are not. It is compiled for that alone.

#include "base/poison.hpp"
#include "task/task_slot.hpp"
#include "timer/callback.hpp"
#include "timer/unit_pool.hpp"

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

bool is_poisoned(const volatile void* address) {
    return __asan_address_is_poisoned(const_cast<const void*>(address)) != 0;
}

/// So many bytes from this member on are out of bounds, and nothing else.
template <class Unit, class Member>
void expect_only_poisoned(const Unit& unit, const Member& first, std::size_t bytes) {
    const auto* const begin = reinterpret_cast<const std::byte*>(&unit);
    const auto from = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&first) - begin);
    for (std::size_t offset = 0; offset < sizeof(Unit); ++offset) {
        EXPECT_EQ(is_poisoned(begin + offset), offset >= from && offset < from + bytes) << "at " << offset;
    }
}

TEST(poison, of_a_free_record_leaves_its_words_alone) {
    detail::unit_pool<detail::callback, 0> pool(64, base::huge_pages::no);
    const detail::unit_index taken = pool.carve(1);
    detail::callback& its = pool.at(taken);
    expect_only_poisoned(its, its.closure, detail::closure_bytes);
    its.unseal();
    EXPECT_FALSE(is_poisoned(its.closure));
}

TEST(poison, of_a_free_slot_leaves_its_words_alone) {
    detail::unit_pool<detail::task_slot, detail::slot_bit> pool(64, base::huge_pages::no);
    const detail::unit_index taken = pool.carve(1);
    detail::task_slot& its = pool.at(taken);
    expect_only_poisoned(its, its.innermost, sizeof its.innermost + sizeof its.root);
    its.set_up({}, nullptr, nullptr, false);
    EXPECT_FALSE(is_poisoned(&its.root));
}

TEST(poison, goes_when_the_addresses_are_given_back) {
    const void* place = nullptr;
    {
        detail::unit_pool<detail::callback, 0> pool(64, base::huge_pages::no);
        place = pool.at(pool.carve(1)).closure;
        EXPECT_TRUE(is_poisoned(place));
    }
    EXPECT_FALSE(is_poisoned(place));
}

TEST(poison_death, finds_who_uses_the_closure_of_a_timer_that_has_fired) {
    testing::virtual_context context;
    const volatile int* place = nullptr;
    context->timers().after(1s, [&place, number = 7] { place = &number; });
    context.advance(1s);
    ASSERT_NE(place, nullptr);
    EXPECT_DEATH(static_cast<void>(*place), "use-after-poison");
}

TEST(poison_death, finds_who_uses_the_closure_of_a_timer_that_was_cancelled_in_a_callback) {
    testing::virtual_context context;
    const volatile int* place = nullptr;
    timer_handle periodic;
    periodic = context->timers().every(1s, missed_ticks::skip, [&place, number = 7] { place = &number; });
    context.advance(1s);
    ASSERT_NE(place, nullptr);
    EXPECT_EQ(*place, 7);
    context->post([&] { EXPECT_EQ(context->timers().cancel(periodic), cancel_result::cancelled); });
    context.settle();
    EXPECT_DEATH(static_cast<void>(*place), "use-after-poison");
}

TEST(poison_death, finds_who_uses_the_closure_of_a_posted_function_that_has_run) {
    testing::virtual_context context;
    const volatile int* place = nullptr;
    context->post([&place, number = 7] { place = &number; });
    context.settle();
    ASSERT_NE(place, nullptr);
    EXPECT_DEATH(static_cast<void>(*place), "use-after-poison");
}

task<> show_local(const volatile int*& place) {
    const volatile int local = 7;
    place = &local;
    auto pause = sleep_for(1s);
    co_await pause;
    EXPECT_EQ(local, 7);
}

TEST(poison_death, finds_who_uses_the_frame_of_a_task_that_has_ended) {
    testing::virtual_context context;
    const volatile int* place = nullptr;
    spawn_detached(*context, show_local(place));
    context.settle();
    ASSERT_NE(place, nullptr);
    EXPECT_EQ(*place, 7);
    context.run();
    EXPECT_DEATH(static_cast<void>(*place), "use-after-poison");
}

}  // namespace
}  // namespace chime::test
