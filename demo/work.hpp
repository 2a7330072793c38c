// SPDX-License-Identifier: MIT
#pragma once

#include "results.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace chime_demo {

using clock = std::chrono::steady_clock;

/// Set by the signal of Ctrl-C; everything long looks at it every now and then.
inline std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");

/// What there is to do; the same for both sides.
struct work {
    std::chrono::nanoseconds longest_sleep;
    std::size_t sleepers;
    unsigned workers;

    /// How long sleeper number `which` sleeps: at random, but not so short that the first wakes before the last has begun.
    [[nodiscard]] std::chrono::nanoseconds sleep_of(std::size_t which) const {
        return between(longest_sleep / 10, longest_sleep, which);
    }

    /// There are as many timeouts as sleepers, of up to a second. A few are over before they are cancelled.
    [[nodiscard]] static std::chrono::nanoseconds timeout_of(std::size_t which) {
        return between(std::chrono::milliseconds{10}, std::chrono::seconds{1}, ~which);
    }

 private:
    /// A number is mixed into a random one, so that nobody has to remember what was drawn.
    static std::chrono::nanoseconds between(std::chrono::nanoseconds least, std::chrono::nanoseconds most,
                                            std::uint64_t which) {
        std::uint64_t bits = (which + 1) * 0x9e3779b97f4a7c15;
        bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9;
        bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111eb;
        bits ^= bits >> 31U;
        const double share = static_cast<double>(bits >> 11U) / static_cast<double>(std::uint64_t{1} << 53U);
        return least +
               std::chrono::nanoseconds{static_cast<std::int64_t>(share * static_cast<double>((most - least).count()))};
    }
};

/// Counts what sleepers and timeouts tell, from any thread; the same for both sides, so that the numbers compare.
///
/// Each thread writes to a part of its own. Sums are exact when all is over.
class witness {
 public:
    void started() noexcept { add(mine().started); }
    void woke(clock::time_point deadline) noexcept {
        note_lateness(deadline);
        add(mine().woken);
    }
    void sent_home() noexcept { add(mine().sent_home); }
    void expired(clock::time_point deadline) noexcept {
        note_lateness(deadline);
        add(mine().expired);
    }
    void aborted() noexcept { add(mine().aborted); }
    void armed(std::uint64_t count) noexcept { add(mine().armed, count); }
    void cancelled(std::uint64_t count) noexcept { add(mine().cancelled, count); }

    [[nodiscard]] counts sum() const noexcept {
        counts total;
        for (const part& each : parts_) {
            total.started += read(each.started);
            total.woken += read(each.woken);
            total.sent_home += read(each.sent_home);
            total.armed += read(each.armed);
            total.expired += read(each.expired);
            total.cancelled += read(each.cancelled);
            total.aborted += read(each.aborted);
            total.early += read(each.early);
            for (std::size_t i = 0; i < lateness::bucket_count; ++i) total.late.buckets[i] += read(each.late[i]);
        }
        return total;
    }

 private:
    using number = std::atomic<std::uint64_t>;
    struct alignas(64) part {
        number started{0}, woken{0}, sent_home{0}, armed{0}, expired{0}, cancelled{0}, aborted{0}, early{0};
        std::array<number, lateness::bucket_count> late{};
    };
    static constexpr std::size_t part_count = 128;

    // Relaxed: these are sums; whoever needs them exact has waited for the threads.
    static void add(number& to, std::uint64_t count = 1) noexcept { to.fetch_add(count, std::memory_order_relaxed); }
    static std::uint64_t read(const number& from) noexcept { return from.load(std::memory_order_relaxed); }

    void note_lateness(clock::time_point deadline) noexcept {
        const std::chrono::nanoseconds late = clock::now() - deadline;
        if (late < std::chrono::nanoseconds{0}) add(mine().early);
        add(mine().late[lateness::bucket_of(late)]);
    }

    part& mine() noexcept {
        static std::atomic<std::size_t> next{0};
        thread_local const std::size_t which = next.fetch_add(1, std::memory_order_relaxed) % part_count;
        return parts_[which];
    }

    std::vector<part> parts_ = std::vector<part>(part_count);
};

}  // namespace chime_demo
