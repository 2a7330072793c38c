// SPDX-License-Identifier: MIT
#pragma once

#include "support/lateness.hpp"
#include "support/listed.hpp"

#include <chime/io_context.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace chime::test {

/// What must hold at every quiet moment, whatever happened before: nobody in user code, nothing on its way between
/// threads. Call it at the end of a test, when the loop has come to rest.
inline void check_ledger(io_context& context) {
    const timer_stats sums = context.timers().stats();
    EXPECT_EQ(sums.armed, sums.fired + sums.cancelled + sums.pending) << "L1: a timer was lost or counted twice";
    EXPECT_EQ(sums.suspensions, sums.resumed() + sums.destroyed + sums.waiting)
        << "L2: a resumption was lost or doubled";
    EXPECT_EQ(sums.resumed_inline + sums.resumed_queued <= sums.resumed(), true) << "L2: resumed by nobody";
    EXPECT_LE(sums.stale_tickets, std::max<std::uint64_t>(4096, sums.pending)) << "L6: stale tickets pile up";
    EXPECT_EQ(sums.lateness.count(), sums.fired) << "L3: fired without a deadline that had passed";
    EXPECT_EQ(count_early(sums.lateness), 0U) << "L3: fired before its deadline";
    EXPECT_TRUE(is_max_sane(sums.lateness)) << "L3: the latest one was late by " << sums.lateness.max.count() << " ns";
    EXPECT_TRUE(is_count_listed(context, [&] { return context.timers().stats().pending; }))
        << "L1: what is counted is not what the records say";
}

/// The same for a loop that has nothing left to do.
inline void check_ledger_at_rest(io_context& context) {
    check_ledger(context);
    const timer_stats sums = context.timers().stats();
    EXPECT_EQ(sums.pending, 0U) << "L5: something is pending, but the loop is out of work";
    EXPECT_EQ(sums.tasks, 0U);
    EXPECT_EQ(sums.waiting, 0U);
}

}  // namespace chime::test
