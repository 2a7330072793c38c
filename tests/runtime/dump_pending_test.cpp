// SPDX-License-Identifier: MIT
#include "support/ledger.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <sstream>
#include <string>
#include <thread>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

TEST(dump_pending, names_what_run_waits_for_and_where_it_was_armed) {
    testing::virtual_context context;
    context->timers().after(1h, [] {});
    context->timers().at(never, [] {});
    spawn_detached(*context, sleep_until(never));
    context.settle();
    context.advance(30min);
    std::ostringstream out;
    context->dump_pending(out);
    const std::string text = out.str();
    EXPECT_NE(text.find(": 2 timers, 1 task (1 asleep)\n"), std::string::npos) << text;
    EXPECT_NE(text.find("in 1800 s"), std::string::npos) << text;
    EXPECT_NE(text.find("never"), std::string::npos) << text;
    EXPECT_NE(text.find("sleeps, never"), std::string::npos) << text;
    EXPECT_NE(text.find("dump_pending_test.cpp:"), std::string::npos) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
    check_ledger(*context);
}

TEST(dump_pending, says_from_any_thread_where_things_began_if_that_is_recorded) {
    testing::virtual_context context({.max_timers = 8, .max_tasks = 8, .record_locations = true});
    context->timers().after(1h, [] {});
    const int first_line = __LINE__ + 1;
    const auto joined = spawn(*context, sleep_for(1h));
    spawn_detached(*context, sleep_for(2h));
    context.settle();
    std::ostringstream out;
    std::thread([&] { context->dump_pending(out); }).join();
    const std::string text = out.str();
    const auto place = [&](const char* verb, int line) {
        return std::string(verb) + " at " + __FILE__ + ':' + std::to_string(line) + '\n';
    };
    EXPECT_NE(text.find(place("armed", first_line - 2)), std::string::npos) << text;
    EXPECT_NE(text.find(place("in 3600 s, spawned", first_line)), std::string::npos) << text;
    EXPECT_NE(text.find(place("in 7200 s, spawned", first_line + 1)), std::string::npos) << text;
    context.run();
    check_ledger_at_rest(*context);
}

TEST(dump_pending, has_little_to_say_of_an_idle_context) {
    testing::virtual_context context;
    const timer_handle cancelled = context->timers().after(1h, [] {});
    context->timers().cancel(cancelled);
    context.run();
    std::ostringstream out;
    context->dump_pending(out);
    EXPECT_NE(out.str().find(": 0 timers, 0 tasks\n"), std::string::npos) << out.str();
    EXPECT_EQ(out.str().find("timer 0"), std::string::npos) << out.str();
    check_ledger_at_rest(*context);
}

TEST(dump_pending, names_guards_and_jobs_that_keep_it_running) {
    testing::virtual_context context;
    std::atomic<bool> may_end{false};
    {
        const auto guard = context->make_work_guard();
        auto job = context->cpu_pool().submit([&] {
            while (!may_end.load()) std::this_thread::yield();
        });
        std::ostringstream out;
        context->dump_pending(out);
        EXPECT_NE(out.str().find("1 work guard"), std::string::npos) << out.str();
        EXPECT_NE(out.str().find("1 pool job\n"), std::string::npos) << out.str();
        may_end.store(true);
    }
    context.run();
    std::ostringstream after;
    context->dump_pending(after);
    EXPECT_EQ(after.str().find("guard"), std::string::npos) << after.str();
    check_ledger_at_rest(*context);
}

TEST(dump_pending, counts_guards_and_jobs_and_says_who_waits_for_something_else_than_time) {
    testing::virtual_context context;
    std::atomic<bool> may_end{false};
    const auto wait = [&] {
        while (!may_end.load()) std::this_thread::yield();
    };
    {
        const auto first = context->make_work_guard();
        const auto second = context->make_work_guard();
        static_cast<void>(context->cpu_pool().submit(wait));
        spawn_detached(*context, context->cpu_pool().submit(wait));
        context.settle();
        std::ostringstream out;
        context->dump_pending(out);
        EXPECT_NE(out.str().find("2 work guards"), std::string::npos) << out.str();
        EXPECT_NE(out.str().find("2 pool jobs\n"), std::string::npos) << out.str();
        EXPECT_NE(out.str().find("waits for a task, a job or a callback, not for a time"), std::string::npos)
            << out.str();
        may_end.store(true);
    }
    context.run();
    check_ledger_at_rest(*context);
}

TEST(dump_pending, names_functions_that_were_posted_and_have_not_run) {
    testing::virtual_context context;
    context->post([] {});
    context->post([] {});
    std::ostringstream out;
    context->dump_pending(out);
    EXPECT_NE(out.str().find(": 0 timers, 0 tasks\n  2 posted functions\n"), std::string::npos) << out.str();
    context.run();
    std::ostringstream after;
    context->dump_pending(after);
    EXPECT_EQ(after.str().find("posted"), std::string::npos) << after.str();
    check_ledger_at_rest(*context);
}

TEST(dump_pending, inside_a_callback_says_that_it_is_running) {
    testing::virtual_context context;
    std::ostringstream out;
    context->timers().after(1s, [&] { context->dump_pending(out); });
    context.run();
    EXPECT_NE(out.str().find("running"), std::string::npos) << out.str();
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
