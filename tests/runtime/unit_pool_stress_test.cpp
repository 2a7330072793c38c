// SPDX-License-Identifier: MIT
//
// One pool, many threads: nobody is ever given what somebody else holds.

#include "runtime/watchdog.hpp"
#include "support/random.hpp"
#include "timer/unit_pool.hpp"
#include "worker/inbox.hpp"
#include "worker/units.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using detail::callback_pool;
using detail::no_unit;
using detail::slot_pool;
using detail::unit_index;

constexpr std::size_t unit_count = 512;

TEST(unit_pool, under_four_threads_every_unit_has_one_holder) {
    const watchdog guard("shared stack", std::chrono::seconds{200});
    // So few that each comes round again while somebody still looks at it.
    constexpr std::size_t few = 8;
    callback_pool pool(few, base::huge_pages::no);
    std::vector<std::atomic<int>> holders(few);
    std::atomic<std::uint64_t> doubled{0};
    const auto take = [&](unit_index taken) { doubled += holders[taken].fetch_add(1) != 0 ? 1U : 0U; };
    const auto leave = [&](unit_index given) { holders[given].fetch_sub(1); };
    std::vector<std::thread> threads;
    for (std::uint64_t number = 0; number < 3; ++number) {
        threads.emplace_back([&, number] {
            random_source random(process_seed() + number);
            std::vector<unit_index> held;
            for (std::uint64_t round = 0; round < scaled(4'000'000); ++round) {
                if (held.size() < 3 && (random.one_in(2) || held.empty())) {
                    unit_index taken = pool.pop_shared();
                    if (taken == no_unit && random.one_in(8)) taken = pool.carve(1);
                    if (taken == no_unit) continue;
                    take(taken);
                    held.push_back(taken);
                } else if (held.size() >= 2 && random.one_in(2)) {
                    const unit_index first = held.back();
                    held.pop_back();
                    const unit_index last = held.back();
                    held.pop_back();
                    leave(first);
                    leave(last);
                    pool.at(first).link.store(last);
                    pool.push_shared(first, last);
                } else {
                    leave(held.back());
                    pool.push_shared(held.back(), held.back());
                    held.pop_back();
                }
            }
            for (const unit_index each : held) {
                leave(each);
                pool.push_shared(each, each);
            }
        });
    }
    // The owner of the magazine takes all there is from time to time, and gives some of it back.
    threads.emplace_back([&] {
        random_source random(process_seed() + 77);
        detail::unit_magazine<callback_pool> magazine(pool);
        std::vector<unit_index> held;
        for (std::uint64_t round = 0; round < scaled(4'000'000); ++round) {
            if (held.size() < 2 && (random.one_in(2) || held.empty())) {
                if (magazine.is_empty() && !magazine.refill(2)) continue;
                held.push_back(magazine.pop());
                take(held.back());
            } else {
                leave(held.back());
                magazine.push(held.back());
                held.pop_back();
                if (magazine.count() > 1) magazine.donate(1 + random.below(magazine.count() - 1));
            }
        }
        for (const unit_index each : held) {
            leave(each);
            magazine.push(each);
        }
        if (!magazine.is_empty()) magazine.donate(magazine.count());
    });
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(doubled.load(), 0U) << replay_hint();
    std::size_t found = 0;
    for (unit_index each = pool.pop_all_shared(); each != no_unit; each = pool.at(each).link.load()) {
        ASSERT_EQ(holders[each].exchange(1), 0);
        ++found;
    }
    EXPECT_EQ(found, pool.size()) << "a unit was lost; " << replay_hint();
}

TEST(inbox, under_three_senders_keeps_each_ones_order_and_loses_nothing) {
    const watchdog guard("inbox", std::chrono::seconds{200});
    callback_pool records(unit_count, base::huge_pages::no);
    slot_pool slots(unit_count, base::huge_pages::no);
    detail::units all(records, slots);
    static_cast<void>(records.carve(unit_count));
    detail::inbox inbox;
    constexpr std::size_t senders = 3;
    constexpr std::size_t share = unit_count / senders;
    // Each sender may use a unit again when the receiver says so, like the bit in a unit's word.
    std::vector<std::atomic<bool>> is_linked(unit_count);
    std::vector<std::uint64_t> numbers(unit_count);
    const std::uint64_t rounds = scaled(700'000);
    std::vector<std::thread> threads;
    for (std::size_t number = 0; number < senders; ++number) {
        threads.emplace_back([&, number] {
            for (std::uint64_t round = 0; round < rounds; ++round) {
                const std::size_t unit = number * share + round % share;
                await_that([&] { return !is_linked[unit].load(std::memory_order_acquire); });
                numbers[unit] = round;
                is_linked[unit].store(true, std::memory_order_relaxed);
                static_cast<void>(inbox.push(all, callback_pool::index_of(unit)));
            }
        });
    }
    std::vector<std::uint64_t> next(senders, 0);
    std::uint64_t received = 0;
    std::vector<unit_index> batch;
    while (received != senders * rounds) {
        batch.clear();
        for (unit_index each = inbox.take_all(); each != no_unit; each = all.at(each).link.load()) {
            batch.push_back(each);
        }
        if (batch.empty()) std::this_thread::yield();
        for (auto each = batch.rbegin(); each != batch.rend(); ++each, ++received) {
            ASSERT_EQ(numbers[*each], next[*each / share]++) << "out of order, twice or lost";
            is_linked[*each].store(false, std::memory_order_release);
        }
    }
    for (std::thread& each : threads) each.join();
    EXPECT_TRUE(inbox.is_empty());
}

}  // namespace
}  // namespace chime::test
