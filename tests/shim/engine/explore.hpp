// SPDX-License-Identifier: MIT
#pragma once

#include "shim/engine/execution.hpp"
#include "shim/engine/sync.hpp"

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace chime::shim {

/// A few threads that do something to each other, and what must hold in the end. The body runs once for each schedule,
/// and leaves nothing behind.
struct scenario {
    const char* suite;
    const char* name;
    void (*body)();
    unsigned share = 1;     ///< A quick run draws one in so many of its seeds: for those that take long.
    bool is_alone = false;  ///< It has one thread, so one seed is as good as all of them.
    /// All schedules with two preemptions are tried, too. How many there are depends less on the steps than on how many of
    /// them are taken while there is somebody else: with CHIME_SMALL_SCHEDULES=100000 it says whether these were all.
    bool is_small = false;
    unsigned stale_values = 1;  ///< And with so many old values.
};

/// In the order of the files that they are in.
[[nodiscard]] std::vector<scenario>& all_scenarios();

struct registration {
    explicit registration(const scenario& added) { all_scenarios().push_back(added); }
};

/// What was found out about a scenario.
struct finding {
    bool has_failed = false;
    bool has_foreseen = false;  ///< It takes a load that gives what is stored later.
    std::string message;
    std::uint64_t seed = 0;  ///< Zero: not found by a seed.
    schedule shortest;
    std::uint64_t executions = 0;
    std::uint64_t steps = 0;
};

/// What is made once in a process is made here: the guards of static variables are not among the steps that are seen.
void warm_up(const std::function<void()>& body);
/// Runs these seeds until one fails.
[[nodiscard]] finding try_seeds(const std::function<void()>& body, std::uint64_t first, std::uint64_t count);
/// Tries all schedules with so many preemptions and old values, until one fails or `most` were tried.
[[nodiscard]] finding try_all(const std::function<void()>& body, unsigned preemptions, unsigned stale_values,
                              std::uint64_t most);
/// Leaves out what is not needed for the failure.
void shorten(const std::function<void()>& body, finding& found);
/// What happens, step by step.
[[nodiscard]] std::string tell(const std::function<void()>& body, const finding& found);

/// The text of a source line, "file:line", if the source is there.
[[nodiscard]] std::string source_line(const std::string& place);
/// That line, and those that follow it.
[[nodiscard]] std::string source_lines(const std::string& place, unsigned count);

/// The number in an environment variable.
[[nodiscard]] std::uint64_t wanted(const char* variable, std::uint64_t otherwise);

/// The test of a scenario: seeds, and all small schedules. CHIME_SEEDS: so many; CHIME_SEED: this one, with its trace;
/// CHIME_SMALL_SCHEDULES: so many of the small ones at most, and 0 none.
void check(const scenario& checked);

/// All results that a body has, over seeds and small schedules.
[[nodiscard]] std::set<std::string> results_of(const std::function<std::string()>& body);

}  // namespace chime::shim

/// A scenario, and the test that explores it. What follows the name are further members of `scenario`.
#define CHIME_SCENARIO(of, called, ...)                                                              \
    static void of##_##called();                                                                     \
    static const ::chime::shim::scenario of##_##called##_scenario{                                   \
        .suite = #of, .name = #called, .body = of##_##called __VA_OPT__(, ) __VA_ARGS__};            \
    static const ::chime::shim::registration of##_##called##_registration{of##_##called##_scenario}; \
    TEST(of, called) {                                                                               \
        ::chime::shim::check(of##_##called##_scenario);                                              \
    }                                                                                                \
    static void of##_##called()
