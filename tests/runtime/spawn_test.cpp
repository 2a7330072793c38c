// SPDX-License-Identifier: MIT
#include "support/ledger.hpp"
#include "support/refusal.hpp"
#include "support/running_loop.hpp"
#include "support/witness.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<join_handle<int>> &&
              std::is_nothrow_move_constructible_v<join_handle<int>>);

task<int> answer_after(std::chrono::nanoseconds pause, int number) {
    co_await sleep_for(pause);
    co_return number;
}

task<> fail_after(std::chrono::nanoseconds pause) {
    co_await sleep_for(pause);
    throw std::out_of_range("from a task");
}

template <class T>
task<> join_into(join_handle<T> joined, std::optional<T>& result) {
    T value = co_await joined;
    result.emplace(std::move(value));
}

/// What a join ended with, if it was refused or has failed.
template <class T>
task<> join_for_failure(join_handle<T> joined, std::string& failure) {
    try {
        static_cast<void>(co_await joined);
        failure = "none";
    } catch (const std::system_error& error) {
        failure = error.code() == errc::cancelled ? "cancelled" : "another system_error";
    } catch (const std::exception& error) {
        failure = error.what();
    }
}

// --- Joining.

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

TEST(join_handle, that_is_dropped_lets_the_task_run_on_its_own) {
    testing::virtual_context context;
    std::optional<int> result;
    {
        const auto dropped = spawn(*context, join_into(spawn(*context, answer_after(1s, 7)), result));
        context.settle();
    }
    auto detached = spawn(*context, answer_after(1s, 8));
    detached.detach();
    EXPECT_FALSE(detached);
    detached.detach();
    EXPECT_FALSE(detached.cancel());
    EXPECT_FALSE(detached.is_done());
    context.run();
    EXPECT_EQ(result, 7);
    check_ledger_at_rest(*context);
}

TEST(join_handle, that_is_dropped_sends_the_exception_out_of_run) {
    testing::virtual_context context;
    { const auto dropped = spawn(*context, fail_after(1s)); }
    EXPECT_THROW(context.run(), std::out_of_range);
    EXPECT_EQ(context.run(), 0U);
    check_ledger_at_rest(*context);
}

TEST(join_handle, that_is_replaced_detaches_the_task_before) {
    testing::virtual_context context;
    auto joined = spawn(*context, answer_after(1s, 1));
    joined = spawn(*context, answer_after(2s, 2));
    auto& same = joined;
    joined = std::move(same);
    EXPECT_TRUE(joined);
    std::optional<int> result;
    spawn_detached(*context, join_into(std::move(joined), result));
    context.run();
    EXPECT_EQ(result, 2);
    check_ledger_at_rest(*context);
}

task<> await_nothing() {
    const join_handle<int> nothing;
    co_await nothing;
}

TEST(join_handle, that_is_empty_is_refused_when_it_is_awaited) {
    testing::virtual_context context;
    spawn_detached(*context, await_nothing());
    expect_refused(errc::empty_task, [&] { context.run(); });
    EXPECT_FALSE(join_handle<int>().cancel());
    EXPECT_FALSE(join_handle<void>().is_done());
    check_ledger_at_rest(*context);
}

// --- Cancelling a task.

task<> note_reasons(int sleeps, std::string& story) {
    for (int count = 0; count < sleeps; ++count) {
        const wake_reason reason = co_await sleep_for(1s);
        story += reason == wake_reason::elapsed ? 'e' : 'c';
        story += this_task::is_cancelled() ? '!' : '.';
    }
}

TEST(join_handle, cancels_the_sleep_of_its_task_and_all_that_follow) {
    testing::virtual_context context;
    std::string story;
    auto joined = spawn(*context, note_reasons(4, story));
    context.advance(1500ms);
    EXPECT_EQ(story, "e.");
    EXPECT_TRUE(joined.cancel());
    EXPECT_TRUE(joined.cancel());
    EXPECT_EQ(story, "e.") << "never on the stack of whoever cancels";
    context.run();
    EXPECT_EQ(story, "e.c!c!c!");
    EXPECT_EQ(context.now(), time_point{} + 1500ms);
    EXPECT_FALSE(joined.cancel());
    check_ledger_at_rest(*context);
}

