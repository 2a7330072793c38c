// SPDX-License-Identifier: MIT
#include "support/ledger.hpp"

#include <chime/io_context.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <system_error>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

TEST(io_context_config, by_default_is_usable) {
    EXPECT_EQ(io_context_config{}.validate(), "");
}

TEST(io_context_config, takes_times_in_any_unit_and_rounds_them_up) {
    io_context_config config{.slack = 0.5ms, .crowd_slack = std::chrono::duration<double, std::nano>{0.1}};
    EXPECT_EQ(config.slack, 500us);
    EXPECT_EQ(config.crowd_slack, 1ns);
    config.slack = std::chrono::hours::max();
    EXPECT_EQ(config.slack, std::chrono::nanoseconds::max()) << "never soon by overflow";
    config.slack = {};
    EXPECT_EQ(config.slack, 0ns);
    EXPECT_THROW(config.slack = std::chrono::duration<double>{std::numeric_limits<double>::quiet_NaN()},
                 std::system_error);
    EXPECT_EQ(config.validate(), "");
}

void expect_unusable(const io_context_config& config, const char* field) {
    EXPECT_NE(config.validate().find(field), std::string::npos) << config.validate();
    try {
        const io_context context(config);
        ADD_FAILURE() << field << " was accepted";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), errc::bad_configuration);
        EXPECT_EQ(error.code(), std::errc::invalid_argument);
        EXPECT_NE(std::string(error.what()).find(field), std::string::npos) << error.what();
    }
}

TEST(io_context_config, that_makes_no_sense_is_refused_with_what_to_change) {
    constexpr std::size_t huge = ~std::size_t{0};
    for (const std::size_t bad : {std::size_t{0}, huge, (std::size_t{1} << 29U) + 1}) {
        expect_unusable({.max_timers = bad}, "max_timers");
        expect_unusable({.max_tasks = bad}, "max_tasks");
    }
    for (const auto bad : {0ns, -1ns, std::chrono::nanoseconds{(std::int64_t{1} << 32U) + 1},
                           std::chrono::nanoseconds::max(), std::chrono::nanoseconds::min()}) {
        expect_unusable({.resolution = bad}, "resolution");
    }
    expect_unusable({.slack = -1ns}, "slack");
    expect_unusable({.crowd_slack = -1ns}, "crowd_slack");
    for (const std::size_t bad : {std::size_t{0}, huge}) {
        expect_unusable({.timer_budget = bad}, "timer_budget");
        expect_unusable({.task_budget = bad}, "task_budget");
        expect_unusable({.stale_slack = bad}, "stale_slack");
        expect_unusable({.scrub_budget = bad}, "scrub_budget");
    }
    expect_unusable({.pool_threads = 4097}, "pool_threads");
}

TEST(io_context_config, at_its_limits_works) {
    for (const io_context_config& config :
         {io_context_config{.max_timers = 1, .max_tasks = 1}, io_context_config{.resolution = 1ns},
          io_context_config{.resolution = std::chrono::nanoseconds{std::int64_t{1} << 32U}},
          io_context_config{.slack = std::chrono::nanoseconds::max()},
          io_context_config{.crowd_slack = std::chrono::nanoseconds::max()}, io_context_config{.crowd_slack = 0ns},
          io_context_config{.timer_budget = 1, .task_budget = 1, .stale_slack = 64},
          io_context_config{.time_callbacks = true, .huge_pages = true}, io_context_config{.huge_pages = false}}) {
        testing::virtual_context context(config);
        int ran = 0;
        context->timers().after(1s, [&] { ++ran; });
        context.settle();
        EXPECT_EQ(ran, 0);
        context.clock().advance(1s);
        context.settle();
        EXPECT_EQ(ran, 1);
        check_ledger_at_rest(*context);
    }
}

}  // namespace
}  // namespace chime::test
