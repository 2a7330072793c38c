// SPDX-License-Identifier: MIT
//
// Who tells a loop to end, or gives it so much time, does not wait for all that is ready or due: nothing begins any more.

#include "support/ledger.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

constexpr int many = 2000;  ///< More than the budgets of several turns.

TEST(ends_between_pieces, nothing_that_was_posted_begins_after_stop) {
    testing::virtual_context context;
    int ran = 0;
    for (int count = 0; count < many; ++count) {
        context->post([&] {
            if (++ran == 2) context->stop();
        });
    }
    EXPECT_EQ(context.run(), 2U);
    EXPECT_EQ(ran, 2);
    context->restart();
    EXPECT_EQ(context.run(), many - 2U) << "and nothing of it is lost";
    check_ledger_at_rest(*context);
}

TEST(ends_between_pieces, nothing_that_is_due_begins_after_stop) {
    testing::virtual_context context;
    std::vector<int> ran;
    for (int number = 0; number < many; ++number) {
        context->timers().after(1ms, [&, number] {
            ran.push_back(number);
            if (number == 1) context->stop();
        });
    }
    context->post([&] { ran.push_back(many); });
    context.clock().advance(1ms);
    EXPECT_EQ(context->run(), 2U) << "neither the timers that are due with it nor what was posted";
    EXPECT_EQ(context->timers().stats().pending, many - 2U) << "stop() touches no timer";
    context->restart();
    EXPECT_EQ(context.run(), many - 1U);
    std::erase(ran, many);
    for (int number = 0; number < many; ++number) ASSERT_EQ(ran[static_cast<std::size_t>(number)], number);
    check_ledger_at_rest(*context);
}

TEST(ends_between_pieces, poll_ends_after_stop_as_well) {
    testing::virtual_context context;
    int ran = 0;
    for (int count = 0; count < many; ++count) {
        context->post([&] {
            ++ran;
            context->stop();
        });
    }
    EXPECT_EQ(context->poll(), 1U);
    EXPECT_EQ(ran, 1);
}

task<> make_successors(io_context& context, int& ran, int left) {
    if (++ran == 2) context.stop();
    if (left != 0) spawn_detached(context, make_successors(context, ran, left - 1));
    co_return;
}

TEST(ends_between_pieces, what_follows_from_the_last_piece_does_not_begin_after_stop) {
    testing::virtual_context context;
    int ran = 0;
    spawn_detached(*context, make_successors(*context, ran, 20));
    context.run();
    EXPECT_EQ(ran, 2);
    context->restart();
    context.run();
    EXPECT_EQ(ran, 21);
    check_ledger_at_rest(*context);
}

TEST(ends_between_pieces, nothing_begins_when_the_time_of_run_for_is_over) {
    testing::virtual_clock clock(testing::when_idle::stand_still);
    io_context context({.clock = &clock});
    int posted = 0;
    int due = 0;
    for (int count = 0; count < 400; ++count) {
        context.post([&] {
            ++posted;
            clock.advance(1ms);
        });
        context.timers().after(0ms, [&] {
            ++due;
            clock.advance(1ms);
        });
    }
    EXPECT_EQ(context.run_for(20ms), 21U) << "what has begun is finished";
    EXPECT_EQ(context.run_for(20ms), 21U);
    EXPECT_EQ(due, 21);
    EXPECT_EQ(posted, 21) << "neither kind keeps the other from running";
    EXPECT_EQ(context.run_for(0ms), 1U) << "a little is always done";
    context.run();
    EXPECT_EQ(due + posted, 800);
    check_ledger_at_rest(context);
}

TEST(ends_between_pieces, what_is_due_at_the_limit_runs_although_the_loop_woke_up_late) {
    testing::virtual_clock clock(testing::when_idle::stand_still);
    io_context context({.clock = &clock});
    int ran = 0;
    for (int count = 0; count < 100; ++count) {
        context.timers().after(1ms, [&] {
            ++ran;
            clock.advance(500ns);
        });
    }
    const time_point limit = clock.now() + 1ms;
    clock.advance(1ms + 60us);
    EXPECT_EQ(context.run_until(limit), 100U);
    EXPECT_EQ(ran, 100);
    check_ledger_at_rest(context);
}

