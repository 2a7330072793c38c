// SPDX-License-Identifier: MIT
//
// User code that runs at the very end of something: of a task, of a thread, of a context.
#include "runtime/watchdog.hpp"
#include "support/eager.hpp"
#include "support/ledger.hpp"
#include "support/random.hpp"
#include "support/refusal.hpp"

#include <chime/detail/frame_memory.hpp>
#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// Calls something when it goes, unless it was moved from.
class last_words {
 public:
    explicit last_words(std::function<void()> said) : said_(std::move(said)) {}
    last_words(last_words&& other) noexcept : said_(std::exchange(other.said_, nullptr)) {}
    last_words& operator=(last_words&&) = delete;
    ~last_words() {
        if (said_) said_();
    }

 private:
    std::function<void()> said_;
};

task<last_words> give_last_words(std::function<void()> said) {
    co_await sleep_for(1s);
    co_return last_words(std::move(said));
}

task<> keep_last_words(std::function<void()> said) {
    const last_words kept(std::move(said));
    co_await sleep_for(1h);
}

// --- A result that nobody has asked for.

TEST(join_handle, that_is_dropped_lets_the_destructor_of_the_result_arm_a_timer) {
    testing::virtual_context context;
    std::optional<time_point> fired;
    {
        const auto dropped =
            spawn(*context, give_last_words([&] { context->timers().after(1s, [&] { fired = context.now(); }); }));
    }
    context.advance(10s);
    EXPECT_EQ(fired, time_point{} + 2s) << "it counts from the end of the task";
    check_ledger_at_rest(*context);
}

TEST(dump_pending, by_the_destructor_of_a_result_shows_a_task_that_is_ending) {
    for (const bool records_locations : {false, true}) {
        testing::virtual_context context({.record_locations = records_locations});
        std::ostringstream out;
        {
            const auto dropped = spawn(*context, give_last_words([&] { context->dump_pending(out); }));
        }
        context.run();
        EXPECT_NE(out.str().find(": 0 timers, 1 task\n"), std::string::npos) << out.str();
        check_ledger_at_rest(*context);
    }
}

task<> sleep_briefly() {
    co_await sleep_for(1us);
}

