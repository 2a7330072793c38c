// SPDX-License-Identifier: MIT
//
// Lives are never used twice: a record or slot that has used up its own is retired. Here they have sixteen.

#include "worker/crew.hpp"

#include <chime/detail/arming.hpp>
#include <chime/detail/closure.hpp>
#include <chime/task.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

constexpr std::size_t unit_count = 64;
constexpr std::uint64_t lives = 16;

detail::worker_settings short_lived() {
    detail::worker_settings settings;
    settings.max_timers = unit_count;
    settings.max_tasks = unit_count;
    settings.life_limit = lives;
    return settings;
}

/// A worker that this thread drives, and whose turn it pretends to be in.
class driven_worker {
 public:
    driven_worker() {
        if (!crew_.first().try_begin_drive()) std::abort();
        before_ = detail::worker::exchange_current(&crew_.first());
    }
    ~driven_worker() {
        detail::worker::exchange_current(before_);
        crew_.first().end_drive();
    }
    detail::crew* operator->() { return &crew_; }
    void turn() { crew_.first().turn({.is_leaving = is_leaving_, .is_bounded = false}); }

    /// Arms a function at a time; names nothing: refused.
    template <class Function>
    timer_handle arm(time_point deadline, Function function) {
        const detail::arming begun = crew_.begin_arming();
        if (begun.closure == nullptr) return {};
        using kept = detail::closure_in<Function, detail::closure_bytes>;
        kept::put(begun.closure, std::move(function));
        return crew_.arm(begun.index, kept::operations, detail::wait_limit::at(deadline));
    }

 private:
    detail::crew crew_{short_lived()};
    base::atomic<bool> is_leaving_{false};
    detail::worker* before_ = nullptr;
};

time_point far_away() {
    return clock::now() + std::chrono::hours{1};
}

TEST(life_limit, a_record_is_cancelled_so_many_times_and_then_retired) {
    driven_worker worker;
    std::set<timer_handle> used;
    for (;;) {
        const timer_handle which = worker.arm(far_away(), [] {});
        if (!which) break;
        ASSERT_TRUE(used.insert(which).second) << "a name was used twice";
        ASSERT_LT(which.timer_id(), lives);
        ASSERT_EQ(worker->cancel(which), cancel_result::cancelled);
        ASSERT_LE(used.size(), unit_count * lives);
    }
    EXPECT_EQ(used.size(), unit_count * lives);
    EXPECT_EQ(worker->stats().refused, 1U);
    EXPECT_EQ(worker->stats().pending, 0U);
    for (const timer_handle stale : used) {
        EXPECT_EQ(worker->cancel(stale), cancel_result::gone);
        EXPECT_EQ(worker->cancel_and_wait(stale), cancel_result::gone);
        EXPECT_FALSE(worker->postpone(stale, detail::wait_limit::at(never)));
    }
}

TEST(life_limit, a_record_fires_so_many_times_and_then_is_retired) {
    driven_worker worker;
    std::uint64_t fired = 0;
    std::vector<timer_handle> used;
    for (;;) {
        const std::size_t before = used.size();
        for (std::size_t i = 0; i < unit_count; ++i) {
            const timer_handle which = worker.arm(clock::now(), [&] { ++fired; });
            if (which) used.push_back(which);
        }
        if (used.size() == before) break;
        while (fired != used.size()) worker.turn();
        ASSERT_LE(used.size(), unit_count * lives);
    }
    EXPECT_EQ(used.size(), unit_count * lives);
    std::sort(used.begin(), used.end());
    EXPECT_EQ(std::adjacent_find(used.begin(), used.end()), used.end()) << "a name was used twice";
    for (const timer_handle stale : used) EXPECT_EQ(worker->cancel(stale), cancel_result::gone);
    const timer_stats sums = worker->stats();
    EXPECT_EQ(sums.armed, sums.fired + sums.cancelled + sums.pending);
}

TEST(life_limit, a_stale_handle_never_names_the_next_life) {
    driven_worker worker;
    std::vector<timer_handle> stale;
    std::uint64_t fired = 0;
    for (std::uint64_t life = 0; life < lives; ++life) {
        std::vector<timer_handle> armed;
        for (std::size_t i = 0; i < unit_count; ++i) armed.push_back(worker.arm(far_away(), [&] { ++fired; }));
        EXPECT_FALSE(worker.arm(far_away(), [] {})) << "the cap is exceeded";
        for (const timer_handle old : stale) {
            ASSERT_EQ(worker->cancel(old), cancel_result::gone);
            ASSERT_FALSE(worker->postpone(old, detail::wait_limit::at(clock::now())));
        }
        ASSERT_EQ(worker->stats().pending, unit_count) << "an old name ended a new timer";
        for (const timer_handle each : armed) ASSERT_EQ(worker->cancel(each), cancel_result::cancelled);
        stale.insert(stale.end(), armed.begin(), armed.end());
    }
    EXPECT_FALSE(worker.arm(far_away(), [] {})) << "all of them are retired";
    EXPECT_EQ(fired, 0U);
}

task<> count_a_run(std::uint64_t& runs) {
    ++runs;
    co_return;
}

/// True if the worker has accepted it.
bool spawn_on(driven_worker& worker, task<> spawned) {
    const auto frame = detail::task_access::release(spawned);
    if (worker->spawn(frame, nullptr, nullptr)) return true;
    frame.destroy();
    return false;
}

TEST(life_limit, a_task_slot_is_used_so_many_times_and_then_retired) {
    driven_worker worker;
    std::uint64_t runs = 0;
    std::uint64_t accepted = 0;
    while (spawn_on(worker, count_a_run(runs))) {
        ASSERT_LE(++accepted, unit_count * lives);
        while (runs != accepted) worker.turn();
    }
    EXPECT_EQ(accepted, unit_count * lives);
    const timer_stats sums = worker->stats();
    EXPECT_EQ(sums.tasks, 0U);
    EXPECT_EQ(sums.suspensions, sums.resumed() + sums.destroyed + sums.waiting);
    // Whatever suspension somebody may remember, nobody is there any more.
    for (std::uint32_t index = 0; index < unit_count * 2; ++index) {
        for (std::uint64_t life = 0; life < 2 * lives; ++life) {
            const timer_handle forged{.life = life, .index = index | (1U << 31U), .runtime = worker->identity()};
            ASSERT_EQ(worker->cancel(forged), cancel_result::gone);
            ASSERT_FALSE(worker->postpone(forged, detail::wait_limit::at(never)));
        }
    }
}

TEST(life_limit, forged_names_of_records_are_harmless) {
    driven_worker worker;
    const timer_handle only = worker.arm(far_away(), [] {});
    for (std::uint32_t index = 0; index < 1'000; ++index) {
        for (std::uint64_t life = 0; life < 4; ++life) {
            const timer_handle forged{.life = life, .index = index, .runtime = worker->identity()};
            if (forged == only) continue;
            ASSERT_EQ(worker->cancel(forged), cancel_result::gone);
            ASSERT_FALSE(worker->postpone(forged, detail::wait_limit::at(clock::now())));
        }
    }
    timer_handle foreign = only;
    ++foreign.runtime;
    EXPECT_EQ(worker->cancel(foreign), cancel_result::gone);
    EXPECT_EQ(worker->cancel(only), cancel_result::cancelled);
}

}  // namespace
}  // namespace chime::test
