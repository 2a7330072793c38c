// SPDX-License-Identifier: MIT
#pragma once

#include "faults/injection.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <thread>

namespace chime::test {

/// What a process holds now: to be compared with what it holds when something has failed.
class wreckage {
 public:
    wreckage() : now_(count()) {}

    /// Pools of frames are kept for the life of the process: a few slabs may have been added.
    void expect_nothing_more() const {
        constexpr std::int64_t slabs = 6;
        counts after = count();
        // A thread that was joined may still be listed for a moment.
        for (int looks = 0; looks < 200 && after.threads > now_.threads; ++looks) {
            std::this_thread::sleep_for(std::chrono::milliseconds{5});
            after = count();
        }
        EXPECT_LE(after.blocks, now_.blocks + slabs) << "memory is left";
        EXPECT_EQ(after.mapped_bytes, now_.mapped_bytes) << "addresses are left";
        EXPECT_LE(after.descriptors, now_.descriptors) << "a descriptor is left";
        EXPECT_LE(after.threads, now_.threads) << "a thread is left";
    }

 private:
    struct counts {
        std::int64_t blocks;
        std::int64_t mapped_bytes;
        std::int64_t descriptors;
        std::int64_t threads;
    };

    static std::int64_t entries_of(const char* folder) {
        const std::filesystem::directory_iterator entries(folder);
        return std::distance(begin(entries), end(entries));
    }

    static counts count() {
        return {.blocks = faults::live_blocks.load(),
                .mapped_bytes = faults::mapped_bytes.load(),
                .descriptors = entries_of("/proc/self/fd"),
                .threads = entries_of("/proc/self/task")};
    }

    counts now_;
};

}  // namespace chime::test
