// SPDX-License-Identifier: MIT
#pragma once

#include "support/options.hpp"
#include "support/progress.hpp"
#include "support/results.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace chime_bench {

/// Those that are programs of their own are asked for their version where they are.
[[nodiscard]] std::vector<contender_facts> all_contenders(const std::string& others_path = {});
[[nodiscard]] std::vector<workload_facts> all_workloads();

/// What stands in the place of a contender where a workload compares settings of chime, in the order in which it is shown.
[[nodiscard]] std::vector<std::string> all_variants();

/// Called around every run, with what it is.
struct run_observer {
    std::function<void(const std::string&)> before;
    std::function<void()> after;
};

/// Hands Google Benchmark the chosen workloads × contenders × sizes; the number of runs that makes.
/// A benchmark is called "workload/contender/n/threads". The observer must outlive the runs.
std::size_t register_benchmarks(const options& options, const run_observer& observer);

}  // namespace chime_bench
