// SPDX-License-Identifier: MIT
//
// Makes what the library asks of the system fail when it is told to. The linker leads the library's calls here
// (`--wrap`), and operator new is replaced; a build of the library without these tests knows nothing of it.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <new>

namespace chime::test {

/// One kind of request that can be made to fail. Any thread.
class failing_point {
 public:
    /// So many more requests succeed; all later ones fail until recover().
    void fail_after(std::uint64_t successes) { begin(successes, std::numeric_limits<std::uint64_t>::max()); }
    /// So many more requests succeed, the next one fails, all later ones succeed again.
    void fail_only(std::uint64_t successes) { begin(successes, 1); }
    /// One request in so many fails, as if drawn, until recover().
    void fail_one_in(std::uint64_t odds) { begin(0, std::numeric_limits<std::uint64_t>::max(), odds); }
    void recover() { is_active_.store(false); }

    /// One request: true if it has to fail.
    bool is_refused() noexcept {
        if (!is_active_.load(std::memory_order_relaxed)) return false;
        const std::uint64_t number = requests_.fetch_add(1);
        if (number < first_.load() || number - first_.load() >= count_.load()) return false;
        if (((number * 0x9e3779b97f4a7c15U) >> 32U) % odds_.load() != 0) return false;
        refusals_.fetch_add(1);
        return true;
    }

    /// Since it was told to fail.
    [[nodiscard]] std::uint64_t refusals() const noexcept { return refusals_.load(); }

 private:
    void begin(std::uint64_t first, std::uint64_t count, std::uint64_t odds = 1) {
        requests_ = 0;
        refusals_ = 0;
        first_ = first;
        count_ = count;
        odds_ = odds;
        is_active_ = true;
    }

    std::atomic<bool> is_active_{false};
    std::atomic<std::uint64_t> requests_{0};
    std::atomic<std::uint64_t> first_{0};
    std::atomic<std::uint64_t> count_{0};
    std::atomic<std::uint64_t> odds_{1};
    std::atomic<std::uint64_t> refusals_{0};
};

namespace faults {

extern failing_point allocations;  ///< operator new; not under the thread sanitizer, which has its own.
extern failing_point frames;       ///< What comes out of the pool for frames and closures, however full that is.
extern failing_point mappings;     ///< mmap: a range of addresses is reserved.
extern failing_point commits;      ///< mprotect: memory is put behind it.
extern failing_point unmappings;   ///< munmap.
extern failing_point threads;      ///< A thread is started.
extern failing_point descriptors;  ///< eventfd, timerfd_create, epoll_create1.
extern failing_point watches;      ///< epoll_ctl.

/// One in so many calls of this kind is interrupted, or returns early for no reason; 0: none.
extern std::atomic<std::uint32_t> futex_storm;
extern std::atomic<std::uint32_t> transfer_storm;  ///< read and write.
extern std::atomic<std::uint64_t> interruptions;   ///< How many calls that were.

extern std::atomic<std::int64_t> live_blocks;   ///< Of operator new, now.
extern std::atomic<std::int64_t> mapped_bytes;  ///< Of addresses, now.

}  // namespace faults

/// Lets the first request of this kind fail, then the second, and so on, until the attempt meets no failure any more: once
/// with all later ones failing, too, and once with only that one. After each, `is_unchanged` looks at what is left.
/// An attempt that cannot do without answers with an exception of type Refusal. Answers how many there were.
template <class Refusal = std::bad_alloc, class Attempt, class Check>
std::uint64_t fail_at_each(failing_point& point, const Attempt& attempt, const Check& is_unchanged) {
    constexpr std::uint64_t most = 10'000;
    std::uint64_t refused = 0;
    for (const bool is_only : {false, true}) {
        for (std::uint64_t successes = 0;; ++successes) {
            if (successes == most) {
                ADD_FAILURE() << "it meets a failure however many requests succeed before";
                return refused;
            }
            bool is_through = true;
            is_only ? point.fail_only(successes) : point.fail_after(successes);
            try {
                attempt();
            } catch (const Refusal&) {
                is_through = false;
            }
            point.recover();
            SCOPED_TRACE(::testing::Message() << "request " << successes << (is_only ? " alone" : " and all later ones")
                                              << " failed, " << (is_through ? "came through" : "was refused"));
            EXPECT_TRUE(is_through || point.refusals() != 0) << "refused without a reason";
            refused += is_through ? 0 : 1;
            is_unchanged(is_through);
            if (::testing::Test::HasFailure()) return refused;
            if (point.refusals() == 0) break;
        }
    }
    return refused;
}

}  // namespace chime::test
