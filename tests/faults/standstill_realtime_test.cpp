// SPDX-License-Identifier: MIT
//
// A process that is stopped as a whole, as by Ctrl-Z or a virtual machine that is moved, while timers come due.

#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

constexpr auto period = 50ms;

/// When a periodic timer has run. Its worker writes, and we read when that has ended.
class rhythm {
 public:
    rhythm(timers& home, missed_ticks policy) : began_(chime::clock::now()) {
        beating_ = home.every(period, policy, [this] {
            runs_.push_back(chime::clock::now());
            ++count_;
        });
    }
    [[nodiscard]] int count() const { return count_; }
    [[nodiscard]] timer_handle handle() const { return beating_; }

    void expect_not_early() const {
        for (std::size_t run = 0; run < runs_.size(); ++run) {
            EXPECT_GE(runs_[run], began_ + static_cast<int>(run + 1) * period) << "tick " << run;
        }
    }
    void expect_gap_of(duration least) const { EXPECT_GE(longest_gap(), least) << "it was not stopped"; }
    /// Any two runs are so many periods apart as there are runs between them.
    void expect_none_made_up_for() const {
        for (std::size_t first = 0; first < runs_.size(); ++first) {
            for (std::size_t next = first + 1; next < runs_.size(); ++next) {
                EXPECT_GE(runs_[next] - runs_[first], static_cast<int>(next - first - 1) * period);
            }
        }
    }
    void expect_apart() const {
        for (std::size_t run = 1; run < runs_.size(); ++run) EXPECT_GE(runs_[run] - runs_[run - 1], period);
    }
    void expect_made_up_for(int least) const {
        int close = 0;
        for (std::size_t run = 1; run < runs_.size(); ++run) close += runs_[run] - runs_[run - 1] < period / 2 ? 1 : 0;
        EXPECT_GE(close, least);
    }

 private:
    [[nodiscard]] duration longest_gap() const {
        if (runs_.empty()) return {};
        duration longest = runs_.front() - began_;
        for (std::size_t run = 1; run < runs_.size(); ++run) longest = std::max(longest, runs_[run] - runs_[run - 1]);
        return longest;
    }

    time_point began_;
    std::vector<time_point> runs_;
    std::atomic<int> count_{0};
    timer_handle beating_;
};

/// Timers before, during and after the time in which the process is stopped.
class due_all_the_time {
 public:
    static constexpr int count = 400;

    explicit due_all_the_time(timers& home)
        : home_(home),
          skipping_(home, missed_ticks::skip),
          bursting_(home, missed_ticks::burst),
          delaying_(home, missed_ticks::delay) {
        const time_point began = chime::clock::now();
        for (int number = 0; number < count; ++number) {
            // Armed in another order than they are due.
            const int position = number * 7 % count;
            const time_point due = began + 400ms + position * 4ms;
            home.at(due, [this, position, due] {
                early_ += chime::clock::now() < due ? 1 : 0;
                order_.push_back(position);
                ++fired_;
            });
        }
    }

    /// All have fired, and the ticks that were missed are made up for where they shall be.
    void finish() {
        await_that([&] { return fired_ == count && bursting_.count() >= 45; });
        for (const rhythm* const each : {&skipping_, &bursting_, &delaying_}) home_.cancel_and_wait(each->handle());
    }

    void expect_promises_kept() const {
        EXPECT_EQ(early_, 0);
        EXPECT_EQ(order_.size(), std::size_t{count});
        EXPECT_TRUE(std::is_sorted(order_.begin(), order_.end())) << "not in the order of their deadlines";
        for (const rhythm* const each : {&skipping_, &bursting_, &delaying_}) {
            each->expect_not_early();
            each->expect_gap_of(900ms);
        }
        skipping_.expect_none_made_up_for();
        delaying_.expect_apart();
        bursting_.expect_made_up_for(10);
    }

 private:
    timers& home_;
    rhythm skipping_;
    rhythm bursting_;
    rhythm delaying_;
    int early_ = 0;  ///< One worker fires what one thread has armed, and we read when that has ended.
    std::vector<int> order_;
    std::atomic<int> fired_{0};
};

/// The life of the child; tells when everything is armed.
int live_through_a_stop(int ready) {
    const watchdog guard("a stopped process", 60s);
    {
        runtime home({.workers = 2, .metronome = true});
        io_context context;
        loop_thread loop(context);
        due_all_the_time on_workers(home.timers());
        due_all_the_time on_loop(context.timers());
        EXPECT_EQ(::write(ready, "r", 1), 1);
        on_workers.finish();
        on_loop.finish();
        loop.finish();
        check_ledger_at_rest(context);
        check_ledger_after_shutdown(home);
        on_workers.expect_promises_kept();
        on_loop.expect_promises_kept();
    }
    return ::testing::Test::HasFailure() ? 1 : 0;
}

TEST(a_stopped_process, fires_in_order_what_came_due_and_makes_up_for_ticks_as_it_was_told) {
    int ends[2] = {};
    ASSERT_EQ(::pipe(ends), 0);
    std::fflush(nullptr);
    const pid_t child = ::fork();  // There are no other threads.
    if (child == 0) {
        const int code = live_through_a_stop(ends[1]);
        std::fflush(nullptr);
        ::_exit(code);
    }
    char told = 0;
    ASSERT_EQ(::read(ends[0], &told, 1), 1);
    std::this_thread::sleep_for(300ms);
    int status = 0;
    ASSERT_EQ(::kill(child, SIGSTOP), 0);
    ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
    EXPECT_TRUE(WIFSTOPPED(status)) << "it has ended before";
    std::this_thread::sleep_for(1s);
    ASSERT_EQ(::kill(child, SIGCONT), 0);
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "what the child says is above";
    ::close(ends[0]);
    ::close(ends[1]);
}

}  // namespace
}  // namespace chime::test
