// SPDX-License-Identifier: MIT
//
// Against the real clock: nothing is early, and what another thread or another loop waits for comes.

#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/random.hpp"

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include <sys/epoll.h>
#include <unistd.h>

namespace chime::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using real_clock = std::chrono::steady_clock;

struct sums {
    std::atomic<std::uint64_t> fired{0};
    std::atomic<std::uint64_t> early{0};

    void note(real_clock::time_point deadline) {
        early += real_clock::now() < deadline ? 1U : 0U;
        ++fired;
    }
};

task<> sleep_and_look(duration delay, sums& all) {
    const auto asked = real_clock::now();
    co_await sleep_for(delay);
    all.note(asked + delay);
}

TEST(lateness, nothing_is_early_by_the_real_clock) {
    const watchdog guard("thousands of timers");
    io_context context;
    sums all;
    random_source random(process_seed());
    constexpr std::uint64_t count = 1'000;
    for (std::uint64_t i = 0; i < count; ++i) {
        const nanoseconds delay{random.below(300'000'000)};
        const auto asked = real_clock::now();
        context.timers().after(delay, [&all, asked, delay] { all.note(asked + delay); });
        context.timers().at(asked + delay, [&all, asked, delay] { all.note(asked + delay); });
        spawn_detached(context, sleep_and_look(delay, all));
    }
    context.timers().after(1ms, [&] {
        // And from inside of a callback that takes its time.
        for (std::uint64_t i = 0; i < count; ++i) {
            const nanoseconds delay{random.below(1'000'000)};
            const auto asked = real_clock::now();
            context.timers().after(delay, [&all, asked, delay] { all.note(asked + delay); });
        }
    });
    context.run();
    EXPECT_EQ(all.fired.load(), 4 * count);
    EXPECT_EQ(all.early.load(), 0U) << replay_hint();
    check_ledger_at_rest(context);
}

TEST(lateness, postponed_timers_are_not_early_either) {
    const watchdog guard("postponed timers");
    io_context context;
    sums all;
    random_source random(process_seed());
    std::vector<timer_handle> handles;
    std::vector<real_clock::time_point> deadlines(1'000);
    for (auto& deadline : deadlines) {
        deadline = real_clock::now() + 10s;  // Long enough to be postponed before, however busy the machine is.
        handles.push_back(context.timers().after(10s, [&all, &deadline] { all.note(deadline); }));
    }
    context.post([&] {
        for (std::size_t i = 0; i < handles.size(); ++i) {
            const nanoseconds delay{random.below(200'000'000)};
            deadlines[i] = real_clock::now() + delay;
            EXPECT_TRUE(context.timers().postpone(handles[i], delay));
        }
    });
    context.run();
    EXPECT_EQ(all.fired.load(), handles.size());
    EXPECT_EQ(all.early.load(), 0U) << replay_hint();
    check_ledger_at_rest(context);
}

TEST(lateness, an_earlier_timer_from_another_thread_wakes_a_sleeping_loop_in_time) {
    const watchdog guard("earlier timer");
    io_context context;
    const timer_handle far = context.timers().after(1h, [] {});
    loop_thread loop(context);
    for (int round = 0; round < 10; ++round) {
        loop.wait_until_parked();
        std::atomic<bool> has_fired{false};
        const auto asked = real_clock::now();
        if (round % 2 == 0) {
            context.timers().after(10ms, [&] { has_fired = true; });
        } else {
            const timer_handle which = context.timers().after(30min, [&] { has_fired = true; });
            EXPECT_TRUE(context.timers().postpone(which, 10ms));
        }
        await_that([&] { return has_fired.load(); });
        const auto took = real_clock::now() - asked;
        EXPECT_GE(took, 10ms);
        EXPECT_LT(took, 1s);
    }
    context.timers().cancel(far);
    loop.finish();
    check_ledger_at_rest(context);
}

// --- Another loop in charge.

/// An epoll that watches a context.
class outer_loop {
 public:
    explicit outer_loop(io_context& context) : context_(context), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
        epoll_event event{};
        event.events = EPOLLIN;
        ::epoll_ctl(epoll_, EPOLL_CTL_ADD, context.poll_fd(), &event);
        context_.poll();
    }
    outer_loop(const outer_loop&) = delete;
    outer_loop& operator=(const outer_loop&) = delete;
    ~outer_loop() { ::close(epoll_); }

    /// Waits until the context wants to be polled, and polls it; false: it did not, for so long.
    bool turn(std::chrono::milliseconds limit) {
        epoll_event event{};
        ++waits_;
        if (::epoll_wait(epoll_, &event, 1, static_cast<int>(limit.count())) != 1) return false;
        context_.poll();
        return true;
    }
    [[nodiscard]] std::uint64_t waits() const { return waits_; }

 private:
    io_context& context_;
    int epoll_;
    std::uint64_t waits_ = 0;
};

task<> sleep_thrice(int& steps) {
    for (int i = 0; i < 3; ++i) {
        co_await sleep_for(10ms);
        ++steps;
    }
}

TEST(poll_fd, an_epoll_loop_drives_timers_and_tasks) {
    const watchdog guard("epoll");
    io_context context;
    sums all;
    int steps = 0;
    outer_loop outer(context);
    for (int i = 0; i < 200; ++i) {
        const auto deadline = real_clock::now() + i * 500us;
        context.timers().at(deadline, [&all, deadline] { all.note(deadline); });
    }
    spawn_detached(context, sleep_thrice(steps));
    while (all.fired.load() != 200 || steps != 3) ASSERT_TRUE(outer.turn(5s)) << "the descriptor forgot something";
    EXPECT_EQ(all.early.load(), 0U);
    EXPECT_LT(outer.waits(), 2'000U) << "the descriptor is readable all the time";
    EXPECT_FALSE(outer.turn(50ms)) << "nothing is left to do";
    check_ledger_at_rest(context);
}

TEST(poll_fd, another_thread_makes_it_readable) {
    const watchdog guard("epoll and another thread");
    io_context context;
    outer_loop outer(context);
    const timer_handle far = context.timers().after(1h, [] {});
    static_cast<void>(outer.turn(20ms));
    for (int round = 0; round < 30; ++round) {
        int ran = 0;
        std::thread sender([&] {
            std::this_thread::sleep_for(1ms);
            if (round % 3 == 0) context.post([&] { ++ran; });
            if (round % 3 == 1) context.timers().after(1ms, [&] { ++ran; });
            if (round % 3 == 2) {
                const timer_handle which = context.timers().after(30min, [&] { ++ran; });
                EXPECT_TRUE(context.timers().postpone(which, 1ms));
            }
        });
        while (ran == 0) ASSERT_TRUE(outer.turn(5s)) << "round " << round;
        sender.join();
    }
    context.timers().cancel(far);
    static_cast<void>(outer.turn(0ms));
    check_ledger_at_rest(context);
}

TEST(poll_fd, a_context_that_was_stopped_and_restarted_is_heard_of_again) {
    const watchdog guard("epoll and restart");
    io_context context;
    outer_loop outer(context);
    int ran = 0;
    context.timers().after(20ms, [&] { ++ran; });
    context.stop();
    context.poll();  // Does nothing, and must not forget what is pending.
    context.restart();
    while (ran == 0) ASSERT_TRUE(outer.turn(2s)) << "the descriptor forgot the timer";
    check_ledger_at_rest(context);
}

}  // namespace
}  // namespace chime::test
