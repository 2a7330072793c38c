// SPDX-License-Identifier: MIT
#include "base/check.hpp"

#include <gtest/gtest.h>

TEST(check, passes_silently_and_evaluates_once) {
    int evaluations = 0;
    CHIME_CHECK(++evaluations == 1, "a condition is evaluated once");
    EXPECT_EQ(evaluations, 1);
}

TEST(check, is_an_expression) {
    const bool holds = true;
    const int answer = (CHIME_CHECK(holds, "a check may stand before a comma"), 42);
    EXPECT_EQ(answer, 42);
}

TEST(check_death_test, aborts_and_names_the_invariant_the_condition_and_the_place) {
    const int live = 1;
    EXPECT_DEATH(CHIME_CHECK(live == 2, "I4: bitmaps, counts and chains agree"),
                 "chime: broken invariant: I4: bitmaps, counts and chains agree "
                 "\\(live == 2 is false at check_test.cpp:[0-9]+\\)");
}

TEST(check_death_test, tells_the_caller_that_it_is_his_mistake) {
    const bool is_running = true;
    EXPECT_DEATH(CHIME_CHECK_USE(!is_running, "a loop is not destroyed while it runs: let run() return before"),
                 "chime: misuse: a loop is not destroyed while it runs: let run\\(\\) return before "
                 "\\(!is_running is false at check_test.cpp:[0-9]+\\)");
}
