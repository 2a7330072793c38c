// SPDX-License-Identifier: MIT
#pragma once

#include "support/plan.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace chime_bench {

/// Runs a measurement in a process of its own, so that its memory and processor time are nobody else's. A measurement that
/// crashes or writes nothing gives an outcome with an error. Must be called while this process has one thread.
[[nodiscard]] outcome run_forked(const std::function<outcome()>& measure);

/// Runs a program that writes an outcome to its standard output, as text: the time of all operations, the error or an empty
/// line, the early ones, and a figure per line. One that cannot be run gives an outcome with an error.
[[nodiscard]] outcome run_program(const std::vector<std::string>& command);

/// What a program writes to its standard output; empty if it cannot be run.
[[nodiscard]] std::string output_of(const std::vector<std::string>& command);

/// Starts a program that never ends by itself, lets it settle, watches it for a while and kills it: the wake-ups of all its
/// threads, a second.
[[nodiscard]] double wakeups_of_program(const std::vector<std::string>& command);

/// Voluntary context switches of all threads of a process but those in `except`, so far.
[[nodiscard]] std::uint64_t context_switches(const std::string& process, const std::string& except = {});

/// What this process has in memory now, and the most it ever had.
[[nodiscard]] std::uint64_t resident_bytes();
[[nodiscard]] std::uint64_t peak_resident_bytes();

/// Lets the peak count anew from what is in memory now. A forked process begins with its parent's.
void forget_peak();

/// User and system time of all threads of this process.
[[nodiscard]] std::int64_t all_threads_time_ns();

}  // namespace chime_bench
