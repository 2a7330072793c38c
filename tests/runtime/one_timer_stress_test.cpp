// SPDX-License-Identifier: MIT
//
// One timer at a time, and four threads that cancel it, postpone it and arm the next one while it fires: every answer is
// written down, and at the end all of them have to fit together.

#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/random.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <thread>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr std::size_t thread_count = 4;

/// What became of one timer.
struct fate {
    timer_handle handle;
    time_point deadline;  ///< With which it was armed.
    time_point fired_at;
    std::atomic<int> begun{0};
    std::atomic<int> ended{0};
    std::atomic<int> destroyed{0};
    std::atomic<int> cancelled{0};

    void run(time_point now) {
        fired_at = now;
        begun.fetch_add(1);
        spin(500);
        ended.fetch_add(1);
    }
    [[nodiscard]] bool is_over() const { return begun.load() + cancelled.load() != 0; }
};

/// A closure whose end is noted.
class noting {
 public:
    noting(timers& all, fate& noted) : home_(&all), its_(&noted) {}
    noting(noting&& other) noexcept : home_(other.home_), its_(std::exchange(other.its_, nullptr)) {}
    ~noting() {
        if (its_ != nullptr) its_->destroyed.fetch_add(1);
    }
    void operator()() const { its_->run(home_->now()); }

 private:
    timers* home_;
    fate* its_;
};

/// A deadline that was accepted, and between which looks at the clock.
struct accepted {
    time_point before{};
    time_point after{};
    time_point deadline{};
    bool is_there = false;
};

/// The timers of a run, one after the other, and what four threads were told about each.
class duel {
 public:
    duel(timers& all, std::uint64_t rounds) : all_(all), fates_(rounds), guard_("one timer at a time", 30s) {
        for (auto& each : last_accepted_) each.resize(rounds);
    }

    /// Until all of them have come to their end.
    void fight() {
        random_source random(process_seed());
        arm(0, random);
        std::vector<std::thread> threads;
        for (std::size_t number = 0; number < thread_count; ++number) {
            threads.emplace_back([this, number] { take_part(number); });
        }
        for (std::thread& each : threads) each.join();
        for (const fate& each : fates_) {
            await_that([&] { return each.begun.load() == each.ended.load(); });
        }
    }

    /// After the loop has come to rest. Answers how many have fired.
    std::uint64_t check() const {
        std::uint64_t fired = 0;
        std::uint64_t early = 0;
        for (std::size_t round = 0; round < fates_.size(); ++round) {
            const fate& its = fates_[round];
            EXPECT_EQ(its.begun.load() + its.cancelled.load(), 1) << "timer " << round << "; " << replay_hint();
            EXPECT_EQ(its.destroyed.load(), has_destructor(round) ? 1 : 0) << "timer " << round;
            if (its.begun.load() == 0) continue;
            ++fired;
            if (its.fired_at < earliest_promise(round)) ++early;
        }
        EXPECT_EQ(early, 0U) << "fired before the deadline that was accepted last; " << replay_hint();
        EXPECT_EQ(raised_.load(), 0U) << "postponed although it was over; " << replay_hint();
        EXPECT_EQ(cancelled_again_.load(), 0U) << "cancelled although it was over; " << replay_hint();
        EXPECT_EQ(left_running_.load(), 0U) << "runs although somebody has waited for its end; " << replay_hint();
        EXPECT_EQ(kept_.load(), 0U) << "cancelled, and the closure is still there; " << replay_hint();
        const timer_stats sums = all_.stats();
        EXPECT_EQ(sums.armed, fates_.size());
        EXPECT_EQ(sums.fired, fired);
        EXPECT_EQ(sums.cancelled, fates_.size() - fired);
        EXPECT_EQ(sums.postponed, postponed_.load());
        std::cout << "seed " << process_seed() << ", armed " << fates_.size() << ", fired " << fired << ", postponed "
                  << postponed_.load() << '\n';
        return fired;
    }

 private:
    static bool has_destructor(std::size_t round) { return round % 2 == 0; }

