// SPDX-License-Identifier: MIT
#pragma once

#include "support/plan.hpp"

#include <cstdint>
#include <functional>

namespace chime_bench {

/// Runs a measurement in a process of its own, so that its memory and processor time are nobody else's. A measurement that
/// crashes or writes nothing gives an outcome with an error. Must be called while this process has one thread.
[[nodiscard]] outcome run_forked(const std::function<outcome()>& measure);

/// What this process has in memory now, and the most it ever had.
[[nodiscard]] std::uint64_t resident_bytes();
[[nodiscard]] std::uint64_t peak_resident_bytes();

/// Lets the peak count anew from what is in memory now. A forked process begins with its parent's.
void forget_peak();

/// User and system time of all threads of this process.
[[nodiscard]] std::int64_t all_threads_time_ns();

}  // namespace chime_bench
