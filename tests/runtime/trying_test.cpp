// SPDX-License-Identifier: MIT
//
// Calls that answer instead of throwing: whoever is refused still has what he wanted to give away.

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
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// Can be awaited once, and only be moved.
struct awaitable_witness {
    witness kept;

    [[nodiscard]] bool await_ready() const noexcept { return true; }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    [[nodiscard]] int await_resume() const noexcept { return 9; }
};

/// Cannot even be moved when it comes to that.
struct awaitable_that_stays : awaitable_witness {
    explicit awaitable_that_stays(witness_report& report) : awaitable_witness{witness(report)} {}
    awaitable_that_stays(awaitable_that_stays&& other) : awaitable_witness(std::move(other)) {
        throw std::range_error("it does not want to move");
    }
};

task<int> keep_and_answer(witness kept, int number) {
    co_await yield();
    co_return kept.is_here() ? number : 0;
}

TEST(try_spawn, starts_a_task_like_spawn_does) {
    testing::virtual_context context;
    std::optional<int> result;
    auto joined = try_spawn(*context, answer_after(1s, 42));
    ASSERT_TRUE(joined.has_value());
    EXPECT_EQ(context->timers().stats().tasks, 1U);
    spawn_detached(*context, join_into(std::move(*joined), result));
    context.run();
    EXPECT_EQ(result, 42);
    auto cancelled = try_spawn(*context, sleep_for(1h));
    ASSERT_TRUE(cancelled.has_value());
    cancelled->cancel();
    context.run();
    EXPECT_EQ(cancelled->take(), wake_reason::cancelled);
    check_ledger_at_rest(*context);
}

TEST(try_spawn, refused_leaves_the_task_as_it_was) {
    testing::virtual_context context({.max_tasks = 1});
    witness_report report;
    auto first = spawn(*context, answer_after(1s, 1));
    task<int> second = keep_and_answer(witness(report), 2);
    EXPECT_EQ(try_spawn(*context, std::move(second)), std::nullopt);
    EXPECT_FALSE(try_spawn_detached(*context, std::move(second)));
    EXPECT_TRUE(second);  // NOLINT(bugprone-use-after-move): that is the point.
    EXPECT_EQ(report.ends, 0);
    EXPECT_EQ(context->timers().stats().refused, 2U);
    context.run();
    auto joined = try_spawn(*context, std::move(second));
    ASSERT_TRUE(joined.has_value()) << "there is a place now";
    EXPECT_FALSE(second);  // NOLINT(bugprone-use-after-move)
    context.run();
    EXPECT_EQ(joined->take(), 2);
    EXPECT_EQ(report.ends, 1);
    check_ledger_at_rest(*context);
}

TEST(try_spawn, refused_leaves_whatever_can_be_awaited_as_it_was) {
    testing::virtual_context context({.max_tasks = 1});
    witness_report report;
    awaitable_witness awaited{witness(report)};
    auto first = spawn(*context, answer_after(1s, 1));
    EXPECT_EQ(try_spawn(*context, std::move(awaited)), std::nullopt);
    EXPECT_FALSE(try_spawn_detached(*context, std::move(awaited)));
    EXPECT_TRUE(awaited.kept.is_here());  // NOLINT(bugprone-use-after-move): that is the point.
    context.run();
    auto joined = try_spawn(*context, std::move(awaited));
    ASSERT_TRUE(joined.has_value());
    context.run();
    EXPECT_EQ(joined->take(), 9);
    EXPECT_EQ(report.ends, 1);
    check_ledger_at_rest(*context);
}

TEST(try_spawn, is_refused_on_a_loop_that_is_full_and_by_one_that_was_stopped) {
    testing::virtual_context context({.max_tasks = 1});
    spawn_detached(*context, [](io_context& home) -> task<> {
        task<int> beside = answer_after(0s, 1);
        EXPECT_EQ(try_spawn(home, std::move(beside)), std::nullopt) << "this task has the only place";
        EXPECT_TRUE(beside);  // NOLINT(bugprone-use-after-move)
        co_return;
    }(*context));
    context.run();
    context->timers().stop();
    task<int> late = answer_after(0s, 1);
    EXPECT_EQ(try_spawn(*context, std::move(late)), std::nullopt);
    EXPECT_FALSE(try_spawn_detached(*context, std::move(late)));
    EXPECT_TRUE(late);  // NOLINT(bugprone-use-after-move)
    context.run();
    check_ledger_at_rest(*context);
}

TEST(try_spawn, refuses_an_empty_task_as_the_mistake_that_it_is) {
    testing::virtual_context context;
    expect_refused(errc::empty_task, "nothing to spawn", [&] { static_cast<void>(try_spawn(*context, task<>())); });
    expect_refused(errc::empty_task, [&] { static_cast<void>(try_spawn_detached(*context, task<int>())); });
    check_ledger_at_rest(*context);
}

TEST(try_spawn, gives_the_place_back_when_what_is_to_be_spawned_cannot_be_moved) {
    testing::virtual_context context({.max_tasks = 1});
    witness_report report;
    const auto try_in_vain = [&] {
        awaitable_that_stays stays(report);
        EXPECT_THROW(static_cast<void>(try_spawn(*context, std::move(stays))), std::range_error);
        EXPECT_THROW(static_cast<void>(try_spawn_detached(*context, awaitable_that_stays(report))), std::range_error);
        EXPECT_TRUE(try_spawn_detached(*context, answer_after(0s, 1))) << "the only place is free";
    };
    try_in_vain();
    context.run();
    context->post(try_in_vain);
    context.run();
    EXPECT_EQ(context->timers().stats().refused, 0U);
    check_ledger_at_rest(*context);
}

