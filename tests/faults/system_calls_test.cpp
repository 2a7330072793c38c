// SPDX-License-Identifier: MIT
//
// System calls that are refused, interrupted, or return for no reason.

#include "faults/injection.hpp"
#include "faults/wreckage.hpp"
#include "runtime/small_tasks.hpp"
#include "runtime/watchdog.hpp"
#include "support/descriptors.hpp"
#include "support/ledger.hpp"
#include "support/random.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include <sys/resource.h>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

TEST(poll_fd, without_descriptors_is_refused_with_the_reason_and_can_be_had_later) {
    for (failing_point* const kind : {&faults::descriptors, &faults::watches}) {
        const wreckage before;
        std::optional<io_context> context;
        context.emplace();
        const auto refused = fail_at_each<std::system_error>(
            *kind,
            [&] {
                try {
                    static_cast<void>(context->poll_fd());
                } catch (const std::system_error& error) {
                    EXPECT_EQ(error.code().category(), std::generic_category()) << error.what();
                    throw;
                }
            },
            [&](bool) {
                const int descriptor = context->poll_fd();
                context->poll();
                context->timers().after(0s, [] {});
                EXPECT_TRUE(is_readable(descriptor, 10'000));
                EXPECT_EQ(context->poll(), 1U);
                check_ledger_at_rest(*context);
                context.emplace();
            });
        EXPECT_EQ(refused, kind == &faults::descriptors ? 6U : 4U);
        context.reset();
        before.expect_nothing_more();
    }
}

TEST(poll_fd, drives_a_loop_through_a_storm_of_interrupted_reads_and_writes) {
    watchdog guard("interrupted reads and writes", 60s);
    faults::transfer_storm = 2;
    faults::interruptions = 0;
    io_context context;
    const int descriptor = context.poll_fd();
    std::atomic<int> ran{0};
    const int count = static_cast<int>(scaled(20'000));
    std::thread poster([&] {
        for (int made = 0; made < count; ++made) {
            context.post([&] { ++ran; });
            if (made % 64 == 0) std::this_thread::yield();
        }
    });
    context.poll();
    bool is_heard = true;
    while (ran < count && is_heard) {
        is_heard = is_readable(descriptor, 20'000);
        context.poll();
        guard.pat();
    }
    EXPECT_TRUE(is_heard);
    poster.join();
    faults::transfer_storm = 0;
    EXPECT_GT(faults::interruptions.load(), 0U);
    check_ledger_at_rest(context);
}

/// Sleeps, and notes whether it was early.
task<> nap_often(int naps, std::atomic<int>& early, std::atomic<int>& over) {
    for (int count = 0; count < naps; ++count) {
        const time_point until = chime::clock::now() + 50us;
        auto pause = sleep_until(until);
        co_await pause;
        if (chime::clock::now() < until) ++early;
    }
    ++over;
}

void work_hard(watchdog& guard) {
    std::atomic<int> early{0};
    std::atomic<int> over{0};
    const int naps = static_cast<int>(scaled(2'000));
    runtime home({.workers = 2, .metronome = true, .metronome_period = 1ms});
    io_context context;
    loop_thread loop(context);
    for (int count = 0; count < 8; ++count) {
        spawn_detached(home, nap_often(naps, early, over));
        spawn_detached(context, nap_often(naps, early, over));
    }
    int answers = 0;
    for (int round = 0; over < 16; ++round) {
        guard.pat();
        EXPECT_EQ(home.block_on(answer_after(10us, round)), round);  // Waits, too.
        const timer_handle which = context.timers().after(20us, [] { std::this_thread::yield(); });
        if (round % 3 == 0) std::this_thread::yield();
        if (context.timers().cancel_and_wait(which) != cancel_result::gone) ++answers;
        const std::optional<worker_id> added = round % 8 == 0 ? std::optional(home.add_worker()) : std::nullopt;
        if (added) home.retire_worker(*added);
    }
    EXPECT_EQ(early.load(), 0);
    EXPECT_GT(answers, 0);
    loop.finish();
    check_ledger_at_rest(context);
    check_ledger_after_shutdown(home);
}

TEST(a_futex, that_is_interrupted_or_returns_early_every_second_time_loses_nothing) {
    watchdog guard("interrupted and early returns", 60s);
    faults::interruptions = 0;
    faults::futex_storm = 2;
    work_hard(guard);
    faults::futex_storm = 0;
    EXPECT_GT(faults::interruptions.load(), 10U);
}

TEST(a_futex, that_never_waits_loses_nothing) {
    watchdog guard("a futex that never waits", 60s);
    faults::futex_storm = 1;
    std::atomic<int> early{0};
    std::atomic<int> over{0};
    {
        io_context context;
        loop_thread loop(context);
        for (int count = 0; count < 4; ++count) spawn_detached(context, nap_often(200, early, over));
        await_that([&] { return over == 4; });
        loop.finish();
        check_ledger_at_rest(context);
        runtime home({.workers = 2});
        for (int count = 0; count < 4; ++count) spawn_detached(home, nap_often(200, early, over));
        await_that([&] { return over == 8; });
        check_ledger_after_shutdown(home);
    }
    faults::futex_storm = 0;
    EXPECT_EQ(early.load(), 0);
}

TEST(a_context, whose_addresses_the_system_does_not_take_back_ends_all_the_same) {
    // Addresses are left behind here, which the system has refused to take; a sanitizer does not mind.
    fail_at_each(
        faults::unmappings,
        [] {
            io_context context({.max_timers = 1'000, .max_tasks = 1'000});
            context.timers().after(1h, [] {});
        },
        [](bool) {});
    faults::unmappings.fail_after(0);
    try {
        const io_context refused_or_not({.max_timers = 1'000, .max_tasks = 1'000});
    } catch (const std::bad_alloc&) {}
    faults::unmappings.recover();
}

/// Ends the process: with 0 if all that was accepted under a limit of memory has fired, and the rest was refused.
[[noreturn]] void work_within(decltype(RLIMIT_AS) kind, std::size_t more_bytes) {
    try {
        io_context context({.max_timers = std::size_t{1} << 22U});
        context.timers().after(1us, [] {});
        context.run();
        // As much as it has, and a little more.
        std::size_t used_bytes = 0;
        {
            FILE* const numbers = std::fopen("/proc/self/statm", "r");
            std::size_t pages[6] = {};
            for (std::size_t& each : pages) {
                if (std::fscanf(numbers, "%zu", &each) != 1) std::_Exit(5);
            }
            std::fclose(numbers);
            used_bytes = pages[kind == RLIMIT_AS ? 0 : 5] * 4'096;
        }
        rlimit limit{};
        ::getrlimit(kind, &limit);
        limit.rlim_cur = used_bytes + more_bytes;
        ::setrlimit(kind, &limit);
        bool is_refused = false;
        try {
            const io_context second;
        } catch (const std::bad_alloc&) {
            is_refused = true;
        }
        if (kind == RLIMIT_AS && !is_refused) std::_Exit(3);
        std::uint64_t armed = 0;
        std::uint64_t fired = 0;
        is_refused = false;
        try {
            for (; armed < 1'000'000; ++armed) context.timers().after(1ms, [&fired] { ++fired; });
        } catch (const std::bad_alloc&) {
            is_refused = true;
        } catch (const std::system_error&) {
            is_refused = true;
        }
        if (kind == RLIMIT_DATA && !is_refused) std::_Exit(4);
        while (!context.is_out_of_work()) {
            try {
                context.run();
            } catch (const std::bad_alloc&) {  // The wheel would grow: give back, and go on.
                limit.rlim_cur = limit.rlim_max;
                ::setrlimit(kind, &limit);
            }
        }
        std::_Exit(fired == armed && context.timers().stats().pending == 0 ? 0 : 1);
    } catch (...) {
        std::_Exit(2);
    }
}

TEST(a_limit_of_memory_death_test, refuses_what_is_too_much_and_keeps_what_was_accepted) {
    if (CHIME_TEST_SCALE != 1) GTEST_SKIP() << "a sanitizer needs addresses of its own";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(work_within(RLIMIT_DATA, std::size_t{8} << 20U), ::testing::ExitedWithCode(0), "");
    EXPECT_EXIT(work_within(RLIMIT_AS, std::size_t{32} << 20U), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace chime::test
