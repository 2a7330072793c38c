// SPDX-License-Identifier: MIT
//
// Callbacks and tasks that pull away what they stand on: their token, their handle, their task, everything at once.

#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/runtime_ledger.hpp"
#include "support/witness.hpp"

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

TEST(a_callback, may_destroy_the_source_of_its_own_token_after_cancelling_it_or_not) {
    for (const bool is_cancelled : {false, true}) {
        for (const bool throws : {false, true}) {
            testing::virtual_context context;
            witness_report report;
            auto source = std::make_unique<cancel_source>();
            int runs = 0;
            context->timers().every(
                1s, missed_ticks::skip,
                [&, kept = witness(report)] {
                    ++runs;
                    if (source && is_cancelled) source->request_cancel();
                    source.reset();
                    if (throws) throw std::runtime_error("on purpose");
                },
                source->token());
            for (int second = 0; second < 3; ++second) {
                try {
                    context.advance(1s);
                } catch (const std::runtime_error&) {
                    context.settle();
                }
            }
            EXPECT_EQ(runs, is_cancelled ? 1 : 3) << throws;
            context->timers().stop();
            context.run();
            EXPECT_EQ(report.ends.load(), 1);
            check_ledger_at_rest(*context);
        }
    }
}

TEST(a_callback, may_end_its_own_timer_in_every_way_and_throw_on_top) {
    for (int way = 0; way < 5; ++way) {
        testing::virtual_context context;
        timers& all = context->timers();
        witness_report report;
        timer_handle own;
        std::optional<scoped_timer> owner;
        int runs = 0;
        own = all.every(1s, missed_ticks::burst, [&, way, kept = witness(report)] {
            ++runs;
            if (way == 0 && all.cancel(own) != cancel_result::running) ADD_FAILURE();
            if (way == 1 && all.cancel_and_wait(own) != cancel_result::running) ADD_FAILURE();
            if (way == 2) owner.reset();
            if (way == 3) all.stop();
            EXPECT_FALSE(all.postpone(own, 1h));
            if (way == 4) all.cancel(own);
            throw std::runtime_error("on purpose");
        });
        if (way == 2) owner.emplace(all, own);
        EXPECT_THROW(context.advance(1s), std::runtime_error);
        EXPECT_EQ(all.cancel(own), cancel_result::gone);
        context.advance(10s);
        EXPECT_EQ(runs, 1) << "way " << way;
        EXPECT_EQ(report.ends.load(), 1) << "way " << way;
        context.run();
        check_ledger_at_rest(*context);
    }
}

task<> drop_own_join(std::optional<join_handle<void>>& own, bool cancels, int& ended) {
    co_await yield();
    if (cancels) own->cancel();
    own.reset();
    auto pause = sleep_for(1h);
    const wake_reason reason = co_await pause;
    EXPECT_EQ(reason, cancels ? wake_reason::cancelled : wake_reason::elapsed);
    ++ended;
}

TEST(a_task, may_cancel_itself_and_drop_its_own_join_handle) {
    for (const bool cancels : {false, true}) {
        testing::virtual_context context;
        int ended = 0;
        std::optional<join_handle<void>> own;
        own.emplace(spawn(*context, drop_own_join(own, cancels, ended)));
        context.run();
        EXPECT_EQ(ended, 1);
        check_ledger_at_rest(*context);
    }
}

task<> retire_one(runtime& home, worker_id which, std::atomic<int>& retired, std::atomic<int>& refused) {
    try {
        home.retire_worker(which);
        ++retired;
    } catch (const std::system_error&) {
        ++refused;
    }
    co_return;
}

TEST(all_workers, that_are_told_to_retire_at_once_leave_one_and_everything_else_to_it) {
    watchdog guard("all workers retire", 60s);
    for (int round = 0; round < 10; ++round) {
        constexpr unsigned count = 8;
        runtime home({.workers = count});
        std::atomic<int> fired{0};
        std::atomic<int> armed{0};
        std::atomic<int> retired{0};
        std::atomic<int> refused{0};
        std::vector<std::thread> threads;
        for (unsigned which = 0; which < count; ++which) {
            threads.emplace_back([&, which] {
                for (int made = 0; made < 200; ++made) {
                    home.timers().after(1ms * (made % 20), [&] { ++fired; });
                    ++armed;
                }
                try {
                    home.retire_worker(which);
                    ++retired;
                } catch (const std::system_error& error) {
                    EXPECT_TRUE(error.code() == errc::last_worker) << error.what();
                    ++refused;
                }
            });
        }
        for (std::thread& each : threads) each.join();
        EXPECT_EQ(retired.load(), static_cast<int>(count) - 1);
        EXPECT_EQ(refused.load(), 1);
        await_that([&] { return fired == armed; });
        // And from tasks, which may be running on whoever is to go.
        std::vector<worker_id> added;
        for (unsigned made = 1; made < count; ++made) added.push_back(home.add_worker());
        for (const worker_id each : added) spawn_detached(home, retire_one(home, each, retired, refused));
        await_that([&] { return retired + refused == 2 * static_cast<int>(count) - 1; });
        check_ledger_after_shutdown(home);
        guard.pat();
    }
}

}  // namespace
}  // namespace chime::test
