// SPDX-License-Identifier: MIT
#include "support/ledger.hpp"
#include "support/refusal.hpp"
#include "support/run_to_end.hpp"
#include "support/witness.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

static_assert(std::is_move_constructible_v<task<int>> && !std::is_copy_constructible_v<task<int>>);
static_assert(std::is_move_assignable_v<task<int>> && !std::is_copy_assignable_v<task<int>>);
static_assert(std::is_nothrow_default_constructible_v<task<>>);
static_assert(std::is_same_v<task<>, task<void>>);

task<int> give_number(int number) {
    co_return number;
}

task<int> give_number_later(int number) {
    co_await sleep_for(1h);
    co_return number;
}

TEST(task, gives_a_value) {
    EXPECT_EQ(run_to_end(give_number(42)), 42);
    EXPECT_EQ(run_to_end(give_number_later(43)), 43);
}

task<std::string> give_text(const char* text) {
    co_return text;  // Converted.
}

TEST(task, gives_what_its_value_can_be_made_of) {
    EXPECT_EQ(run_to_end(give_text("a text that is too long for a short string")),
              "a text that is too long for a short string");
}

task<std::unique_ptr<int>> give_unique(int number) {
    co_return std::make_unique<int>(number);
}

task<std::unique_ptr<int>> pass_on(task<std::unique_ptr<int>> from) {
    std::unique_ptr<int> kept = co_await std::move(from);
    co_await sleep_for(1s);
    co_return kept;
}

TEST(task, gives_a_value_that_can_only_be_moved) {
    const std::unique_ptr<int> result = run_to_end(pass_on(pass_on(give_unique(42))));
    ASSERT_NE(result, nullptr);
    EXPECT_EQ(*result, 42);
}

struct pinned_by_default {
    explicit pinned_by_default(int value) : number(value) {}
    pinned_by_default(pinned_by_default&&) noexcept = default;
    pinned_by_default& operator=(pinned_by_default&&) = delete;
    int number;
};

task<pinned_by_default> give_without_default(int number) {
    co_return pinned_by_default(number);
}

task<> keep_without_default(int& number) {
    const pinned_by_default result = co_await give_without_default(42);
    number = result.number;
}

TEST(task, gives_a_value_without_a_default_that_cannot_be_assigned) {
    int number = 0;
    run_to_end(keep_without_default(number));
    EXPECT_EQ(number, 42);
}

task<int&> give_reference(int& number) {
    co_await yield();
    co_return number;
}

task<> change_by_reference(int& number) {
    int& same = co_await give_reference(number);
    EXPECT_EQ(&same, &number);
    same = 42;
}

TEST(task, gives_a_reference) {
    int number = 0;
    run_to_end(change_by_reference(number));
    EXPECT_EQ(number, 42);
}

task<const std::string&> give_const_reference(const std::string& text) {
    co_return text;
}

task<> compare_const_reference(const std::string& text, bool& is_same) {
    const std::string& same = co_await give_const_reference(text);
    is_same = &same == &text;
}

TEST(task, gives_a_reference_to_something_constant) {
    const std::string text = "constant";
    bool is_same = false;
    run_to_end(compare_const_reference(text, is_same));
    EXPECT_TRUE(is_same);
}

task<> fail_with(std::string message, std::chrono::nanoseconds pause) {
    co_await sleep_for(pause);
    throw std::runtime_error(message);
}

task<int> fail_instead_of_a_value() {
    throw std::out_of_range("no value");
    co_return 1;
}

task<int&> fail_instead_of_a_reference() {
    throw std::out_of_range("no reference");
    static int number = 0;
    co_return number;
}

template <class T>
task<> catch_range_error(task<T> from, std::string& caught) {
    try {
        static_cast<void>(co_await std::move(from));
    } catch (const std::out_of_range& error) {
        caught = error.what();
    }
}

task<> catch_three_levels_up(std::string& caught, int& passed) {
    task<> inner = fail_with("three levels down", 1s);
    try {
        co_await std::move(inner);
        ++passed;
    } catch (const std::runtime_error& error) {
        caught = error.what();
    }
}

TEST(task, carries_exceptions_to_whoever_awaits_it) {
    std::string caught;
    int passed = 0;
    run_to_end(catch_three_levels_up(caught, passed));
    EXPECT_EQ(caught, "three levels down");
    EXPECT_EQ(passed, 0);
    run_to_end(catch_range_error(fail_instead_of_a_value(), caught));
    EXPECT_EQ(caught, "no value");
    run_to_end(catch_range_error(fail_instead_of_a_reference(), caught));
    EXPECT_EQ(caught, "no reference");
}

