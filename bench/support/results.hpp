// SPDX-License-Identifier: MIT
#pragma once

#include "support/plan.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace chime_bench {

/// The repetitions of one workload with one contender at one N, summed up.
struct row {
    std::string workload;
    std::string contender;
    std::uint64_t n = 0;
    unsigned threads = 1;
    std::string unit = "ns";
    std::vector<double> nanoseconds;  ///< Per operation, one number per repetition, sorted; or what the unit says.
    double early = 0;                 ///< The share of timers that fired before their deadline.
    std::vector<figure> figures;      ///< What was measured beside the time: medians.

    [[nodiscard]] double median() const;
    [[nodiscard]] double min() const { return nanoseconds.front(); }
};

/// What a reader has to know about a contender.
struct contender_facts {
    std::string name;
    std::string version;
    std::string clock_reads;
};

/// What a reader has to know about a workload.
struct workload_facts {
    std::string name;
    std::string one_operation;
    std::string unit = "ns";  ///< Of what is shown.
};

/// Everything that is worth keeping of an invocation; each list in the order in which it is shown.
struct report {
    std::vector<row> rows;
    std::vector<contender_facts> contenders;
    std::vector<workload_facts> workloads;
    std::string machine;
    std::string compiler;
    std::string date;
    bool complete = true;                    ///< False: it was interrupted.
    std::vector<std::string> wrong_answers;  ///< Of runs that do not count.
};

/// The contender that the others are compared with.
inline constexpr const char* reference_contender = "boost.asio";

/// Fills in machine, compiler and date.
void describe_surroundings(report& report);

/// Rows of workload × N, a column per contender: median in ns and how many times faster than the reference.
/// Columns that do not fit `width` characters go into a further block.
[[nodiscard]] std::string as_table(const report& report, std::size_t width);

/// Of the workloads that ran with several numbers of threads: millions of operations a second, all threads together, and
/// how many times what one thread does. Empty if there are none.
[[nodiscard]] std::string as_rates(const report& report);

/// Of the workloads that measure more than time: a table each, a row per contender. Empty if there are none.
[[nodiscard]] std::string as_figures(const report& report);

/// The rows alone: an array of {"workload","contender","n","threads","unit","median","min","repetitions"},
/// and "figures" where there are any.
[[nodiscard]] std::string as_json_rows(const report& report);

/// The whole report as one object, which is what report.py draws.
[[nodiscard]] std::string as_json_report(const report& report);

}  // namespace chime_bench
