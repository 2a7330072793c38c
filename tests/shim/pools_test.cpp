// SPDX-License-Identifier: MIT
#include "base/striped_counters.hpp"
#include "shim/engine/explore.hpp"
#include "timer/unit_pool.hpp"

#include <gtest/gtest.h>

#include <cstdint>

// Units that are free, and the counter that many add to.

namespace {

using namespace chime;
using namespace chime::detail;
using shim::require;
using shim::require_equal;
using shim::tally;
using shim::thread;

struct alignas(64) plain_unit {
    base::atomic<std::uint32_t> link{0};
    int owner = 0;  ///< Of whoever has taken it.
};
using plain_pool = unit_pool<plain_unit, 0>;

/// Has it, for a moment.
void own(plain_pool& pool, unit_index taken, int name) {
    require(pool.contains(taken), "what is taken is there");
    plain_unit& its = pool.at(taken);
    require(its.owner == 0, "nobody else has it");
    its.owner = name;
    shim::yield();
    require(its.owner == name, "nobody else takes it");
    its.owner = 0;
}

CHIME_SCENARIO(unit_pool, gives_no_unit_to_two_threads, .is_small = true) {
    plain_pool pool(8, base::huge_pages::no);
    const unit_index first = pool.carve(3);
    pool.push_shared(first, first + 2);
    const auto take_and_give_back = [&](int name) {
        for (int round = 0; round < 2; ++round) {
            const unit_index taken = pool.pop_shared();
            if (taken == no_unit) continue;
            own(pool, taken, name);
            pool.push_shared(taken, taken);
        }
    };
    thread one([&] { take_and_give_back(1); });
    thread two([&] { take_and_give_back(2); });
    one.join();
    two.join();
    unsigned left = 0;
    for (unit_index each = pool.pop_all_shared(); each != no_unit; ++left) {
        require(left < 3, "no unit is there twice");
        each = pool.at(each).link.load(base::memory_order_relaxed);
    }
    require_equal(left, 3, "units that are free in the end");
}

CHIME_SCENARIO(unit_pool, magazines_exchange_units_and_lose_none, .share = 4, .is_small = true) {
    plain_pool pool(8, base::huge_pages::no);
    tally free_in_the_end;
    const auto work = [&](int name) {
        unit_magazine<plain_pool> mine(pool);
        for (int round = 0; round < 2; ++round) {
            if (mine.is_empty() && !mine.refill(2)) continue;
            const unit_index taken = mine.pop();
            own(pool, taken, name);
            require(mine.push(taken), "there is room");
            if (round == 0) mine.donate(1);
        }
        if (!mine.is_empty()) mine.donate(mine.count());
    };
    thread one([&] { work(1); });
    thread two([&] { work(2); });
    const unit_index taken = pool.pop_shared();
    if (taken != no_unit) {
        own(pool, taken, 3);
        pool.push_shared(taken, taken);
    }
    one.join();
    two.join();
    unsigned left = 0;
    for (unit_index each = pool.pop_all_shared(); each != no_unit; ++left) {
        require(left < pool.size(), "no unit is there twice");
        each = pool.at(each).link.load(base::memory_order_relaxed);
    }
    require_equal(left, pool.size(), "units that are free in the end");
}

CHIME_SCENARIO(unit_pool, what_a_magazine_gives_away_is_linked_anew_whatever_it_was_linked_to, .is_small = true) {
    plain_pool pool(8, base::huge_pages::no);
    unit_magazine<plain_pool> mine(pool);
    require(mine.refill(3), "there are some");
    const unit_index first = mine.pop();
    const unit_index second = mine.pop();
    require(mine.push(first) && mine.push(second), "there is room");  // Not in the order in which they were made.
    thread other([&] {
        const unit_index taken = pool.pop_shared();
        if (taken == no_unit) return;
        own(pool, taken, 1);
        pool.push_shared(taken, taken);
    });
    mine.donate(3);
    other.join();
    unsigned left = 0;
    for (unit_index each = pool.pop_all_shared(); each != no_unit; ++left) {
        require(left < 3, "no unit is there twice");
        each = pool.at(each).link.load(base::memory_order_relaxed);
    }
    require_equal(left, 3, "units that are free in the end");
}

CHIME_SCENARIO(unit_pool, whoever_learns_of_a_unit_finds_it_made, .is_small = true) {
    plain_pool pool(8, base::huge_pages::no);
    thread grower([&] {
        const unit_index made = pool.carve(2);
        require(made != no_unit, "there is room");
    });
    const std::size_t known = pool.size();
    for (std::size_t position = 0; position < known; ++position) {
        const plain_unit& its = pool.at(plain_pool::index_of(position));
        require(its.owner == 0, "it is made");
    }
    const unit_index another = pool.carve(2);
    require(another != no_unit, "there is room for both");
    grower.join();
    require_equal(pool.size(), 4, "units");
}

// --- The striped counters.

enum class counted { steps };

CHIME_SCENARIO(striped_counters, loses_nothing_and_its_sum_never_falls, .is_small = true) {
    base::striped_counters<counted, 1> counter;  // Of three threads one has a stripe of its own, and two share one.
    const auto add_twice = [&] {
        counter.add(counted::steps, 1);
        counter.add(counted::steps, 1);
    };
    thread one(add_twice);
    thread two(add_twice);
    thread three([&] { counter.add(counted::steps, ~std::uint64_t{0}); });
    require(counter.sum(counted::steps) + 1 <= 5, "a sum lies between what was and what will be");
    one.join();
    two.join();
    three.join();
    require_equal(counter.sum(counted::steps), 3, "the sum at rest");
}

}  // namespace
