// SPDX-License-Identifier: MIT
//
// A loop that has nothing to do costs nothing. CHIME_LONG in the environment makes it wait for ten seconds.

#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"

#include <chime/io_context.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// How often a thread of this process has gone to sleep by itself; nothing: the system does not tell.
std::optional<std::uint64_t> voluntary_switches(long thread) {
    std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
    std::string key;
    for (std::uint64_t value = 0; status >> key;) {
        if (key == "voluntary_ctxt_switches:" && status >> value) return value;
    }
    return std::nullopt;
}

std::chrono::seconds long_time() {
    return std::getenv("CHIME_LONG") != nullptr ? 10s : 3s;
}

/// A loop on a thread whose number is known.
class known_loop {
 public:
    explicit known_loop(io_context& context)
        : guard_(context.make_work_guard()), thread_([this, &context] {
              number_ = ::syscall(SYS_gettid);
              context.run();
          }) {
        await_that([&] { return number_.load() != 0 && context.timers().stats().parks != 0; });
        std::this_thread::sleep_for(50ms);
    }
    ~known_loop() { finish(); }
    void finish() {
        guard_.reset();
        if (thread_.joinable()) thread_.join();
    }
    [[nodiscard]] long number() const { return number_.load(); }

 private:
    std::atomic<long> number_{0};
    io_context::work_guard guard_;
    std::thread thread_;
};

TEST(idle, one_timer_seconds_away_costs_no_wake_up_before_it_is_due) {
    const watchdog guard("one timer far away");
    io_context context;
    std::atomic<bool> has_fired{false};
    const auto armed = std::chrono::steady_clock::now();
    context.timers().after(long_time(), [&] { has_fired = true; });
    known_loop loop(context);
    const timer_stats before = context.timers().stats();
    const auto switches_before = voluntary_switches(loop.number());
    std::this_thread::sleep_until(armed + long_time() - 300ms);
    const auto switches_after = voluntary_switches(loop.number());
    const timer_stats after = context.timers().stats();
    EXPECT_FALSE(has_fired.load());
    EXPECT_EQ(after.turns, before.turns);
    EXPECT_EQ(after.parks, before.parks);
    if (switches_before && switches_after) {
        EXPECT_LE(*switches_after - *switches_before, 1U);
    }
    await_that([&] { return has_fired.load(); });
    EXPECT_GE(std::chrono::steady_clock::now() - armed, long_time());
    loop.finish();
    check_ledger_at_rest(context);
}

TEST(idle, nothing_pending_costs_no_wake_up_at_all) {
    const watchdog guard("nothing pending");
    io_context context;
    known_loop loop(context);
    const timer_stats before = context.timers().stats();
    const auto switches_before = voluntary_switches(loop.number());
    std::this_thread::sleep_for(1s);
    const auto switches_after = voluntary_switches(loop.number());
    const timer_stats after = context.timers().stats();
    EXPECT_EQ(after.turns, before.turns);
    EXPECT_EQ(after.parks, before.parks);
    if (switches_before && switches_after) {
        EXPECT_LE(*switches_after - *switches_before, 1U);
    }
    loop.finish();
    check_ledger_at_rest(context);
}

TEST(idle, a_timer_that_is_later_than_the_next_one_wakes_nobody) {
    const watchdog guard("later timers");
    io_context context;
    const timer_handle first = context.timers().after(1h, [] {});
    known_loop loop(context);
    const timer_stats before = context.timers().stats();
    for (int i = 0; i < 500; ++i) {  // Fewer than it has to be woken for, to take back what was cancelled.
        const timer_handle later = context.timers().after(2h, [] {});
        EXPECT_TRUE(context.timers().postpone(later, 3h));
        context.timers().cancel(later);
    }
    std::this_thread::sleep_for(50ms);
    const timer_stats after = context.timers().stats();
    EXPECT_EQ(after.wakeups, before.wakeups);
    EXPECT_EQ(after.turns, before.turns);
    context.timers().cancel(first);
    loop.finish();
    check_ledger_at_rest(context);
}

}  // namespace
}  // namespace chime::test