task<> yield_until(const bool& is_over) {
    while (!is_over) co_await yield();
}

// A turn that was over before it came to its timers was taken for one that had only loaded some. Then what was armed for an
// earlier time waited for all that were loaded before.
TEST(ends_between_pieces, turns_that_end_before_their_timers_do_not_keep_an_earlier_one_waiting) {
    testing::virtual_context context;
    context->timers().after(1s, [] {});  // So that the wheel knows the time, and what is over when it is armed.
    context.advance(1s);
    int fired = 0;
    int fired_before_it = many;
    bool is_over = false;
    for (int count = 0; count < many; ++count) {
        context->timers().at(context.now() - 1ms, [&] {
            if (++fired != 3) return;
            context->timers().at(context.now() - 500ms, [&] {
                fired_before_it = fired;
                is_over = true;
            });
        });
    }
    spawn_detached(*context, yield_until(is_over));
    while (!is_over) context->run_one();  // One task, one timer, one task.
    EXPECT_LT(fired_before_it, 100);
    context.run();
    EXPECT_EQ(fired, many);
    check_ledger_at_rest(*context);
}

TEST(ends_between_pieces, nothing_that_is_due_begins_after_the_timers_were_stopped) {
    testing::virtual_context context;
    int ran = 0;
    int posted = 0;
    std::atomic<int> ends{0};
    for (int count = 0; count < 20 * many; ++count) {  // More than are cancelled in one turn.
        context->timers().after(1ms,
                                [&ran, &context, last = std::shared_ptr<void>(nullptr, [&ends](void*) { ++ends; })] {
                                    if (++ran == 2) context->timers().stop();
                                });
    }
    context->post([&] { ++posted; });
    context.clock().advance(1ms);
    context.run();
    EXPECT_EQ(ran, 2);
    EXPECT_EQ(posted, 1) << "that is no timer";
    EXPECT_EQ(ends.load(), 20 * many);
    EXPECT_EQ(context->timers().stats().pending, 0U);
    check_ledger_at_rest(*context);
}

TEST(ends_between_pieces, sleepers_that_are_due_when_the_timers_stop_are_cancelled) {
    testing::virtual_context context;
    int elapsed = 0;
    int cancelled = 0;
    const auto sleep_once = [](testing::virtual_context& on, int& in_time, int& told) -> task<> {
        const wake_reason why = co_await sleep_for(1ms);
        if (why == wake_reason::elapsed) {
            if (++in_time == 2) on->timers().stop();
        } else {
            ++told;
        }
    };
    for (int count = 0; count < many; ++count) spawn_detached(*context, sleep_once(context, elapsed, cancelled));
    context.run();
    EXPECT_EQ(elapsed, 2);
    EXPECT_EQ(cancelled, many - 2);
    check_ledger_at_rest(*context);
}

TEST(ends_between_pieces, a_worker_retires_before_the_next_piece) {
    runtime home({.workers = 2});
    std::atomic<int> ran{0};
    std::atomic<bool> is_retired{false};
    std::atomic<bool> is_first{true};
    // On whichever worker it runs, it arms a crowd there. Its first piece holds that worker until somebody retires it.
    const auto crowd = [&]() -> task<> {
        for (int count = 0; count < 400; ++count) {
            home.timers().after(0ms, [&] {
                ++ran;
                if (is_first.exchange(false)) std::this_thread::sleep_for(500ms);
                if (!is_retired.load()) std::this_thread::sleep_for(5ms);
            });
        }
        co_return;
    };
    home.block_on(crowd());
    while (is_first.load()) std::this_thread::yield();
    // One of the two has the crowd; the other one is idle and goes at once.
    const std::size_t busy = home.stats().workers[0].timers.armed != 0 ? 0 : 1;
    home.retire_worker(home.stats().workers[busy].worker);
    EXPECT_LT(ran.load(), 200) << "it has waited for more than the piece that the worker was in";
    is_retired.store(true);
    while (ran.load() != 400) std::this_thread::yield();
    check_ledger_at_rest(home);
}

}  // namespace
}  // namespace chime::test
