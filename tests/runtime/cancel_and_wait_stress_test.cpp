// SPDX-License-Identifier: MIT
//
// Real threads that wait for the end of a callback, and what they free afterwards.
#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/random.hpp"

#include <chime/io_context.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

TEST(cancel_and_wait, when_it_returns_the_callback_touches_nothing_any_more) {
    watchdog guard("cancel_and_wait", 30s);
    io_context context;
    loop_thread loop(context);
    random_source random(process_seed());
    std::uint64_t waited = 0;
    // On a loaded machine it may take long until one is met in the middle of its run.
    for (std::uint64_t round = 0; round < scaled(60'000) || (waited == 0 && round < 60'000); ++round) {
        guard.pat();
        // Not atomic, and gone after the call: a sanitizer sees every access that comes too late.
        auto touched = std::make_unique<std::array<std::uint64_t, 4>>();
        std::uint64_t* const memory = touched->data();
        std::atomic<bool> has_begun{false};
        const bool repeats = random.one_in(2);
        const std::uint64_t steps = random.below(2'000);
        const auto body = [memory, steps, &has_begun] {
            has_begun.store(true, std::memory_order_relaxed);
            for (std::uint64_t step = 0; step < steps; ++step) {
                memory[1] += 1;
                spin(1);
            }
            memory[2] = memory[1];
        };
        const timer_handle which =
            repeats ? context.timers().every(20us, missed_ticks::skip, body) : context.timers().after(0ns, body);
        // Often enough it is met in the middle of its run.
        if (random.one_in(2)) {
            await_that([&] { return has_begun.load(std::memory_order_relaxed); });
        } else {
            spin(random.below(3'000));
        }
        waited += context.timers().cancel_and_wait(which) == cancel_result::running ? 1U : 0U;
        ASSERT_EQ((*touched)[1], (*touched)[2]) << "it still runs; " << replay_hint();
        (*touched)[1] = ~std::uint64_t{0};
        touched.reset();
    }
    loop.finish();
    EXPECT_GT(waited, 0U);
    check_ledger_at_rest(context);
    std::cout << "seed " << process_seed() << ", waited " << waited << " times\n";
}

TEST(cancel_and_wait, waits_for_a_closure_that_somebody_else_is_destroying) {
    watchdog guard("cancel_and_wait against cancel", 30s);
    struct slow_end {
        explicit slow_end(std::atomic<int>& ends) : count(&ends) {}
        slow_end(slow_end&& other) noexcept : count(std::exchange(other.count, nullptr)) {}
        ~slow_end() {
            if (count == nullptr) return;
            spin(200);
            count->fetch_add(1);
        }
        void operator()() const {}
        std::atomic<int>* count;
    };
    io_context context;
    loop_thread loop(context);
    std::atomic<std::uint64_t> begun{0};
    std::atomic<std::uint64_t> ended{0};
    timer_handle which;
    const std::uint64_t rounds = scaled(100'000);
    std::thread other([&] {
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            await_that([&] { return begun.load(std::memory_order_acquire) == round; });
            context.timers().cancel(which);
            ended.store(round, std::memory_order_release);
        }
    });
    random_source random(process_seed());
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        guard.pat();
        std::atomic<int> ends{0};
        which = context.timers().after(1h, slow_end(ends));
        begun.store(round, std::memory_order_release);
        spin(random.below(300));
        context.timers().cancel_and_wait(which);
        const int seen = ends.load();
        await_that([&] { return ended.load(std::memory_order_acquire) == round; });
        ASSERT_EQ(seen, 1) << replay_hint();
    }
    other.join();
    loop.finish();
    check_ledger_at_rest(context);
}

}  // namespace
}  // namespace chime::test