TEST(try_post, runs_a_function_or_leaves_it_as_it_was) {
    testing::virtual_context context({.max_timers = 1});
    witness_report report;
    int ran = 0;
    auto function = [kept = witness(report), &ran] { ++ran; };
    ASSERT_TRUE(context->try_post([&ran] { ++ran; }));
    EXPECT_FALSE(context->try_post(std::move(function)));
    EXPECT_EQ(report.ends, 0) << "it was not moved from";
    EXPECT_EQ(context->timers().stats().refused, 1U);
    context.run();
    EXPECT_EQ(ran, 1);
    EXPECT_TRUE(context->try_post(std::move(function)));
    context.run();
    EXPECT_EQ(ran, 2);
    EXPECT_EQ(report.ends, 1);
    expect_refused(errc::empty_function, "chime::io_context::try_post",
                   [&] { static_cast<void>(context->try_post(std::function<void()>())); });
    context->timers().stop();
    EXPECT_FALSE(context->try_post([&ran] { ++ran; }));
    context.run();
    EXPECT_EQ(ran, 2);
    check_ledger_at_rest(*context);
}

TEST(try_submit, gives_a_job_like_submit_does) {
    io_context context({.pool_threads = 1});
    const int answer = block_on(context, [](io_context& home) -> task<int> {
        auto job = home.cpu_pool().try_submit([] { return 42; });
        EXPECT_TRUE(job.has_value());
        co_return co_await *job;
    }(context));
    EXPECT_EQ(answer, 42);
    expect_refused(errc::empty_function, "chime::cpu_pool::try_submit",
                   [&] { static_cast<void>(context.cpu_pool().try_submit(std::function<void()>())); });
    check_ledger_at_rest(context);
}

/// Asks the pool for something when it is destroyed.
class last_wish {
 public:
    last_wish(io_context& home, witness_report& report, bool& was_asked) noexcept
        : home_(&home), report_(&report), was_asked_(&was_asked) {}
    last_wish(last_wish&& other) noexcept
        : home_(std::exchange(other.home_, nullptr)), report_(other.report_), was_asked_(other.was_asked_) {}
    last_wish& operator=(last_wish&&) = delete;
    ~last_wish() {
        if (home_ == nullptr) return;
        auto wish = [kept = witness(*report_)] { ADD_FAILURE() << "it was refused"; };
        EXPECT_FALSE(home_->cpu_pool().try_submit(std::move(wish)).has_value()) << "the pool takes nothing any more";
        EXPECT_EQ(report_->ends, 0) << "it was not moved from";
        *was_asked_ = true;
    }

 private:
    io_context* home_;
    witness_report* report_;
    bool* was_asked_;
};

TEST(try_submit, refused_by_a_context_that_is_being_destroyed_leaves_the_function_as_it_was) {
    witness_report report;
    bool was_asked = false;
    {
        io_context context({.pool_threads = 1});
        context.timers().after(1h, [wish = last_wish(context, report, was_asked)] {});
    }
    EXPECT_TRUE(was_asked);
    EXPECT_EQ(report.ends, 1) << "it ended where it was made";
}

task<> hop_if_possible(io_context& there, std::optional<bool>& answer) {
    answer = co_await there.get_scheduler().try_schedule();
    co_await yield();
}

TEST(try_schedule, answers_whether_the_task_is_there_now) {
    testing::virtual_context here;
    testing::virtual_context there;
    testing::virtual_context full({.max_tasks = 1});
    testing::virtual_context stopped;
    spawn_detached(*full, answer_after(1h, 1));
    stopped->timers().stop();
    std::optional<bool> answer;

    spawn_detached(*here, hop_if_possible(*there, answer));
    here.run();
    EXPECT_EQ(answer, std::nullopt) << "it goes on there";
    there.run();
    EXPECT_EQ(answer, true);

    for (testing::virtual_context* const refusing : {&full, &stopped}) {
        answer.reset();
        spawn_detached(*here, hop_if_possible(**refusing, answer));
        here.run();
        EXPECT_EQ(answer, false) << "it goes on where it was";
    }
    answer.reset();
    spawn_detached(*here, hop_if_possible(*here, answer));
    here.run();
    EXPECT_EQ(answer, true) << "on its own context there always is a place";
    full.run();
    for (testing::virtual_context* const each : {&here, &there, &full}) check_ledger_at_rest(**each);
}

task<> hop_when_possible(io_context& there, std::vector<bool>& answers) {
    auto hop = there.get_scheduler().try_schedule();
    do {
        answers.push_back(co_await hop);
        if (!answers.back()) co_await sleep_for(1min);
    } while (!answers.back() && answers.size() < 100);
}

TEST(try_schedule, awaited_again_after_a_refusal_answers_anew) {
    testing::virtual_context here;
    testing::virtual_context full({.max_tasks = 1});
    auto occupant = spawn(*full, answer_after(1h, 1));
    std::vector<bool> answers;
    spawn_detached(*here, hop_when_possible(*full, answers));
    here.advance(90s);
    EXPECT_EQ(answers, (std::vector{false, false}));
    full.run();
    here.run();
    full.run();
    EXPECT_EQ(answers, (std::vector{false, false, true}));
    for (testing::virtual_context* const each : {&here, &full}) check_ledger_at_rest(**each);
}

namespace elsewhere {

struct pool {};

template <class Pool, class Awaitable>
int spawn(Pool&, Awaitable&&) {
    return 42;
}

}  // namespace elsewhere

TEST(spawn, of_somebody_else_is_found_where_it_was_meant) {
    elsewhere::pool pool;
    EXPECT_EQ(spawn(pool, answer_after(1h, 1)), 42);
}

}  // namespace
}  // namespace chime::test
