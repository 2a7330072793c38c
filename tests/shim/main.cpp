// SPDX-License-Identifier: MIT
#include "shim/engine/execution.hpp"
#include "shim/mutants.hpp"
#include "support/time_limit.hpp"

#include <gtest/gtest.h>

#include <cstring>

/// chime_shim_tests: the tests. With --mutants [PLACE] or --old-bugs [NAME]: what the tests notice.
int main(int argc, char** argv) {
    ::testing::InitGoogleTest(&argc, argv);
    if (argc > 1 && std::strcmp(argv[1], "--mutants") == 0) return chime::shim::run_mutants(argc > 2 ? argv[2] : "");
    if (argc > 1 && std::strcmp(argv[1], "--old-bugs") == 0) return chime::shim::run_old_bugs(argc > 2 ? argv[2] : "");
    chime::test::also_tells_where_it_stands = chime::shim::execution::tell_where_all_stand;
    return RUN_ALL_TESTS();
}