TEST(join_handle, cancels_a_task_that_has_not_begun) {
    testing::virtual_context context;
    std::string story;
    auto joined = spawn(*context, note_reasons(2, story));
    EXPECT_TRUE(joined.cancel());
    context.run();
    EXPECT_EQ(story, "c!c!");
    EXPECT_EQ(context.now(), time_point{});
    check_ledger_at_rest(*context);
}

TEST(join_handle, cancels_from_another_thread) {
    testing::virtual_context context;
    std::string story;
    auto joined = spawn(*context, note_reasons(1, story));
    context.settle();
    std::thread canceller([&] { EXPECT_TRUE(joined.cancel()); });
    canceller.join();
    context.run();
    EXPECT_EQ(story, "c!");
    check_ledger_at_rest(*context);
}

TEST(join_handle, does_not_cancel_the_next_task_in_the_same_slot) {
    testing::virtual_context context;
    std::string story;
    auto first = spawn(*context, answer_after(0s, 1));
    context.run();
    auto second = spawn(*context, note_reasons(1, story));
    context.settle();
    EXPECT_FALSE(first.cancel());
    context.run();
    EXPECT_EQ(story, "e.");
    check_ledger_at_rest(*context);
}

TEST(join_handle, that_cancels_a_task_which_waits_for_another_lets_that_come_to_its_end) {
    testing::virtual_context context;
    std::optional<int> result;
    auto outer = spawn(*context, join_into(spawn(*context, answer_after(1s, 5)), result));
    context.settle();
    EXPECT_TRUE(outer.cancel());
    context.run();
    EXPECT_EQ(result, 5) << "a wait without a deadline goes on to its end";
    check_ledger_at_rest(*context);
}

// --- Across contexts.

TEST(join_handle, is_awaited_from_another_context) {
    testing::virtual_context here;
    testing::virtual_context there;
    std::optional<int> result;
    std::string failure;
    spawn_detached(*here, join_into(spawn(*there, answer_after(1s, 42)), result));
    spawn_detached(*here, join_for_failure(spawn(*there, fail_after(1s)), failure));
    here.settle();
    there.run();
    EXPECT_EQ(result, std::nullopt) << "it goes on in its own loop";
    here.run();
    EXPECT_EQ(result, 42);
    EXPECT_EQ(failure, "from a task");
    check_ledger_at_rest(*here);
    check_ledger_at_rest(*there);
}

TEST(join_handle, is_awaited_from_another_thread_a_thousand_times) {
    running_loop there;
    io_context here;
    int sum = 0;
    struct adder {
        static task<> add(io_context& where, int& total) {
            for (int count = 0; count < 1000; ++count) {
                auto joined = spawn(where, answer_after(0s, 1));
                total += co_await joined;
            }
        }
    };
    spawn_detached(here, adder::add(*there, sum));
    here.run();
    EXPECT_EQ(sum, 1000);
    there.join();
    check_ledger_at_rest(here);
    check_ledger_at_rest(*there);
}

TEST(join_handle, of_a_task_that_is_destroyed_with_its_context_gives_cancelled) {
    testing::virtual_context here;
    std::string waiting;
    std::string late;
    join_handle<int> kept;
    {
        testing::virtual_context there;
        spawn_detached(*here, join_for_failure(spawn(*there, answer_after(1s, 1)), waiting));
        kept = spawn(*there, answer_after(1s, 2));
        there.settle();
        here.settle();
        check_ledger(*there);
    }
    EXPECT_FALSE(kept.cancel()) << "the handle may outlive the context";
    EXPECT_TRUE(kept.is_done());
    spawn_detached(*here, join_for_failure(std::move(kept), late));
    here.run();
    EXPECT_EQ(waiting, "cancelled");
    EXPECT_EQ(late, "cancelled");
    check_ledger_at_rest(*here);
}

