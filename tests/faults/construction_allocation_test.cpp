// SPDX-License-Identifier: MIT
//
// What is built and grows while memory, addresses or threads run out: it is refused, nothing is left of it, and what was
// there before goes on.

#include "faults/injection.hpp"
#include "faults/shortage.hpp"
#include "faults/wreckage.hpp"
#include "runtime/watchdog.hpp"
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
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

io_context_config small_context() {
    return {.max_timers = 1'000, .max_tasks = 1'000, .record_locations = true, .pool_threads = 2};
}

void fire_one(io_context& context) {
    bool has_fired = false;
    context.timers().after(1us, [&] { has_fired = true; });
    context.run();
    EXPECT_TRUE(has_fired);
    check_ledger_at_rest(context);
}

TEST(construction_of_an_io_context, without_memory_is_refused_and_leaves_nothing) {
    fire_one(*std::make_unique<io_context>(small_context()));
    expect_refused_and_nothing_left(
        [] {
            io_context context(small_context());
            faults::allocations.recover();
            faults::commits.recover();
            fire_one(context);
        },
        [] {});
}

TEST(construction_of_a_virtual_context, without_memory_is_refused_and_leaves_nothing) {
    expect_refused_and_nothing_left([] { const testing::virtual_context context(small_context()); }, [] {});
}

runtime_config small_runtime() {
    runtime_config config;
    config.workers = 3;
    config.max_timers = 1'000;
    config.max_tasks = 1'000;
    config.record_locations = true;
    config.metronome = true;
    config.on_exception = [](const std::exception_ptr&) { ADD_FAILURE() << "nobody has thrown anything"; };
    return config;
}

/// Threads that are no workers give their timers to different workers: each of those has to fire some.
void fire_on_every_worker(runtime& home) {
    std::atomic<int> fired{0};
    std::vector<std::thread> threads;
    for (int count = 0; count < 6; ++count) {
        threads.emplace_back([&] { home.timers().after(1us, [&] { ++fired; }); });
    }
    for (std::thread& each : threads) each.join();
    await_that([&] { return fired == 6; });
}

TEST(construction_of_a_runtime, without_memory_is_refused_and_leaves_nothing) {
    watchdog guard("construction of a runtime", 60s);
    const runtime_config config = small_runtime();
    { const runtime warm_up(config); }
    expect_refused_and_nothing_left([&] { const runtime home(config); }, [&] { guard.pat(); });
}

TEST(construction_of_a_runtime, without_threads_is_refused_with_the_reason) {
    watchdog guard("construction of a runtime without threads", 60s);
    const runtime_config config = small_runtime();
    { const runtime warm_up(config); }
    const wreckage before;
    const auto refused = fail_at_each<std::system_error>(
        faults::threads, [&] { const runtime home(config); }, [&](bool) { guard.pat(); });
    EXPECT_EQ(refused, 8U) << "three workers and the metronome, twice";
    before.expect_nothing_more();
}

TEST(construction_of_a_simulation, without_memory_is_refused_and_leaves_nothing) {
    runtime_config config = small_runtime();
    expect_refused_and_nothing_left([&] { testing::simulation simulated(1, config); }, [] {});
}

TEST(adding_a_worker, without_memory_or_threads_changes_nothing_and_can_be_tried_again) {
    watchdog guard("adding a worker", 60s);
    for (failing_point* const kind : {&faults::allocations, &faults::mappings, &faults::commits, &faults::threads}) {
        runtime home({.workers = 2, .max_timers = 1'000, .max_tasks = 1'000});
        fire_on_every_worker(home);
        std::optional<worker_id> added;
        std::uint64_t expected = 2;
        const auto try_to_add = [&] { attempt_with_threads([&] { added = home.add_worker(); }); };
        const auto refused = fail_at_each(*kind, try_to_add, [&](bool is_through) {
            guard.pat();
            if (is_through) ++expected;
            EXPECT_EQ(home.stats().workers.size(), expected);
            EXPECT_EQ(home.stats().workers_added, expected);
            fire_on_every_worker(home);
        });
        EXPECT_GT(refused, 0U);
        // And in a seat that was left before.
        home.retire_worker(*added);
        const auto refused_again = fail_at_each(*kind, try_to_add, [&](bool is_through) {
            guard.pat();
            if (is_through) home.retire_worker(*added);
            fire_on_every_worker(home);
        });
        EXPECT_EQ(refused_again == 0, kind == &faults::mappings || kind == &faults::commits);
        check_ledger_after_shutdown(home);
    }
}

TEST(adding_a_worker_to_a_simulation, without_memory_changes_nothing) {
    for (failing_point* const kind : kinds_of_memory()) {
        testing::simulation simulated(7, {.workers = 2, .max_timers = 1'000, .max_tasks = 1'000});
        std::uint64_t expected = 2;
        fail_at_each(
            *kind, [&] { simulated->add_worker(); },
            [&](bool is_through) {
                if (is_through) ++expected;
                EXPECT_EQ(simulated->stats().workers.size(), expected);
                int fired = 0;
                simulated->timers().after(1s, [&] { ++fired; });
                simulated.run();
                EXPECT_EQ(fired, 1);
            });
        simulated->shutdown();
        check_ledger_after_shutdown(*simulated);
    }
}

TEST(retiring_a_worker, without_memory_loses_nothing) {
    watchdog guard("retiring a worker", 60s);
    only_shortage thrown;  // Whoever takes over may have no room in its wheel yet.
    runtime home({.workers = 2, .max_timers = 10'000, .max_tasks = 1'000, .on_exception = std::ref(thrown)});
    std::atomic<int> fired{0};
    int armed = 0;
    worker_id last = 1;
    // Refused or not, and whatever fails on the way.
    const auto refused = fail_at_each(
        faults::allocations, [&] { home.retire_worker(last); },
        [&](bool is_through) {
            guard.pat();
            if (is_through) last = home.add_worker();
            std::thread([&] { home.timers().after(1ms, [&] { ++fired; }); }).join();
            home.timers().after(1ms, [&] { ++fired; });
            armed += 2;
        });
    EXPECT_EQ(refused, 0U) << "all that is needed is there before";
    await_that([&] { return fired == armed; });
    thrown.expect_nothing_else();
    check_ledger_after_shutdown(home);
}

}  // namespace
}  // namespace chime::test
