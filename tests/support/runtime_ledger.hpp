// SPDX-License-Identifier: MIT
#pragma once

#include "support/lateness.hpp"
#include "support/listed.hpp"

#include <chime/runtime.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace chime::test {

/// What must hold at every quiet moment, over all workers, those that have retired included: nobody in user code,
/// nothing on its way between threads.
inline void check_ledger_at_rest(const runtime& checked) {
    const runtime_stats all = checked.stats();
    const timer_stats& sums = all.timers;
    EXPECT_EQ(sums.armed, sums.fired + sums.cancelled + sums.pending) << "L1: a timer was lost or counted twice";
    EXPECT_EQ(sums.suspensions, sums.resumed() + sums.destroyed + sums.waiting)
        << "L2: a resumption was lost or doubled";
    EXPECT_LE(sums.resumed_inline + sums.resumed_queued, sums.resumed()) << "L2: resumed by nobody";
    EXPECT_EQ(sums.lateness.count(), sums.fired) << "L3: fired without a deadline that had passed";
    EXPECT_EQ(count_early(sums.lateness), 0U) << "L3: fired before its deadline";
    EXPECT_TRUE(is_max_sane(sums.lateness)) << "L3: the latest one was late by " << sums.lateness.max.count() << " ns";
    const std::uint64_t most_stale = 4096 * (all.workers_added - all.workers_retired);
    EXPECT_LE(sums.stale_tickets, std::max(most_stale, sums.pending)) << "L6: stale tickets pile up";
    EXPECT_TRUE(is_count_listed(checked, [&] { return checked.stats().timers.pending; }))
        << "L1: what is counted is not what the records say";
    EXPECT_EQ(sums.migrated, sums.adopted) << "L7: given away, and taken by nobody";
}

/// Shuts it down and looks at what is left: nothing.
inline void check_ledger_after_shutdown(runtime& checked) {
    checked.shutdown();
    check_ledger_at_rest(checked);
    const runtime_stats all = checked.stats();
    EXPECT_EQ(all.timers.pending, 0U) << "L9: a timer is left";
    EXPECT_EQ(all.timers.tasks, 0U) << "L9: a task is left";
    EXPECT_EQ(all.timers.waiting, 0U) << "L9: somebody still waits";
    EXPECT_TRUE(all.workers.empty()) << "L9: a thread is left";
}

}  // namespace chime::test
