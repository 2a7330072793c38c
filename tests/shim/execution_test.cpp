// SPDX-License-Identifier: MIT
#include "base/futex.hpp"
#include "base/mapping.hpp"
#include "shim/engine/atomic.hpp"
#include "shim/engine/explore.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <new>
#include <string>

// Threads of the engine: how they wait, what is their own, and that a schedule can be had again.

namespace chime::shim {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

using results = std::set<std::string>;

std::string text(int first, int second) {
    return std::to_string(first) + std::to_string(second);
}

TEST(execution, finds_a_deadlock_of_two_locks) {
    const results seen = results_of([] {
        mutex first;
        mutex second;
        const auto lock_both = [](mutex& one, mutex& other) {
            one.lock();
            other.lock();
            other.unlock();
            one.unlock();
        };
        thread one([&] { lock_both(first, second); });
        thread two([&] { lock_both(second, first); });
        one.join();
        two.join();
        return std::string("fine");
    });
    EXPECT_TRUE(seen.contains("fine"));
    EXPECT_EQ(seen.size(), 2U);
}

TEST(execution, time_goes_on_only_when_nobody_can_run) {
    const results seen = results_of([] {
        const time_point began = now();
        atomic<int> order{0};
        int late = 0;
        thread sleeper([&] {
            sleep_until(began + std::chrono::hours{1});
            late = order.fetch_add(1) + 1;
        });
        order.fetch_add(1);
        sleeper.join();
        const bool is_exact = now() == began + std::chrono::hours{1};
        return text(late, is_exact ? 1 : 0);
    });
    EXPECT_EQ(seen, (results{"21"}));
}

TEST(execution, memory_that_one_thread_unmaps_is_not_shared_with_who_maps_it_next) {
    const auto use_for_a_moment = [] {
        base::mapping own(1);
        require(own.commit(1), "there is memory");
        *own.data() = std::byte{1};
        yield();
    };
    const finding found = try_seeds(
        [&] {
            thread one(use_for_a_moment);
            thread two(use_for_a_moment);
            one.join();
            two.join();
        },
        1, 100);
    EXPECT_FALSE(found.has_failed) << found.message;
}

TEST(execution, memory_is_refused_at_any_place_while_it_is_scarce_and_nowhere_else) {
    const auto is_refused = [](const auto& asks) {
        try {
            asks();
            return 0;
        } catch (const std::bad_alloc&) {
            return 1;
        }
    };
    const auto ask_heap = [] { ::operator delete(::operator new(1)); };
    const auto ask_for_addresses = [] { const base::mapping own(1); };
    const results seen = results_of([&] {
        int before = is_refused(ask_heap);
        std::string during;
        {
            const scarce_memory fault;
            during = text(is_refused(ask_heap), is_refused(ask_for_addresses));
            base::mapping own;
            if (is_refused([&] { own = base::mapping(1); }) == 0 && !own.commit(1)) during += "c";
            require_equal(fault.refusals() > 1 ? 1 : 0, 0, "refusals beyond what was said");
        }
        before += is_refused(ask_heap);
        return during + std::to_string(before);
    });
    EXPECT_EQ(seen, (results{"000", "100", "010", "00c0"}));
}

thread_local int of_this_thread = 7;

TEST(execution, every_thread_has_its_own_thread_local_variables) {
    const results seen = results_of([] {
        atomic<int> sum{0};
        const auto count = [&] {
            for (int round = 0; round < 3; ++round) {
                ++of_this_thread;
                sum.fetch_add(0, relaxed);
            }
            sum.fetch_add(of_this_thread, relaxed);
        };
        thread one(count);
        thread two(count);
        one.join();
        two.join();
        return std::to_string(sum.load(relaxed)) + " " + std::to_string(of_this_thread);
    });
    EXPECT_EQ(seen, (results{"20 7"}));
}

TEST(execution, the_same_seed_gives_the_same_schedule) {
    const auto body = [] {
        atomic<int> x{0};
        const auto count = [&] {
            for (int round = 0; round < 5; ++round) x.store(x.load(relaxed) + 1, relaxed);
        };
        thread one(count);
        thread two(count);
        one.join();
        two.join();
    };
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        const auto first = strategy_of_seed(seed, 30);
        const auto second = strategy_of_seed(seed, 30);
        const outcome one = execution::run(body, *first, {.traces = true});
        const outcome two = execution::run(body, *second, {.traces = true});
        EXPECT_EQ(one.trace, two.trace);
        // And what is written down of it leads there again.
        replay again(one.taken);
        EXPECT_EQ(execution::run(body, again, {.traces = true}).trace, one.trace);
    }
}

/// Those of public headers: the compiler calls us for them.
TEST(execution, others_may_run_before_an_atomic_that_is_not_the_librarys_own) {
    const results seen = results_of([] {
        std::atomic<int> x{0};
        const auto count = [&] { x.store(x.load(relaxed) + 1, relaxed); };
        thread one(count);
        thread two(count);
        one.join();
        two.join();
        return std::to_string(x.load(relaxed));
    });
    EXPECT_EQ(seen, (results{"1", "2"}));
}

TEST(execution, a_trace_tells_what_is_no_atomic_step_with_the_place_before_it) {
    replay nothing_unusual({});
    const outcome ended = execution::run(
        [] {
            base::futex_word word{0};
            word.store(1, relaxed);
            base::futex_wake_one(word);
        },
        nothing_unusual, {.traces = true});
    ASSERT_FALSE(ended.trace.empty());
    EXPECT_NE(ended.trace.back().find("wakes 0 on a futex\tbehind tests/shim/execution_test.cpp:"), std::string::npos)
        << ended.trace.back();
}

TEST(execution, a_failure_is_shortened_to_what_it_needs) {
    const auto body = [] {
        atomic<int> x{0};
        const auto count = [&] {
            for (int round = 0; round < 10; ++round) x.store(x.load(relaxed) + 1, relaxed);
        };
        thread one(count);
        thread two(count);
        one.join();
        two.join();
        require(x.load(relaxed) == 20, "an increment is lost");
    };
    finding found = try_seeds(body, 1, 1000);
    ASSERT_TRUE(found.has_failed);
    shorten(body, found);
    EXPECT_LE(found.shortest.size(), 2U);
    const std::string told = tell(body, found);
    EXPECT_NE(told.find("an increment is lost"), std::string::npos) << told;
    EXPECT_NE(told.find("execution_test.cpp:"), std::string::npos) << told;
}

}  // namespace
}  // namespace chime::shim
