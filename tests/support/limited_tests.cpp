// SPDX-License-Identifier: MIT
//
// Linked into every program of GoogleTest tests: each of them is limited.

#include "support/time_limit.hpp"

#include <gtest/gtest.h>

#include <string>

namespace chime::test {
namespace {

class limits_each_test : public ::testing::EmptyTestEventListener {
 public:
    void OnTestStart(const ::testing::TestInfo& test) override {
        begin_limited((std::string(test.test_suite_name()) + "." + test.name()).c_str());
    }
    void OnTestEnd(const ::testing::TestInfo&) override { end_limited(); }
};

[[maybe_unused]] const bool are_limited = [] {
    ::testing::UnitTest::GetInstance()->listeners().Append(new limits_each_test);
    return true;
}();

}  // namespace
}  // namespace chime::test
