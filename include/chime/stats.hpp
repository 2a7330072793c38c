// SPDX-License-Identifier: MIT
#pragma once

#include <chime/detail/export.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace chime {
inline namespace v0 {

/// How late things were: how often less than 1 ns, 2 ns, 4 ns, and so on.
struct lateness_histogram {
    static constexpr std::size_t bucket_count = 64;

    /// Bucket b counts what was late by less than 2^b ns; the last one is for what was early, and is always empty.
    std::array<std::uint64_t, bucket_count> buckets{};
    std::chrono::nanoseconds max{};

    [[nodiscard]] CHIME_API std::uint64_t count() const noexcept;

    /// At most this late were `fraction` (0.5, 0.99, 0.999) of all, rounded up to the end of a bucket or to `max`,
    /// whichever is less; zero if there were none.
    [[nodiscard]] CHIME_API std::chrono::nanoseconds quantile(double fraction) const noexcept;
};

/// What has happened in a context or runtime so far. Read it from any thread at any time; exact when nothing is going
/// on: then `armed == fired + cancelled + pending` and `suspensions == resumed() + destroyed + waiting`.
struct timer_stats {
    std::uint64_t armed = 0;  ///< Callbacks and sleeps; every tick of a periodic one counts.
    std::uint64_t fired = 0;
    std::uint64_t cancelled = 0;
    std::uint64_t postponed = 0;
    std::uint64_t pending = 0;
    std::uint64_t refused = 0;  ///< Because of the cap, or because everything stops.

    std::uint64_t tasks = 0;  ///< Now alive.
    std::uint64_t suspensions = 0;
    std::uint64_t resumed_by_timer = 0;
    std::uint64_t resumed_by_cancel = 0;
    std::uint64_t resumed_by_completion = 0;  ///< A join, a job, a yield.
    std::uint64_t resumed_by_shutdown = 0;
    std::uint64_t destroyed = 0;       ///< While suspended.
    std::uint64_t waiting = 0;         ///< Now suspended.
    std::uint64_t resumed_inline = 0;  ///< From the timer straight to the task.
    std::uint64_t resumed_queued = 0;
    std::uint64_t stolen = 0;    ///< Ready tasks that a worker took over from another one.
    std::uint64_t migrated = 0;  ///< Timers and sleepers that left a worker because it retired,
    std::uint64_t adopted = 0;   ///< and that another one took over.

    std::uint64_t tickets = 0;  ///< Now in the wheel, live and stale.
    std::uint64_t stale_tickets = 0;
    std::uint64_t stale_dropped = 0;  ///< Stale tickets met when their time came.
    std::uint64_t stale_vacant = 0;  ///< Of these, those whose record or slot was empty; the others had a later ticket.
    std::uint64_t compactions = 0;   ///< Slots of the wheel that were rid of stale tickets on their way down.
    std::uint64_t stale_cancelled = 0;  ///< Timers met when they were due, but cancelled a moment before.
    std::uint64_t scrubbed = 0;         ///< Stale tickets removed before their time came.
    std::uint64_t cascaded = 0;

    std::uint64_t turns = 0;
    std::uint64_t parks = 0;         ///< How often the loop went to sleep,
    std::uint64_t wakeups = 0;       ///< was woken by another thread,
    std::uint64_t idle_wakeups = 0;  ///< and found nothing to do, for whatever reason it woke.
    std::uint64_t commands = 0;      ///< From other threads.

    std::chrono::nanoseconds longest_callback{};  ///< Only if callbacks are timed.
    std::chrono::nanoseconds longest_turn{};      ///< Only if callbacks are timed.
    lateness_histogram lateness;

    /// What has happened since `before`: takes its counts away. What is so *now* stays as it was read last: `pending`,
    /// `tasks`, `waiting`, `tickets`, `stale_tickets`. So does what is measured and not counted: the longest and the latest.
    CHIME_API timer_stats& operator-=(const timer_stats& before) noexcept;

    /// After how many of its sleeps the loop had something to do.
    [[nodiscard]] std::uint64_t useful_wakeups() const noexcept {
        return parks - (idle_wakeups < parks ? idle_wakeups : parks);
    }
    [[nodiscard]] std::uint64_t resumed() const noexcept {
        return resumed_by_timer + resumed_by_cancel + resumed_by_completion + resumed_by_shutdown;
    }
};

}  // namespace v0
}  // namespace chime
