// SPDX-License-Identifier: MIT
#include "shim/engine/execution.hpp"
#include "shim/mutants.hpp"
#include "support/time_limit.hpp"

#include <gtest/gtest.h>

#include <cstring>

/// chime_shim_tests: the tests. With --mutants [PLACE], --excused-mutants [PLACE] or --old-bugs [NAME]: what they notice.
int main(int argc, char** argv) {
    ::testing::InitGoogleTest(&argc, argv);
    const char* const which = argc > 1 ? argv[1] : "";
    const char* const filter = argc > 2 ? argv[2] : "";
    chime::test::also_tells_where_it_stands = chime::shim::execution::tell_where_all_stand;
    if (std::strcmp(which, "--mutants") == 0) return chime::shim::run_mutants(filter, false);
    if (std::strcmp(which, "--excused-mutants") == 0) return chime::shim::run_mutants(filter, true);
    if (std::strcmp(which, "--old-bugs") == 0) {
        chime::test::begin_limited("chime_shim_tests --old-bugs");
        return chime::shim::run_old_bugs(filter);
    }
    return RUN_ALL_TESTS();
}