TEST(join_handle, of_a_task_that_is_destroyed_before_it_has_begun_gives_cancelled) {
    testing::virtual_context here;
    std::string on_its_way;
    std::string ready;
    join_handle<int> kept;
    {
        testing::virtual_context there;
        there->post([&] { spawn_detached(*here, join_for_failure(spawn(*there, answer_after(1s, 1)), ready)); });
        there->poll();  // Spawned inside, so it is ready, but this turn is over.
        spawn_detached(*here, join_for_failure(spawn(*there, answer_after(1s, 2)), on_its_way));
        kept = spawn(*there, answer_after(1s, 3));
        here.settle();
        check_ledger(*there);
    }
    here.settle();
    EXPECT_EQ(on_its_way, "cancelled") << "whoever waits for it must not wait for ever";
    EXPECT_EQ(ready, "cancelled");
    EXPECT_TRUE(kept.is_done());
    check_ledger_at_rest(*here);
}

TEST(join_handle, whose_waiter_is_destroyed_first_is_harmless) {
    testing::virtual_context there;
    std::optional<int> result;
    {
        testing::virtual_context here;
        spawn_detached(*here, join_into(spawn(*there, answer_after(1s, 1)), result));
        here.settle();
        check_ledger(*here);
    }
    there.run();
    EXPECT_EQ(result, std::nullopt);
    check_ledger_at_rest(*there);
}

TEST(join_handle, of_a_task_in_the_same_context_goes_with_it_in_any_order) {
    witness_report report;
    struct keeper {
        static task<int> sleep([[maybe_unused]] witness kept) {
            co_await sleep_for(1h);
            co_return 1;
        }
        static task<> join(join_handle<int> joined, [[maybe_unused]] witness kept) { co_await joined; }
    };
    {
        testing::virtual_context context;
        for (int count = 0; count < 10; ++count) {
            auto joined = spawn(*context, keeper::sleep(witness(report)));
            if (count % 2 == 0) context.settle();
            spawn_detached(*context, keeper::join(std::move(joined), witness(report)));
        }
        context.settle();
        check_ledger(*context);
    }
    EXPECT_EQ(report.ends, 20);
}

task<> hop_and_note(io_context& there, io_context& here, std::vector<std::thread::id>& seen) {
    seen.push_back(std::this_thread::get_id());
    co_await there.get_scheduler().schedule();
    seen.push_back(std::this_thread::get_id());
    co_await sleep_for(1ns);  // In the loop that it is in now.
    co_await there.timers().sleep_for(1ns);
    seen.push_back(std::this_thread::get_id());
    co_await here.get_scheduler().schedule();
    seen.push_back(std::this_thread::get_id());
    co_await here.timers().sleep_for(1ns);
    seen.push_back(std::this_thread::get_id());
}

TEST(schedule, hops_between_two_contexts_on_two_threads) {
    running_loop here;
    running_loop there;
    std::vector<std::thread::id> seen;
    std::atomic<bool> is_done = false;
    struct waiter {
        static task<> wait(join_handle<void> joined, std::atomic<bool>& done) {
            co_await joined;
            done = true;
        }
    };
    auto joined = spawn(*here, hop_and_note(*there, *here, seen));
    spawn_detached(*there, waiter::wait(std::move(joined), is_done));
    wait_for(is_done);
    const auto h = here.thread_id();
    const auto t = there.thread_id();
    EXPECT_EQ(seen, (std::vector{h, t, t, h, h}));
    here.join();
    there.join();
    check_ledger_at_rest(*here);
    check_ledger_at_rest(*there);
}

