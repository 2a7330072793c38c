// SPDX-License-Identifier: MIT
#include "runtime/small_tasks.hpp"
#include "support/ledger.hpp"
#include "support/refusal.hpp"
#include "support/witness.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

TEST(spawn, starts_in_run_and_not_where_it_is_called) {
    testing::virtual_context context;
    std::optional<int> result;
    auto joined = spawn(*context, answer_after(0s, 42));
    EXPECT_TRUE(joined);
    EXPECT_FALSE(joined.is_done());
    EXPECT_EQ(context->timers().stats().tasks, 1U);
    context.run();
    EXPECT_TRUE(joined.is_done());
    EXPECT_FALSE(joined.cancel()) << "it has ended";
    spawn_detached(*context, join_into(std::move(joined), result));
    EXPECT_FALSE(joined);
    context.run();
    EXPECT_EQ(result, 42);
    check_ledger_at_rest(*context);
}

TEST(spawn, gives_the_result_to_who_joins_before_the_end) {
    testing::virtual_context context;
    std::optional<int> result;
    spawn_detached(*context, join_into(spawn(*context, answer_after(1h, 42)), result));
    context.advance(1h - 1ns);
    EXPECT_EQ(result, std::nullopt);
    context.advance(1ns);
    EXPECT_EQ(result, 42);
    check_ledger_at_rest(*context);
}

task<std::unique_ptr<int>> give_unique(int number) {
    co_await yield();
    co_return std::make_unique<int>(number);
}

task<std::string&> give_reference(std::string& text) {
    co_await yield();
    co_return text;
}

task<> join_reference(join_handle<std::string&> joined, const std::string*& where) {
    std::string& result = co_await joined;
    where = &result;
}

TEST(spawn, gives_values_that_can_only_be_moved_and_references) {
    testing::virtual_context context;
    std::optional<std::unique_ptr<int>> unique;
    std::string text;
    const std::string* where = nullptr;
    spawn_detached(*context, join_into(spawn(*context, give_unique(42)), unique));
    spawn_detached(*context, join_reference(spawn(*context, give_reference(text)), where));
    context.run();
    ASSERT_TRUE(unique && *unique);
    EXPECT_EQ(**unique, 42);
    EXPECT_EQ(where, &text);
    check_ledger_at_rest(*context);
}

TEST(spawn, gives_the_exception_to_who_joins_and_not_to_run) {
    testing::virtual_context context;
    std::string before;
    std::string after;
    auto late = spawn(*context, fail_after(1s));
    spawn_detached(*context, join_for_failure(spawn(*context, fail_after(1s)), before));
    EXPECT_NO_THROW(context.run());
    spawn_detached(*context, join_for_failure(std::move(late), after));
    EXPECT_NO_THROW(context.run());
    EXPECT_EQ(before, "from a task");
    EXPECT_EQ(after, "from a task");
    check_ledger_at_rest(*context);
}

// --- Anything that can be awaited.

struct ready_value {
    [[nodiscard]] bool await_ready() const noexcept { return true; }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    [[nodiscard]] int await_resume() const noexcept { return 9; }
};

struct by_member {
    [[nodiscard]] ready_value operator co_await() const noexcept { return {}; }
};

struct by_function {};
ready_value operator co_await(by_function) noexcept {
    return {};
}

TEST(spawn, takes_anything_that_can_be_awaited) {
    testing::virtual_context context;
    std::optional<wake_reason> slept;
    std::optional<int> awaiter;
    std::optional<int> member;
    std::optional<int> function;
    std::optional<int> joined_twice;
    std::optional<int> computed;
    spawn_detached(*context, join_into(spawn(*context, sleep_for(1s)), slept));
    spawn_detached(*context, join_into(spawn(*context, ready_value{}), awaiter));
    spawn_detached(*context, join_into(spawn(*context, by_member{}), member));
    spawn_detached(*context, join_into(spawn(*context, by_function{}), function));
    spawn_detached(*context, join_into(spawn(*context, spawn(*context, answer_after(1s, 3))), joined_twice));
    spawn_detached(*context, join_into(spawn(*context, context->cpu_pool().submit([] { return 4; })), computed));
    spawn_detached(*context, yield());
    spawn_detached(*context, sleep_until(time_point{} + 5s));
    const cancel_source source;
    spawn_detached(*context, sleep_for(6s, source.token()));
    context.run();
    EXPECT_EQ(slept, wake_reason::elapsed);
    EXPECT_EQ(awaiter, 9);
    EXPECT_EQ(member, 9);
    EXPECT_EQ(function, 9);
    EXPECT_EQ(joined_twice, 3);
    EXPECT_EQ(computed, 4);
    EXPECT_EQ(context.now(), time_point{} + 6s);
    check_ledger_at_rest(*context);
}

