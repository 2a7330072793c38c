// SPDX-License-Identifier: MIT
#include "support/random.hpp"

#include <chime/detail/frame_memory.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using detail::give_frame;
using detail::take_frame;

/// A block that knows what was written into it.
struct marked_block {
    unsigned char* memory = nullptr;
    std::size_t bytes = 0;
    unsigned char mark = 0;

    static marked_block take(std::size_t bytes, unsigned char mark) {
        auto* const memory = static_cast<unsigned char*>(take_frame(bytes));
        std::memset(memory, mark, bytes);
        return {memory, bytes, mark};
    }
    [[nodiscard]] bool is_intact() const {
        return std::all_of(memory, memory + bytes, [this](unsigned char each) { return each == mark; });
    }
    void give() const { give_frame(memory, bytes); }
};

TEST(frame_memory, blocks_of_every_size_are_aligned_distinct_and_wholly_usable) {
    std::vector<marked_block> blocks;
    for (std::size_t bytes = 1; bytes <= 2'000; ++bytes) {
        for (int i = 0; i < 3; ++i) {
            blocks.push_back(
                marked_block::take(bytes, static_cast<unsigned char>(bytes * 3 + static_cast<unsigned>(i))));
            ASSERT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().memory) % detail::frame_alignment, 0U) << bytes;
        }
    }
    for (const marked_block& each : blocks) ASSERT_TRUE(each.is_intact()) << each.bytes;
    std::sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) { return a.memory < b.memory; });
    for (std::size_t i = 0; i + 1 < blocks.size(); ++i) {
        ASSERT_LE(blocks[i].memory + blocks[i].bytes, blocks[i + 1].memory) << "two blocks overlap";
    }
    for (const marked_block& each : blocks) each.give();
}

TEST(frame_memory, agrees_with_a_model_that_remembers_everything) {
    random_source random(process_seed());
    std::vector<marked_block> held;
    for (std::uint64_t round = 0; round < scaled(300'000); ++round) {
        if (held.size() < 2'000 && (held.empty() || random.one_in(2) || round % 10'000 < 2'000)) {
            const std::size_t bytes = random.one_in(20) ? 1 + random.below(2'000) : 1 + random.below(300);
            held.push_back(marked_block::take(bytes, static_cast<unsigned char>(random.next())));
        } else {
            std::swap(held[random.below(held.size())], held.back());
            ASSERT_TRUE(held.back().is_intact()) << "somebody else wrote into it; " << replay_hint();
            held.back().give();
            held.pop_back();
        }
    }
    for (const marked_block& each : held) {
        ASSERT_TRUE(each.is_intact()) << replay_hint();
        each.give();
    }
}

TEST(frame_memory, what_one_thread_takes_another_may_give_back) {
    constexpr std::size_t bytes = 208;
    std::vector<marked_block> blocks;
    const auto take_many = [&] {
        for (int i = 0; i < 5'000; ++i) blocks.push_back(marked_block::take(bytes, static_cast<unsigned char>(i)));
    };
    std::set<const void*> first;
    std::set<const void*> later;
    for (int round = 0; round < 20; ++round) {
        take_many();
        for (const marked_block& each : blocks) {
            ASSERT_TRUE(each.is_intact());
            (round == 0 ? first : later).insert(each.memory);
        }
        std::thread([&] {
            for (const marked_block& each : blocks) each.give();
        }).join();
        blocks.clear();
    }
    EXPECT_EQ(first.size(), 5'000U);
    later.insert(first.begin(), first.end());
    EXPECT_LE(later.size(), 6'000U) << "what was given back elsewhere does not find its way back";
}

TEST(frame_memory, a_thread_that_ends_leaves_its_blocks_to_the_others) {
    constexpr std::size_t bytes = 176;
    std::set<const void*> early;
    std::set<const void*> all;
    for (int round = 0; round < 200; ++round) {
        std::vector<marked_block> kept;
        std::thread([&] {
            std::vector<marked_block> own;
            for (int i = 0; i < 300; ++i) own.push_back(marked_block::take(bytes, static_cast<unsigned char>(i)));
            for (const marked_block& each : own) {
                all.insert(each.memory);
                if (round < 20) early.insert(each.memory);
            }
            for (std::size_t i = 0; i < own.size(); i += 2) own[i].give();
            for (std::size_t i = 1; i < own.size(); i += 2) kept.push_back(own[i]);
        }).join();
        // Its blocks outlive it, and are given back by another one.
        for (const marked_block& each : kept) {
            ASSERT_TRUE(each.is_intact());
            each.give();
        }
    }
    EXPECT_LE(all.size(), early.size() + 1'000) << "every thread that ends takes memory with it";
}

TEST(frame_memory, blocks_wander_between_threads_that_take_and_give) {
    struct exchange {
        std::atomic<unsigned char*> place{nullptr};
    };
    constexpr std::size_t bytes = 96;
    std::vector<exchange> places(64);
    std::atomic<std::uint64_t> broken{0};
    const auto wander = [&](std::uint64_t seed) {
        random_source random(seed);
        for (std::uint64_t round = 0; round < scaled(200'000); ++round) {
            auto* const mine = static_cast<unsigned char*>(take_frame(bytes));
            std::memset(mine, static_cast<int>(seed), bytes);
            unsigned char* const other = places[random.below(places.size())].place.exchange(mine);
            if (other == nullptr) continue;
            broken += std::all_of(other, other + bytes, [&](unsigned char each) { return each == *other; }) ? 0U : 1U;
            give_frame(other, bytes);
        }
    };
    std::vector<std::thread> threads;
    for (std::uint64_t number = 1; number <= 3; ++number) threads.emplace_back(wander, number);
    for (std::thread& each : threads) each.join();
    for (exchange& each : places) {
        if (unsigned char* const left = each.place.load()) give_frame(left, bytes);
    }
    EXPECT_EQ(broken.load(), 0U);
}

}  // namespace
}  // namespace chime::test