struct throws_when_moved {
    throws_when_moved() = default;
    throws_when_moved(throws_when_moved&&) { throw std::out_of_range("from a move"); }
};

task<throws_when_moved> give_what_throws_when_moved() {
    throws_when_moved value;
    co_return std::move(value);
}

TEST(task, carries_the_exception_of_making_its_value) {
    std::string caught;
    run_to_end(catch_range_error(give_what_throws_when_moved(), caught));
    EXPECT_EQ(caught, "from a move");
}

task<> note_start(bool& has_started, [[maybe_unused]] witness kept) {
    has_started = true;
    co_return;
}

TEST(task, does_nothing_until_it_is_awaited) {
    bool has_started = false;
    witness_report report;
    {
        const task<> lazy = note_start(has_started, witness(report));
        EXPECT_TRUE(lazy);
        EXPECT_EQ(report.ends, 0);
    }
    EXPECT_FALSE(has_started);
    EXPECT_EQ(report.ends, 1) << "and is destroyed like any other value";
}

task<> check_laziness(bool& has_started, witness_report& report) {
    task<> lazy = note_start(has_started, witness(report));
    co_await sleep_for(1s);
    EXPECT_FALSE(has_started);
    co_await std::move(lazy);
    EXPECT_TRUE(has_started);
}

TEST(task, starts_where_it_is_awaited) {
    bool has_started = false;
    witness_report report;
    run_to_end(check_laziness(has_started, report));
    EXPECT_TRUE(has_started);
    EXPECT_EQ(report.ends, 1);
}

TEST(task, is_moved_as_a_whole) {
    bool has_started = false;
    witness_report first;
    witness_report second;
    task<> one = note_start(has_started, witness(first));
    task<> other = note_start(has_started, witness(second));
    task<> moved = std::move(one);
    EXPECT_FALSE(one);
    EXPECT_TRUE(moved);
    moved = std::move(other);
    EXPECT_EQ(first.ends, 1) << "what was there before is destroyed";
    EXPECT_EQ(second.ends, 0);
    task<>& same = moved;
    moved = std::move(same);
    EXPECT_TRUE(moved) << "moving to itself changes nothing";
    moved = task<>();
    EXPECT_EQ(second.ends, 1);
    EXPECT_FALSE(moved);
}

task<> await_what_was_moved_away() {
    task<int> number = give_number(1);
    const task<int> moved = std::move(number);
    co_await std::move(number);
}

task<> await_default() {
    task<int> nothing;
    co_await std::move(nothing);
}

task<> await_twice(int& first) {
    task<int> number = give_number_later(7);
    first = co_await std::move(number);
    co_await std::move(number);
}

task<> await_twice_after_failure() {
    task<> failing = fail_with("first", 0s);
    try {
        co_await std::move(failing);
        ADD_FAILURE() << "it has not thrown";
    } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "first");
    }
    co_await std::move(failing);
}

TEST(task, that_was_moved_away_is_refused_when_it_is_awaited) {
    expect_refused(errc::empty_task, [] { run_to_end(await_what_was_moved_away()); });
    expect_refused(errc::empty_task, [] { run_to_end(await_default()); });
}

TEST(task, that_was_awaited_is_refused_the_second_time) {
    int first = 0;
    expect_refused(errc::empty_task, [&] { run_to_end(await_twice(first)); });
    EXPECT_EQ(first, 7);
    expect_refused(errc::empty_task, [] { run_to_end(await_twice_after_failure()); });
}

TEST(task, that_is_empty_is_refused_by_spawn) {
    testing::virtual_context context;
    expect_refused(errc::empty_task, [&] { spawn_detached(*context, task<>()); });
    expect_refused(errc::empty_task, [&] { static_cast<void>(spawn(*context, task<int>())); });
    bool has_started = false;
    witness_report report;
    task<> gone = note_start(has_started, witness(report));
    const task<> elsewhere = std::move(gone);
    expect_refused(errc::empty_task, [&] { spawn_detached(*context, std::move(gone)); });
    EXPECT_EQ(context->timers().stats().tasks, 0U);
    check_ledger_at_rest(*context);
}

task<> keep_witness(witness kept, witness_report& report, bool& was_alive) {
    co_await sleep_for(1s);
    was_alive = kept.is_here() && report.ends == 0;
}

TEST(task, keeps_its_parameters_until_it_is_destroyed) {
    testing::virtual_context context;
    witness_report report;
    bool was_alive = false;
    spawn_detached(*context, keep_witness(witness(report), report, was_alive));
    context.run();
    EXPECT_TRUE(was_alive);
    EXPECT_EQ(report.ends, 1);
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
