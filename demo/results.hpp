// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace chime_demo {

/// How late things were: eight buckets for every power of two.
struct lateness {
    static constexpr std::size_t bucket_count = 320;

    std::array<std::uint64_t, bucket_count> buckets{};

    [[nodiscard]] static std::size_t bucket_of(std::chrono::nanoseconds late) noexcept;
    /// Where a bucket ends.
    [[nodiscard]] static std::chrono::nanoseconds end_of(std::size_t bucket) noexcept;

    [[nodiscard]] std::uint64_t count() const noexcept;
    /// How many were less late than this, which must be a power of two of nanoseconds.
    [[nodiscard]] std::uint64_t count_below(std::chrono::nanoseconds limit) const noexcept;
    /// At most this late were `fraction` of all, rounded up to the end of a bucket; zero if there were none.
    [[nodiscard]] std::chrono::nanoseconds quantile(double fraction) const noexcept;
};

/// What sleepers and timeouts have told about themselves.
struct counts {
    std::uint64_t started = 0;    ///< Sleepers that have begun,
    std::uint64_t woken = 0;      ///< have slept as long as they wanted,
    std::uint64_t sent_home = 0;  ///< or were told to end before.
    std::uint64_t armed = 0;      ///< Timeouts,
    std::uint64_t expired = 0;    ///< whose callback has run,
    std::uint64_t cancelled = 0;  ///< or of which cancel said that it never will.
    std::uint64_t aborted = 0;    ///< Callbacks that were only told of a cancel.
    std::uint64_t early = 0;
    lateness late;
};

/// What the runtime itself says at the end.
struct ledger {
    bool is_there = false;  ///< Only chime keeps one.
    std::uint64_t armed = 0, fired = 0, cancelled = 0, pending = 0;
    std::uint64_t tasks_left = 0;
    std::uint64_t workers_added = 0, workers_retired = 0;
    std::uint64_t moved = 0;  ///< Timers and sleepers that a worker left to others when it retired.

    [[nodiscard]] bool is_balanced() const noexcept { return armed == fired + cancelled + pending; }
};

/// What came of one side's run. Plain data: it comes from another process.
struct results {
    bool is_there = false;     ///< False: this side was not run.
    bool is_complete = false;  ///< False: it was stopped by Ctrl-C.
    counts seen;
    chime_demo::ledger ledger;
    std::chrono::nanoseconds starting{};  ///< Until all sleepers had begun.
    std::chrono::nanoseconds elapsed{};   ///< Until the last had woken and the last timeout was over.
    std::chrono::nanoseconds processor_time{};
    std::uint64_t peak_bytes = 0;  ///< Of memory, beyond what the program had before.
};

}  // namespace chime_demo
