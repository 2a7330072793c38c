// SPDX-License-Identifier: MIT
//
// The queues between workers, on real threads: one who adds and three who take. Every entry is taken exactly once.

#include "runtime/watchdog.hpp"
#include "support/random.hpp"
#include "timer/unit_pool.hpp"
#include "worker/inbox.hpp"
#include "worker/injection.hpp"
#include "worker/ready_ring.hpp"
#include "worker/units.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;
using detail::callback_pool;
using detail::inbox;
using detail::injection;
using detail::no_unit;
using detail::ready_ring;
using detail::slot_pool;
using detail::unit_index;

TEST(ready_ring, with_one_owner_and_three_thieves_gives_every_entry_once) {
    watchdog guard("one owner and three thieves", 60s);
    const auto entries = static_cast<unit_index>(scaled(30'000'000));
    ready_ring ring;
    std::vector<std::atomic<std::uint8_t>> taken(entries);
    std::atomic<bool> is_over{false};
    std::atomic<std::uint64_t> stolen{0};
    std::vector<std::thread> thieves;
    for (std::uint64_t number = 0; number < 3; ++number) {
        thieves.emplace_back([&, number] {
            random_source random(process_seed() + number);
            std::array<unit_index, ready_ring::capacity / 2> loot{};
            std::uint64_t mine = 0;
            for (;;) {
                const bool was_over = is_over;
                std::size_t count = 0;
                if (random.one_in(3)) {
                    count = ring.take_half(loot);
                } else if ((loot[0] = ring.pop()) != no_unit) {
                    count = 1;
                }
                // In order, too: who is first in is first out.
                for (std::size_t each = 0; each < count; ++each) {
                    ASSERT_TRUE(each == 0 || loot[each - 1] < loot[each]) << replay_hint();
                    taken[loot[each]].fetch_add(1, std::memory_order_relaxed);
                }
                mine += count;
                if (count == 0) {
                    if (was_over) break;
                    if (random.one_in(16)) std::this_thread::yield();
                }
            }
            stolen += mine;
        });
    }
    random_source random(process_seed());
    std::uint64_t own = 0;
    for (unit_index next = 0; next < entries;) {
        if (next % 4'096 == 0) guard.pat();
        if (ring.push(next)) {
            ++next;
        } else if (const unit_index popped = ring.pop(); popped != no_unit) {
            taken[popped].fetch_add(1, std::memory_order_relaxed);
            ++own;
        }
        if (random.one_in(8)) {
            if (const unit_index popped = ring.pop(); popped != no_unit) {
                taken[popped].fetch_add(1, std::memory_order_relaxed);
                ++own;
            }
        }
    }
    is_over = true;
    for (std::thread& each : thieves) each.join();
    EXPECT_EQ(own + stolen, entries) << replay_hint();
    EXPECT_GT(stolen.load(), 0U);
    for (const auto& each : taken) ASSERT_EQ(each.load(), 1) << replay_hint();
    EXPECT_TRUE(ring.is_empty());
}

TEST(injection, with_four_threads_gives_every_entry_once) {
    watchdog guard("injection", 60s);
    constexpr std::size_t few = 64;
    callback_pool callbacks(1, base::huge_pages::no);
    slot_pool slots(few, base::huge_pages::no);
    ASSERT_NE(slots.carve(few), no_unit);
    const detail::units all(callbacks, slots);
    injection queue;
    std::vector<std::atomic<int>> holders(few);
    for (std::size_t position = 0; position < few; ++position) queue.push(all, slot_pool::index_of(position));
    std::atomic<std::uint64_t> doubled{0};
    std::vector<std::thread> threads;
    for (std::uint64_t number = 0; number < 4; ++number) {
        threads.emplace_back([&, number] {
            random_source random(process_seed() + number);
            std::array<unit_index, 16> taken{};
            for (std::uint64_t round = 0; round < scaled(500'000); ++round) {
                if (round % 1'024 == 0) guard.pat();
                const std::size_t count = queue.take(all, taken, 1 + random.below(16));
                for (std::size_t each = 0; each < count; ++each) {
                    std::atomic<int>& holder = holders[taken[each] & ~detail::slot_bit];
                    doubled += holder.fetch_add(1) != 0 ? 1U : 0U;
                }
                for (std::size_t each = 0; each < count; ++each) {
                    holders[taken[each] & ~detail::slot_bit].fetch_sub(1);
                    queue.push(all, taken[each]);
                }
            }
        });
    }
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(doubled.load(), 0U) << replay_hint();
    EXPECT_EQ(queue.size(), few);
}

TEST(inbox, that_closes_and_opens_again_loses_nothing_of_three_senders) {
    watchdog guard("an inbox that closes", 60s);
    constexpr std::size_t each_has = 32;
    callback_pool callbacks(3 * each_has, base::huge_pages::no);
    slot_pool slots(1, base::huge_pages::no);
    ASSERT_NE(callbacks.carve(3 * each_has), no_unit);
    const detail::units all(callbacks, slots);
    inbox box;
    // Who is in the box, or on his way; the sender sets it and the owner takes it away.
    std::vector<std::atomic<int>> sent(3 * each_has);
    std::atomic<std::uint64_t> refused{0};
    std::atomic<int> sending{3};
    std::atomic<std::uint64_t> accepted{0};
    std::vector<std::thread> senders;
    for (std::size_t number = 0; number < 3; ++number) {
        senders.emplace_back([&, number] {
            for (std::uint64_t round = 0; round < scaled(1'000'000); ++round) {
                const auto index = static_cast<unit_index>(number * each_has + round % each_has);
                await_that([&] { return sent[index].load(std::memory_order_acquire) == 0; });
                sent[index].store(1, std::memory_order_relaxed);
                if (box.push(all, index) == 0) {
                    sent[index].store(0, std::memory_order_relaxed);
                    ++refused;
                } else {
                    accepted.fetch_add(1, std::memory_order_relaxed);
                }
            }
            --sending;
        });
    }
    random_source random(process_seed());
    std::uint64_t received = 0;
    const auto receive = [&](unit_index chain) {
        while (chain != no_unit) {
            const unit_index next = all.at(chain).link.load(std::memory_order_relaxed);
            ASSERT_EQ(sent[chain].exchange(0, std::memory_order_release), 1) << replay_hint();
            ++received;
            chain = next;
        }
    };
    for (std::uint64_t round = 0; sending != 0; ++round) {
        if (round % 1'024 == 0) guard.pat();
        if (random.one_in(20)) {
            receive(box.close([](std::uint32_t) {}));
            spin(random.below(2'000));
            ASSERT_EQ(box.take_all(), no_unit);
            box.open();
        } else {
            receive(box.take_all());
            spin(random.below(500));
        }
    }
    for (std::thread& each : senders) each.join();
    receive(box.take_all());
    EXPECT_EQ(received, accepted.load()) << replay_hint();
    EXPECT_GT(refused.load(), 0U);
}

}  // namespace
}  // namespace chime::test
