// SPDX-License-Identifier: MIT
//
// The queues between workers, each against a std::deque that is told the same.

#include "support/random.hpp"
#include "timer/unit_pool.hpp"
#include "worker/inbox.hpp"
#include "worker/injection.hpp"
#include "worker/ready_ring.hpp"
#include "worker/units.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace chime::test {
namespace {

using detail::callback_pool;
using detail::inbox;
using detail::injection;
using detail::no_unit;
using detail::ready_ring;
using detail::slot_pool;
using detail::unit_index;

TEST(ready_ring, agrees_with_a_deque) {
    random_source random(process_seed());
    ready_ring ring;
    std::deque<unit_index> model;
    std::array<unit_index, ready_ring::capacity / 2> taken{};
    unit_index next = 0;
    bool was_full = false;
    for (std::uint64_t step = 0; step < scaled(1'000'000) + 10'000; ++step) {
        // Long stretches of one kind, so that it gets full and empty.
        const std::uint64_t kind = random.below(1'000);
        const bool is_filling = step / 3'000 % 2 == 0;
        if (kind < (is_filling ? 900U : 300U)) {
            const bool is_pushed = ring.push(next);
            ASSERT_EQ(is_pushed, model.size() < ready_ring::capacity) << replay_hint();
            if (is_pushed) model.push_back(next);
            was_full = was_full || !is_pushed;
            ++next;
        } else if (kind < 997) {
            const unit_index popped = ring.pop();
            ASSERT_EQ(popped, model.empty() ? no_unit : model.front()) << replay_hint();
            if (!model.empty()) model.pop_front();
        } else {
            const std::size_t count = ring.take_half(taken);
            ASSERT_EQ(count, (model.size() + 1) / 2) << replay_hint();
            for (std::size_t each = 0; each < count; ++each) {
                ASSERT_EQ(taken[each], model.front()) << replay_hint();
                model.pop_front();
            }
        }
        ASSERT_EQ(ring.size(), model.size()) << replay_hint();
        ASSERT_EQ(ring.is_empty(), model.empty()) << replay_hint();
    }
    EXPECT_TRUE(was_full);
}

/// Records and slots to be linked.
class some_units {
 public:
    explicit some_units(std::size_t count)
        : callbacks_(count, base::huge_pages::no),
          slots_(count, base::huge_pages::no),
          all(callbacks_, slots_),
          count_(count) {
        EXPECT_NE(callbacks_.carve(count), no_unit);
        EXPECT_NE(slots_.carve(count), no_unit);
        for (std::size_t position = 0; position < count; ++position) {
            free.push_back(callback_pool::index_of(position));
            free.push_back(slot_pool::index_of(position));
        }
    }

 private:
    callback_pool callbacks_;
    slot_pool slots_;

 public:
    detail::units all;
    std::deque<unit_index> free;

    [[nodiscard]] std::size_t size() const { return 2 * count_; }

 private:
    std::size_t count_;
};

TEST(injection, agrees_with_a_deque) {
    random_source random(process_seed());
    some_units some(500);
    injection queue;
    std::deque<unit_index> model;
    std::array<unit_index, 64> taken{};
    for (std::uint64_t step = 0; step < scaled(500'000) + 10'000; ++step) {
        if (random.below(100) < (step / 2'000 % 2 == 0 ? 97U : 80U) && !some.free.empty()) {
            const unit_index pushed = some.free.front();
            some.free.pop_front();
            queue.push(some.all, pushed);
            model.push_back(pushed);
        } else {
            const std::size_t most = random.below(100);
            const std::size_t count = queue.take(some.all, taken, most);
            ASSERT_EQ(count, std::min({most, taken.size(), model.size()})) << replay_hint();
            for (std::size_t each = 0; each < count; ++each) {
                ASSERT_EQ(taken[each], model.front()) << replay_hint();
                model.pop_front();
                some.free.push_back(taken[each]);
            }
        }
        ASSERT_EQ(queue.size(), model.size()) << replay_hint();
        ASSERT_EQ(queue.is_empty(), model.empty()) << replay_hint();
    }
}

TEST(inbox, agrees_with_a_deque_open_and_closed) {
    random_source random(process_seed());
    some_units some(200);
    inbox box;
    std::deque<unit_index> model;  // The last one first.
    bool is_closed = false;
    const auto expect_chain = [&](unit_index chain) {
        for (; chain != no_unit; chain = some.all.at(chain).link.load(std::memory_order_relaxed)) {
            ASSERT_FALSE(model.empty()) << replay_hint();
            ASSERT_EQ(chain, model.front()) << replay_hint();
            model.pop_front();
            some.free.push_back(chain);
        }
        ASSERT_TRUE(model.empty()) << replay_hint();
    };
    int refused = 0;
    for (std::uint64_t step = 0; step < scaled(500'000) + 10'000; ++step) {
        const std::uint64_t kind = random.below(100);
        if (kind < 80 && some.free.size() > 3) {
            const unit_index first = some.free.front();
            some.free.pop_front();
            std::uint32_t count = 1;
            unit_index last = first;
            if (random.one_in(4)) {
                last = some.free.front();
                some.free.pop_front();
                some.all.at(first).link.store(last, std::memory_order_relaxed);
                count = 2;
            }
            const std::uint32_t undrained =
                count == 1 ? box.push(some.all, first) : box.push_chain(some.all, first, last, count);
            if (is_closed) {
                ASSERT_EQ(undrained, 0U) << replay_hint();
                some.free.push_back(first);
                if (count == 2) some.free.push_back(last);
                ++refused;
            } else {
                if (count == 2) model.push_front(last);
                model.push_front(first);
                ASSERT_EQ(undrained, model.size()) << replay_hint();
            }
        } else if (kind < 98) {
            const unit_index chain = box.take_all();
            ASSERT_EQ(chain == no_unit, model.empty()) << replay_hint();
            expect_chain(chain);
        } else if (is_closed) {
            box.open();
            is_closed = false;
        } else {
            expect_chain(box.close([](std::uint32_t) {}));
            is_closed = true;
        }
        ASSERT_EQ(box.is_closed(), is_closed) << replay_hint();
        ASSERT_EQ(box.is_empty(), !is_closed && model.empty()) << replay_hint();
    }
    EXPECT_GT(refused, 0);
}

TEST(units, hold_a_ticket_only_for_the_worker_that_owns_them) {
    callback_pool callbacks(1, base::huge_pages::no);
    slot_pool slots(1, base::huge_pages::no);
    ASSERT_NE(slots.carve(1), no_unit);
    const unit_index index = slot_pool::index_of(0);
    const detail::units first(callbacks, slots, 0, true);
    const detail::units second(callbacks, slots, 1, true);
    const detail::units alone(callbacks, slots, 0, false);
    detail::timed& its = first.at(index);
    const std::uint16_t stamp = its.next_stamp();
    its.set_number(7 * detail::timed::next_number);
    its.set_owner(1);
    its.set_ticket(stamp, 3);
    // Stamps come round again: the same one may be on an old ticket in the wheel of somebody else.
    EXPECT_FALSE(first.holds(index, stamp));
    EXPECT_TRUE(second.holds(index, stamp));
    EXPECT_TRUE(alone.holds(index, stamp));
    EXPECT_FALSE(second.holds(index, static_cast<std::uint16_t>(stamp + 4)));
    its.set_ticket_word(its.ticket_word() | detail::timed::vacant_ticket);
    EXPECT_FALSE(first.let_go(index, stamp)) << "it is somebody else's";
    EXPECT_EQ(its.ticket_word() & detail::timed::gone_ticket, 0U);
    EXPECT_TRUE(second.let_go(index, stamp));
    EXPECT_NE(its.ticket_word() & detail::timed::gone_ticket, 0U);
}

}  // namespace
}  // namespace chime::test
