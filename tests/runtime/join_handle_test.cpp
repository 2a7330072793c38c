// SPDX-License-Identifier: MIT
//
// What became of a task, for whoever waits for it or cancels it.
#include "runtime/small_tasks.hpp"
#include "support/ledger.hpp"
#include "support/refusal.hpp"
#include "support/running_loop.hpp"
#include "support/witness.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<join_handle<int>> &&
              std::is_nothrow_move_constructible_v<join_handle<int>>);

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

TEST(join_handle, has_nothing_to_wait_for_when_it_is_empty_and_nothing_to_give_before_the_end) {
    testing::virtual_context context;
    expect_refused(errc::empty_task, [] { join_handle<int>().wait(); });
    auto joined = spawn(*context, answer_after(1s, 7));
    expect_refused(errc::empty_task, [&] { static_cast<void>(joined.take()); });
    context.run();
    EXPECT_EQ(joined.take(), 7) << "asked too early, it has lost nothing";
    expect_refused(errc::empty_task, [&] { static_cast<void>(joined.take()); });
    check_ledger_at_rest(*context);
}

task<> join_oneself(join_handle<>& own, std::string& said) {
    co_await sleep_for(1s);
    try {
        co_await own;
    } catch (const std::system_error& refused) {
        EXPECT_EQ(refused.code(), std::errc::resource_deadlock_would_occur);
        said = refused.what();
    }
    co_await sleep_for(1s);
}

TEST(join_handle, refuses_the_task_that_would_wait_for_itself_and_is_good_for_others) {
    testing::virtual_context context;
    join_handle<> own;
    std::string said;
    own = spawn(*context, join_oneself(own, said));
    context.advance(1s);
    EXPECT_NE(said.find("waits for its own end"), std::string::npos) << said;
    EXPECT_FALSE(own.is_done()) << "it has gone on behind the refusal";
    bool is_joined = false;
    spawn_detached(*context, [](join_handle<>& other, bool& joined) -> task<> {
        co_await other;
        joined = true;
    }(own, is_joined));
    context.run();
    EXPECT_TRUE(is_joined);
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

}  // namespace
}  // namespace chime::test
