// SPDX-License-Identifier: MIT
//
// Tasks that go from one context to another.
#include "runtime/small_tasks.hpp"
#include "support/ledger.hpp"
#include "support/refusal.hpp"
#include "support/running_loop.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

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

TEST(schedule, takes_along_where_the_task_was_spawned) {
    testing::virtual_context here({.record_locations = true});
    testing::virtual_context there({.record_locations = true});
    std::optional<wake_reason> reason;
    auto joined = spawn(*here, hop_and_sleep(*there, reason));
    spawn_detached(*here, hop_and_sleep(*there, reason));
    here.settle();
    there.settle();
    std::ostringstream out;
    there->dump_pending(out);
    const std::string told = out.str();
    const std::size_t first = told.find("schedule_test.cpp");
    EXPECT_NE(first, std::string::npos) << told;
    EXPECT_NE(told.find("schedule_test.cpp", first + 1), std::string::npos) << told;
    there.run();
    EXPECT_EQ(reason, wake_reason::elapsed);
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

}  // namespace
}  // namespace chime::test