    static nanoseconds delay_of(random_source& random) {
        const std::uint64_t kind = random.below(8);
        return kind == 0 ? nanoseconds{1h} : kind < 3 ? nanoseconds{0} : nanoseconds{random.below(5'000)};
    }

    void arm(std::size_t round, random_source& random) {
        fate& its = fates_[round];
        its.deadline = all_.now() + delay_of(random);
        if (has_destructor(round)) {
            its.handle = all_.at(its.deadline, noting(all_, its));
        } else {
            its.handle = all_.at(its.deadline, [&all = all_, &its] { its.run(all.now()); });
        }
        current_.store(round, std::memory_order_release);
    }

    void take_part(std::size_t number) {
        random_source random(process_seed() + 1 + number);
        for (;;) {
            const std::size_t round = current_.load(std::memory_order_acquire);
            if (!try_to_end(number, round, random)) {
                spin(random.below(random.one_in(4) ? 8'000 : 500));
                continue;
            }
            expect_the_end(round);
            // One of those who have seen the end arms the next one.
            std::size_t last_armed = round;
            if (armed_.compare_exchange_strong(last_armed, round + 1)) {
                if (round % 64 == 0) guard_.pat();
                if (round + 1 < fates_.size()) arm(round + 1, random);
            }
            if (round + 1 == fates_.size()) return;
            while (current_.load(std::memory_order_acquire) == round) std::this_thread::yield();
        }
    }

    /// True: this thread knows that it is over.
    bool try_to_end(std::size_t number, std::size_t round, random_source& random) {
        fate& its = fates_[round];
        const std::uint64_t kind = random.below(24);
        if (kind > 1) return !postpone(number, round, delay_of(random));
        const bool was_over = its.is_over();
        const cancel_result answer = kind == 0 ? all_.cancel(its.handle) : all_.cancel_and_wait(its.handle);
        if (kind == 1 && its.begun.load() != its.ended.load()) left_running_.fetch_add(1);
        if (answer != cancel_result::cancelled) return true;
        if (was_over) cancelled_again_.fetch_add(1);
        its.cancelled.fetch_add(1);
        if (has_destructor(round) && its.destroyed.load() != 1) kept_.fetch_add(1);
        return true;
    }

    bool postpone(std::size_t number, std::size_t round, nanoseconds delay) {
        fate& its = fates_[round];
        const bool was_over = its.is_over();
        const time_point before = all_.now();
        const bool answer = all_.postpone_until(its.handle, before + delay);
        if (!answer) return false;
        last_accepted_[number][round] = {before, all_.now(), before + delay, true};
        postponed_.fetch_add(1);
        if (was_over) raised_.fetch_add(1);
        return true;
    }

    /// Whoever has seen the end of a timer never hears anything else of it.
    void expect_the_end(std::size_t round) {
        const timer_handle which = fates_[round].handle;
        if (all_.postpone(which, 1h)) raised_.fetch_add(1);
        if (all_.cancel(which) == cancel_result::cancelled) cancelled_again_.fetch_add(1);
    }

    /// Of all deadlines that may have been the last one, the first: others were accepted after the rest had been.
    [[nodiscard]] time_point earliest_promise(std::size_t round) const {
        time_point latest_begin = time_point::min();
        for (const auto& each : last_accepted_) {
            if (each[round].is_there) latest_begin = std::max(latest_begin, each[round].before);
        }
        if (latest_begin == time_point::min()) return fates_[round].deadline;
        time_point earliest = time_point::max();
        for (const auto& each : last_accepted_) {
            if (!each[round].is_there || each[round].after < latest_begin) continue;
            earliest = std::min(earliest, each[round].deadline);
        }
        return earliest;
    }

    timers& all_;
    std::vector<fate> fates_;
    std::array<std::vector<accepted>, thread_count> last_accepted_;  ///< By thread and timer.
    std::atomic<std::size_t> current_{0};
    std::atomic<std::size_t> armed_{0};
    std::atomic<std::uint64_t> postponed_{0};
    std::atomic<std::uint64_t> raised_{0};
    std::atomic<std::uint64_t> cancelled_again_{0};
    std::atomic<std::uint64_t> left_running_{0};
    std::atomic<std::uint64_t> kept_{0};
    watchdog guard_;
};

TEST(one_timer, that_four_threads_cancel_and_postpone_ends_once_and_never_early_on_a_loop) {
    io_context context;
    duel fought(context.timers(), scaled(200'000));
    loop_thread loop(context);
    fought.fight();
    loop.finish();
    EXPECT_GT(fought.check(), 0U);
    check_ledger_at_rest(context);
}

TEST(one_timer, that_four_threads_cancel_and_postpone_ends_once_and_never_early_on_two_workers) {
    runtime home({.workers = 2});
    duel fought(home.timers(), scaled(200'000));
    fought.fight();
    check_ledger_after_shutdown(home);
    EXPECT_GT(fought.check(), 0U);
}

}  // namespace
}  // namespace chime::test