// --- Yielding, time, limits.

task<> say_with_yields(char name, int count, std::string& story) {
    for (int said = 0; said < count; ++said) {
        story += name;
        co_await yield();
    }
}

TEST(yield, lets_everybody_else_go_first) {
    testing::virtual_context context;
    std::string story;
    for (const char name : {'a', 'b', 'c'}) spawn_detached(*context, say_with_yields(name, 3, story));
    context.run();
    EXPECT_EQ(story, "abcabcabc");
    EXPECT_EQ(context->timers().stats().resumed_by_completion, 12U);
    check_ledger_at_rest(*context);
}

task<> note_time(std::vector<time_point>& times) {
    times.push_back(this_task::now());
    co_await sleep_for(90min);
    times.push_back(this_task::now());
}

TEST(this_task, tells_the_time_of_its_context) {
    testing::virtual_clock clock(testing::when_idle::jump, time_point{} + 1000h);
    io_context context({.clock = &clock});
    std::vector<time_point> times;
    spawn_detached(context, note_time(times));
    context.timers().after(2h, [&] { times.push_back(this_task::now()); });
    context.run();
    const time_point start = time_point{} + 1000h;
    EXPECT_EQ(times, (std::vector{start, start + 90min, start + 2h}));
    EXPECT_FALSE(this_task::is_cancelled()) << "outside of a task nothing is";
    const time_point before = std::chrono::steady_clock::now();
    EXPECT_GE(this_task::now(), before);
    check_ledger_at_rest(context);
}

TEST(coarse_now, is_the_time_of_the_turn_and_looks_at_no_clock) {
    testing::virtual_context context;
    const time_point start = context.now();
    std::vector<duration> seen;
    const auto note = [&] { seen.push_back(this_task::coarse_now() - start); };
    context->timers().after(1s, [&] {
        note();
        context.clock().advance(35ms);
        note();
        EXPECT_EQ(this_task::now(), start + 1s + 35ms);
    });
    context->timers().after(1s, note);      // In the same turn.
    context->timers().after(1010ms, note);  // In the next one.
    context.advance(2s);
    EXPECT_EQ(seen, (std::vector<duration>{1s, 1s, 1s, 1035ms}));
    const time_point before = clock::now();
    EXPECT_GE(this_task::coarse_now(), before) << "outside of a loop it is the real time";
    check_ledger_at_rest(*context);
}

task<> sleep_with([[maybe_unused]] witness kept) {
    co_await sleep_for(1s);
}

TEST(spawn, beyond_the_cap_is_refused_and_what_was_to_be_spawned_is_destroyed) {
    testing::virtual_context context({.max_tasks = 3});
    witness_report report;
    for (int count = 0; count < 3; ++count) spawn_detached(*context, sleep_with(witness(report)));
    expect_refused(errc::too_many_tasks, [&] { spawn_detached(*context, sleep_with(witness(report))); });
    EXPECT_EQ(report.ends, 1);
    expect_refused(errc::too_many_tasks, [&] { static_cast<void>(spawn(*context, sleep_with(witness(report)))); });
    EXPECT_EQ(report.ends, 2);
    context->post(
        [&] { expect_refused(errc::too_many_tasks, [&] { spawn_detached(*context, sleep_with(witness(report))); }); });
    context.run();
    EXPECT_EQ(report.ends, 6);
    EXPECT_EQ(context->timers().stats().refused, 3U);
    check_ledger_at_rest(*context);
}

TEST(spawn, from_inside_may_use_a_place_as_soon_as_it_is_free) {
    testing::virtual_context context({.max_tasks = 2});
    struct relay {
        static task<> run(io_context& home, int& left) {
            co_await sleep_for(1ms);
            if (--left > 0) spawn_detached(home, run(home, left));
        }
    };
    int left = 10'000;
    spawn_detached(*context, relay::run(*context, left));
    context.run();
    EXPECT_EQ(left, 0);
    check_ledger_at_rest(*context);
}

TEST(spawn, from_outside_may_use_a_place_when_nobody_lives_there_any_more) {
    testing::virtual_context context({.max_tasks = 10});
    for (int round = 0; round < 5; ++round) {
        for (int count = 0; count < 10; ++count) {
            ASSERT_NO_THROW(spawn_detached(*context, answer_after(1s, 1))) << "round " << round << ", task " << count;
        }
        context.run();
        ASSERT_EQ(context->timers().stats().tasks, 0U);
    }
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
