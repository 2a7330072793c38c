// SPDX-License-Identifier: MIT
#include <chime/error.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <system_error>
#include <utility>

namespace chime::test {
namespace {

constexpr std::array codes = {
    std::pair{errc::cancelled, std::errc::operation_canceled},
    std::pair{errc::too_many_timers, std::errc::resource_unavailable_try_again},
    std::pair{errc::too_many_tasks, std::errc::resource_unavailable_try_again},
    std::pair{errc::stopped, std::errc::operation_canceled},
    std::pair{errc::not_in_a_task, std::errc::operation_not_permitted},
    std::pair{errc::already_running, std::errc::device_or_resource_busy},
    std::pair{errc::empty_function, std::errc::invalid_argument},
    std::pair{errc::empty_task, std::errc::invalid_argument},
    std::pair{errc::bad_period, std::errc::invalid_argument},
    std::pair{errc::on_a_worker, std::errc::resource_deadlock_would_occur},
    std::pair{errc::no_such_worker, std::errc::invalid_argument},
    std::pair{errc::last_worker, std::errc::operation_not_permitted},
    std::pair{errc::too_many_workers, std::errc::resource_unavailable_try_again},
    std::pair{errc::bad_configuration, std::errc::invalid_argument},
};

TEST(error, compares_equal_to_the_standard_one_that_is_named_beside_it) {
    for (const auto& [code, standard] : codes) EXPECT_EQ(make_error_code(code), standard) << static_cast<int>(code);
}

TEST(error, says_something_of_its_own_for_every_code) {
    for (const auto& [code, standard] : codes) {
        const std::string said = make_error_code(code).message();
        EXPECT_FALSE(said.empty());
        EXPECT_EQ(said.find("unknown"), std::string::npos) << said;
    }
    EXPECT_STREQ(error_category().name(), "chime");
}

TEST(error, of_a_number_that_is_no_code_names_the_number_and_equals_nothing_standard) {
    const std::error_code unknown(4711, error_category());
    EXPECT_NE(unknown.message().find("4711"), std::string::npos);
    EXPECT_NE(unknown, std::errc::invalid_argument);
    EXPECT_EQ(unknown.default_error_condition().value(), 4711);
}

}  // namespace
}  // namespace chime::test