task<> hop_many_times(io_context& one, io_context& other, int hops, std::atomic<int>& done) {
    for (int count = 0; count < hops; ++count) {
        co_await (count % 2 == 0 ? other : one).get_scheduler().schedule();
    }
    ++done;
}

TEST(schedule, loses_no_task_of_many_that_hop_to_and_fro) {
    running_loop one;
    running_loop other;
    std::atomic<int> done = 0;
    for (int count = 0; count < 50; ++count) spawn_detached(*one, hop_many_times(*one, *other, 200, done));
    while (done != 50) std::this_thread::yield();
    one.join();
    other.join();
    check_ledger_at_rest(*one);
    check_ledger_at_rest(*other);
}

task<> hop_and_sleep(io_context& there, std::optional<wake_reason>& reason) {
    co_await there.get_scheduler().schedule();
    reason = co_await sleep_for(1h);
}

TEST(schedule, takes_the_join_handle_along) {
    testing::virtual_context here;
    testing::virtual_context there;
    std::optional<wake_reason> reason;
    auto joined = spawn(*here, hop_and_sleep(*there, reason));
    here.settle();
    there.settle();
    EXPECT_EQ(here->timers().stats().tasks, 0U);
    EXPECT_EQ(there->timers().stats().tasks, 1U);
    EXPECT_TRUE(joined.cancel());
    EXPECT_EQ(here.run(), 0U) << "it lives elsewhere now";
    there.run();
    EXPECT_EQ(reason, wake_reason::cancelled);
    EXPECT_TRUE(joined.is_done());
    check_ledger_at_rest(*here);
    check_ledger_at_rest(*there);
}

TEST(schedule, takes_a_cancellation_along_that_came_before) {
    testing::virtual_context here;
    testing::virtual_context there;
    std::optional<wake_reason> reason;
    auto joined = spawn(*here, hop_and_sleep(*there, reason));
    EXPECT_TRUE(joined.cancel());
    here.settle();
    there.run();
    EXPECT_EQ(reason, wake_reason::cancelled);
    check_ledger_at_rest(*here);
    check_ledger_at_rest(*there);
}

TEST(schedule, to_a_context_that_has_no_room_or_was_stopped_is_refused_and_the_task_stays) {
    testing::virtual_context here;
    testing::virtual_context full({.max_tasks = 1});
    testing::virtual_context stopped;
    spawn_detached(*full, answer_after(1h, 1));
    stopped->timers().stop();
    std::optional<wake_reason> reason;
    spawn_detached(*here, hop_and_sleep(*full, reason));
    expect_refused(errc::too_many_tasks, [&] { here.run(); });
    spawn_detached(*here, hop_and_sleep(*stopped, reason));
    expect_refused(errc::stopped, [&] { here.run(); });
    EXPECT_EQ(reason, std::nullopt);
    check_ledger_at_rest(*here);
    full.run();
    check_ledger_at_rest(*full);
}

TEST(schedule, on_its_own_context_goes_behind_what_is_ready) {
    testing::virtual_context context;
    std::string story;
    struct teller {
        static task<> tell(io_context& home, std::string& told) {
            told += 'a';
            co_await home.get_scheduler().schedule();
            told += 'c';
        }
    };
    spawn_detached(*context, teller::tell(*context, story));
    context->post([&] { story += 'b'; });
    context.run();
    EXPECT_EQ(story, "abc");
    check_ledger_at_rest(*context);
}

TEST(schedule, leaves_a_task_behind_that_is_destroyed_with_the_context_that_it_went_to) {
    testing::virtual_context here;
    std::optional<wake_reason> reason;
    std::string failure;
    {
        testing::virtual_context there;
        spawn_detached(*here, join_for_failure(spawn(*here, hop_and_sleep(*there, reason)), failure));
        here.settle();
        there.settle();
        check_ledger(*there);
    }
    here.run();
    EXPECT_EQ(failure, "cancelled");
    check_ledger_at_rest(*here);
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
