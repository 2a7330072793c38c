// SPDX-License-Identifier: MIT
//
// The lists that records and slots are kept in, against dumb models.

#include "support/random.hpp"
#include "timer/unit_pool.hpp"
#include "worker/inbox.hpp"
#include "worker/units.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <vector>

namespace chime::test {
namespace {

using detail::callback_pool;
using detail::no_unit;
using detail::slot_pool;
using detail::unit_index;
using unit_magazine = detail::unit_magazine<callback_pool>;

/// The chain that starts with `first`, as a list.
template <class Pool>
std::vector<unit_index> chain_of(const Pool& pool, unit_index first) {
    std::vector<unit_index> chain;
    for (; first != no_unit; first = pool.at(first).link.load()) chain.push_back(first);
    return chain;
}

template <class Pool>
void push_chain(Pool& pool, const std::vector<unit_index>& chain) {
    for (std::size_t i = 0; i + 1 < chain.size(); ++i) pool.at(chain[i]).link.store(chain[i + 1]);
    pool.push_shared(chain.front(), chain.back());
}

TEST(unit_pool, gives_each_unit_once_and_stops_at_its_limit) {
    callback_pool pool(100, base::huge_pages::no);
    std::set<unit_index> all;
    std::set<const void*> places;
    for (const std::size_t count : {1U, 7U, 64U, 64U}) {
        for (const unit_index each : chain_of(pool, pool.carve(count))) {
            EXPECT_TRUE(all.insert(each).second);
            EXPECT_TRUE(places.insert(&pool.at(each)).second);
            EXPECT_TRUE(pool.contains(each));
        }
    }
    EXPECT_EQ(all.size(), 100U);
    EXPECT_EQ(pool.size(), 100U);
    EXPECT_EQ(pool.carve(1), no_unit);
    EXPECT_EQ(pool.carve(64), no_unit);
}

TEST(unit_pool, knows_what_it_holds_whoever_made_the_index_up) {
    callback_pool records(10, base::huge_pages::no);
    slot_pool slots(10, base::huge_pages::no);
    const std::vector<unit_index> made = chain_of(records, records.carve(4));
    const std::vector<unit_index> seats = chain_of(slots, slots.carve(4));
    for (unit_index index = 0; index < 1'000; ++index) {
        for (const unit_index kind : {unit_index{0}, detail::slot_bit}) {
            const unit_index asked = index | kind;
            EXPECT_EQ(records.contains(asked), std::count(made.begin(), made.end(), asked) == 1) << asked;
            EXPECT_EQ(slots.contains(asked), std::count(seats.begin(), seats.end(), asked) == 1) << asked;
        }
    }
    EXPECT_FALSE(records.contains(no_unit));
    EXPECT_FALSE(slots.contains(no_unit));
}

TEST(unit_pool, its_shared_stack_agrees_with_a_vector) {
    random_source random(process_seed());
    callback_pool pool(500, base::huge_pages::no);
    std::vector<unit_index> model;  // The top is at the end.
    std::vector<unit_index> held;
    for (std::uint64_t round = 0; round < scaled(200'000); ++round) {
        switch (random.below(5)) {
        case 0:
            for (const unit_index each : chain_of(pool, pool.carve(1 + random.below(20)))) held.push_back(each);
            break;
        case 1: {
            const unit_index taken = pool.pop_shared();
            ASSERT_EQ(taken, model.empty() ? no_unit : model.back()) << replay_hint();
            if (model.empty()) break;
            held.push_back(taken);
            model.pop_back();
            break;
        }
        case 2:
            if (!random.one_in(10)) break;
            for (const unit_index each : chain_of(pool, pool.pop_all_shared())) {
                ASSERT_FALSE(model.empty()) << replay_hint();
                ASSERT_EQ(each, model.back()) << replay_hint();
                held.push_back(each);
                model.pop_back();
            }
            ASSERT_TRUE(model.empty()) << replay_hint();
            break;
        default: {
            if (held.empty()) break;
            const std::size_t count = 1 + random.below(std::min<std::size_t>(held.size(), 5));
            for (std::size_t i = 0; i < count; ++i) std::swap(held[i], held[i + random.below(held.size() - i)]);
            const std::vector<unit_index> chain(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(count));
            held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(count));
            push_chain(pool, chain);
            model.insert(model.end(), chain.rbegin(), chain.rend());
            break;
        }
        }
        ASSERT_EQ(pool.shared_is_empty(), model.empty()) << replay_hint();
        ASSERT_EQ(held.size() + model.size(), pool.size()) << replay_hint();
    }
}

TEST(unit_magazine, agrees_with_a_set_and_loses_nothing_to_the_shared_stack) {
    random_source random(process_seed());
    callback_pool pool(300, base::huge_pages::no);
    unit_magazine magazine(pool);
    std::set<unit_index> held;
    std::uint64_t refills = 0;
    for (std::uint64_t round = 0; round < scaled(200'000); ++round) {
        switch (random.below(4)) {
        case 0:
        case 1: {
            if (magazine.is_empty()) {
                ++refills;
                const bool was_possible = magazine.refill(32);
                ASSERT_EQ(was_possible, held.size() != 300) << replay_hint();
                if (!was_possible) break;
            }
            const unit_index taken = magazine.pop();
            ASSERT_TRUE(pool.contains(taken));
            ASSERT_TRUE(held.insert(taken).second) << "given twice; " << replay_hint();
            break;
        }
        case 2: {
            if (held.empty()) break;
            auto chosen = held.begin();
            std::advance(chosen, static_cast<std::ptrdiff_t>(random.below(std::min<std::size_t>(held.size(), 5))));
            const unit_index freed = *chosen;
            held.erase(chosen);
            magazine.push(freed);
            if (random.one_in(2)) {
                ASSERT_EQ(magazine.pop(), freed) << "what was freed last is still warm; " << replay_hint();
                magazine.push(freed);
            }
            break;
        }
        default: {
            const std::size_t count = magazine.count();
            if (count == 0 || !random.one_in(4)) break;
            const std::size_t donated = 1 + random.below(count);
            magazine.donate(donated);
            ASSERT_EQ(magazine.count(), count - donated) << replay_hint();
            ASSERT_FALSE(pool.shared_is_empty());
            break;
        }
        }
    }
    // All that were ever made can be had again, each once.
    while (held.size() != 300) {
        if (magazine.is_empty()) {
            ASSERT_TRUE(magazine.refill(32)) << replay_hint();
        }
        ASSERT_TRUE(held.insert(magazine.pop()).second) << replay_hint();
    }
    EXPECT_TRUE(magazine.is_empty());
    EXPECT_FALSE(magazine.refill(32));
    EXPECT_GT(refills, 0U);
}

TEST(unit_queue, agrees_with_a_deque) {
    random_source random(process_seed());
    callback_pool records(64, base::huge_pages::no);
    slot_pool slots(64, base::huge_pages::no);
    const detail::units all(records, slots);
    std::vector<unit_index> idle = chain_of(records, records.carve(64));
    for (const unit_index each : chain_of(slots, slots.carve(64))) idle.push_back(each);
    detail::unit_queue queue;
    std::deque<unit_index> model;
    for (std::uint64_t round = 0; round < scaled(200'000); ++round) {
        if (random.one_in(2) && !idle.empty()) {
            std::swap(idle[random.below(idle.size())], idle.back());
            queue.push(all, idle.back());
            model.push_back(idle.back());
            idle.pop_back();
        } else if (!model.empty()) {
            ASSERT_EQ(queue.front(), model.front()) << replay_hint();
            ASSERT_EQ(queue.pop(all), model.front()) << replay_hint();
            idle.push_back(model.front());
            model.pop_front();
        }
        ASSERT_EQ(queue.size(), model.size());
        ASSERT_EQ(queue.is_empty(), model.empty());
    }
}

TEST(inbox, gives_all_that_was_pushed_last_first_and_counts_it) {
    random_source random(process_seed());
    callback_pool records(64, base::huge_pages::no);
    slot_pool slots(64, base::huge_pages::no);
    detail::units all(records, slots);
    std::vector<unit_index> idle = chain_of(records, records.carve(64));
    for (const unit_index each : chain_of(slots, slots.carve(64))) idle.push_back(each);
    detail::inbox inbox;
    std::vector<unit_index> model;
    for (std::uint64_t round = 0; round < scaled(200'000); ++round) {
        if (!random.one_in(8) && !idle.empty()) {
            std::swap(idle[random.below(idle.size())], idle.back());
            model.push_back(idle.back());
            idle.pop_back();
            ASSERT_EQ(inbox.push(all, model.back()), model.size()) << replay_hint();
        } else {
            for (unit_index each = inbox.take_all(); each != no_unit; each = all.at(each).link.load()) {
                ASSERT_FALSE(model.empty()) << replay_hint();
                ASSERT_EQ(each, model.back()) << replay_hint();
                idle.push_back(each);
                model.pop_back();
            }
            ASSERT_TRUE(model.empty()) << replay_hint();
        }
        ASSERT_EQ(inbox.is_empty(), model.empty());
    }
}

}  // namespace
}  // namespace chime::test
