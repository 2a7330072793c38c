// SPDX-License-Identifier: MIT
//
// The memory of frames, where a thread gets none to keep any of it.

#include "faults/injection.hpp"

#include <chime/detail/frame_memory.hpp>
#include <chime/io_context.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <thread>

namespace chime::test {
namespace {

TEST(frame_memory_without_memory, a_thread_that_can_keep_nothing_gives_to_the_others_and_takes_from_them) {
    constexpr std::size_t bytes = 200;
    std::array<void*, 40> blocks{};
    for (void*& each : blocks) each = detail::take_frame(bytes);
    std::thread([&] {
        faults::allocations.fail_after(0);
        detail::prepare_frames();
        for (void* const each : blocks) detail::give_frame(each, bytes);
        for (void*& each : blocks) each = detail::take_frame(bytes);  // Those that were given, or others.
        faults::allocations.recover();
        EXPECT_GT(faults::allocations.refusals(), 0U) << "there was memory to keep some";
    }).join();
    for (void* const each : blocks) std::memset(each, 0x5A, bytes);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        for (std::size_t other = 0; other < i; ++other) ASSERT_NE(blocks[i], blocks[other]) << "given twice";
    }
    for (void* const each : blocks) detail::give_frame(each, bytes);
}

/// So that others find some.
void stock_depot(std::size_t bytes) {
    std::thread([bytes] {
        std::array<void*, 64> blocks{};
        for (void*& each : blocks) each = detail::take_frame(bytes);
        for (void* const each : blocks) detail::give_frame(each, bytes);
    }).join();
}

TEST(frame_memory_without_memory, a_thread_that_drives_a_loop_has_got_all_it_needs_when_it_begins) {
    constexpr std::size_t bytes = 300;
    stock_depot(bytes);
    io_context context;
    std::thread([&] {
        context.poll();
        faults::allocations.fail_after(0);
        detail::give_frame(detail::take_frame(bytes), bytes);
        faults::allocations.recover();
    }).join();
    EXPECT_EQ(faults::allocations.refusals(), 0U) << "it has asked for memory later";
}

TEST(frame_memory_without_memory, a_thread_that_only_gives_back_a_few_asks_for_none) {
    constexpr std::size_t bytes = 400;
    std::array<void*, 20> blocks{};
    for (void*& each : blocks) each = detail::take_frame(bytes);
    std::thread([&] {
        faults::allocations.fail_after(0);
        for (void* const each : blocks) detail::give_frame(each, bytes);
        faults::allocations.recover();
    }).join();
    EXPECT_EQ(faults::allocations.refusals(), 0U) << "for what it does not keep";
}

}  // namespace
}  // namespace chime::test