TEST(dump_pending, by_another_thread_while_tasks_and_timers_end_is_a_view_of_a_moment) {
    io_context context({.max_timers = 64, .record_locations = true});
    std::atomic<bool> is_over = false;
    // Records are freed and used again for something else all the time, also when nobody drives the loop.
    const auto arm_cancel_and_post = [&] {
        while (!is_over) {
            if (const auto armed = context.timers().try_after(1h, [] {})) context.timers().cancel(*armed);
            try {
                context.post([padding = std::array<char, 24>{}] { static_cast<void>(padding); });
            } catch (const std::system_error& error) {
                EXPECT_EQ(error.code(), errc::too_many_timers);
            }
        }
    };
    std::thread first(arm_cancel_and_post);
    std::thread second(arm_cancel_and_post);
    std::thread reader([&] {
        for (std::uint64_t round = 0; round < scaled(5'000); ++round) {
            std::ostringstream out;
            context.dump_pending(out);
            EXPECT_EQ(out.str().find("chime context"), 0U) << out.str();
        }
        is_over = true;
    });
    while (!is_over) {
        const auto dropped = spawn(context, sleep_briefly());
        context.poll();
    }
    for (std::thread* const each : {&first, &second, &reader}) each->join();
    context.run();
    check_ledger_at_rest(context);
}

// --- A context that is destroyed.

TEST(io_context, refuses_to_run_for_a_destructor_that_runs_while_it_is_destroyed) {
    int refusals = 0;
    {
        testing::virtual_context context;
        spawn_detached(*context, keep_last_words([&] {
            expect_refused(errc::already_running, [&] { context->poll(); });
            expect_refused(errc::stopped, [&] { context->timers().after(1s, [] {}); });
            ++refusals;
        }));
        spawn_detached(*context, keep_last_words([] {}));
        context.settle();
        check_ledger(*context);
    }
    EXPECT_EQ(refusals, 1);
}

task<> hop_and_stop(io_context& target, bool& has_arrived) {
    co_await target.get_scheduler().schedule();
    has_arrived = true;
    target.stop();
}

TEST(schedule, has_let_go_of_its_target_before_that_is_destroyed) {
    watchdog guard("hop, and destroy the target", 30s);
    io_context home;
    loop_thread loop(home);
    // With the address sanitizer as often as without: nobody else sees it.
    for (int round = 0; round < 5'000; ++round) {
        io_context target({.max_timers = 64, .max_tasks = 64});
        const auto work = target.make_work_guard();
        bool has_arrived = false;
        spawn_detached(home, hop_and_stop(target, has_arrived));
        // The task is to arrive while the target falls asleep, when whoever has sent it still has to ring.
        if (round % 2 == 1) std::this_thread::sleep_for(20us);
        while (!has_arrived) target.run();
        if (round % 50 == 0) check_ledger_at_rest(target);  // Not always: it is to be destroyed at once.
        guard.pat();
    }
    loop.finish();
    check_ledger_at_rest(home);
}

// --- A thread that ends.

/// Constructed before its thread uses anything of chime's, and so destroyed after all that chime keeps for the thread.
thread_local std::optional<last_words> of_this_thread;

TEST(frame_memory, taken_by_the_last_destructors_of_a_thread_takes_nothing_else_along) {
    constexpr std::size_t bytes = 608;
    std::set<const void*> blocks;
    for (int count = 0; count < 500; ++count) {
        void* taken = nullptr;
        std::thread([&] {
            of_this_thread.emplace([&] { taken = detail::take_frame(bytes); });
            detail::give_frame(detail::take_frame(bytes), bytes);
        }).join();
        blocks.insert(taken);
        detail::give_frame(taken, bytes);  // To this thread, which keeps a few and leaves the rest to the others.
    }
    EXPECT_LE(blocks.size(), 250U) << "what the thread had left is lost with it";
}

TEST(io_context, is_given_work_by_the_last_destructors_of_a_thread) {
    testing::virtual_context context;
    int ran = 0;
    const auto post_a_large_one = [&] {
        context->post([&ran, padding = std::array<char, 200>{}] { ran += 1 + padding[0]; });
    };
    for (int count = 0; count < 100; ++count) {
        std::thread([&] {
            of_this_thread.emplace(post_a_large_one);
            post_a_large_one();
        }).join();
        context.settle();
    }
    EXPECT_EQ(ran, 200);
    check_ledger_at_rest(*context);
}

// --- A coroutine that somebody starts beside a task.

eager sleep_eagerly() {
    co_await sleep_for(1s);
}

task<> sleep_beside(std::optional<eager>& started) {
    started.emplace(sleep_eagerly());
    co_await sleep_for(2s);
}

TEST(task, that_has_lent_its_wait_to_a_coroutine_beside_it_is_refused_another_one) {
    std::optional<eager> started;  // Outlives the context, which must not touch it any more.
    testing::virtual_context context;
    spawn_detached(*context, sleep_beside(started));
    expect_refused(errc::not_in_a_task, [&] { context.advance(1ms); });
    EXPECT_TRUE(started.has_value());
    EXPECT_EQ(context->timers().stats().tasks, 0U);
    check_ledger(*context);
}

task<> lend_after(duration delay) {
    co_await sleep_for(delay);
    const eager beside = sleep_eagerly();
}

TEST(task, that_has_lent_its_wait_may_end) {
    testing::virtual_context context;
    spawn_detached(*context, lend_after(1ms));
    context.advance(10ms);
    EXPECT_EQ(context->timers().stats().tasks, 0U);
    check_ledger(*context);
}

TEST(task, that_has_lent_its_wait_may_end_when_it_was_told_that_everything_stops) {
    testing::virtual_context context;
    spawn_detached(*context, lend_after(1h));
    context.advance(1ms);
    context->timers().stop();
    context.advance(10ms);
    EXPECT_EQ(context->timers().stats().tasks, 0U);
    check_ledger(*context);
}

}  // namespace
}  // namespace chime::test
