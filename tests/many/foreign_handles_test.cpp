// SPDX-License-Identifier: MIT
//
// Handles of a runtime that is no more, used on another one whose timers lie in the same places: nobody is touched.

#include "runtime/watchdog.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/runtime.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>
#include <chime/timer_cell.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t many = 50;

task<> sleep_and_tell(runtime& home, timer_handle& name, std::atomic<std::size_t>& woken) {
    timer_delay delay(home.timers(), home.timers().now() + 1h);
    const wake_reason why = co_await delay;
    name = delay.handle();
    if (why == wake_reason::elapsed) ++woken;
}

/// A runtime with one-shot timers, periodic ones and sleepers, all due in an hour; two of them are as like as two peas.
class household {
 public:
    household() : names_(3 * many), clock_(testing::when_idle::stand_still) {
        home_.emplace(runtime_config{.workers = 1, .clock = &clock_});
        for (std::size_t each = 0; each < many; ++each) {
            names_[each] = home_->timers().after(1h, [this] { ++fired_; });
            names_[many + each] = home_->timers().every(1h, missed_ticks::skip, [this] { ++fired_; });
            spawn_detached(*home_, sleep_and_tell(*home_, names_[2 * many + each], woken_));
        }
        await_that([&] { return home_->stats().timers.pending == 3 * many && home_->stats().timers.waiting == many; });
    }

    [[nodiscard]] runtime& home() { return *home_; }
    [[nodiscard]] const std::vector<timer_handle>& names() const { return names_; }

    /// After it the names of the sleeps are known, too.
    void destroy() { home_.reset(); }

    /// Nothing that happened to it has changed anything.
    void expect_undisturbed() {
        const timer_stats sums = home_->stats().timers;
        EXPECT_EQ(sums.pending, 3 * many);
        EXPECT_EQ(sums.cancelled, 0U);
        EXPECT_EQ(sums.postponed, 0U);
        EXPECT_EQ(home_->timers().cancel(names_[0]), cancel_result::cancelled) << "its own handles do what they did";
        clock_.advance(1h - 1ns);
        EXPECT_EQ(home_->block_on(yield_twice()), 7);
        EXPECT_EQ(fired_ + woken_, 0U);
        clock_.advance(1ns);
        await_that([&] { return fired_ == 2 * many - 1 && woken_ == many; });
        EXPECT_EQ(home_->stats().timers.pending, many) << "those that repeat";
        check_ledger_after_shutdown(*home_);
    }

 private:
    static task<int> yield_twice() {
        co_await yield();
        co_await yield();
        co_return 7;
    }

    std::vector<timer_handle> names_;
    std::atomic<std::size_t> fired_{0};
    std::atomic<std::size_t> woken_{0};
    testing::virtual_clock clock_;
    std::optional<runtime> home_;
};

/// Do they name the same place, in different runtimes?
bool are_alike(timer_handle one, timer_handle other) {
    return one.index == other.index && one.life == other.life && one.runtime != other.runtime;
}

void expect_harmless(timers& all, timer_handle old) {
    all.prefetch(old);
    EXPECT_EQ(all.cancel(old), cancel_result::gone);
    EXPECT_FALSE(all.postpone(old, 1ns));
    EXPECT_FALSE(all.postpone(old, 2h));
    EXPECT_FALSE(all.postpone_until(old, never));
    EXPECT_EQ(all.cancel_and_wait(old), cancel_result::gone);
    EXPECT_EQ(scoped_timer(all, old).cancel(), cancel_result::gone);
}

task<> expect_harmless_inside(timers& all, const std::vector<timer_handle>& old) {
    for (const timer_handle each : old) {
        expect_harmless(all, each);
        const cancel_result answer = co_await all.cancel_and_join(each);
        EXPECT_EQ(answer, cancel_result::gone);
    }
}

/// From outside, from a worker, and once more when it is over.
void expect_all_harmless(household& other, const std::vector<timer_handle>& old) {
    for (const timer_handle each : old) {
        ASSERT_TRUE(each);
        expect_harmless(other.home().timers(), each);
    }
    other.home().block_on(expect_harmless_inside(other.home().timers(), old));
    other.expect_undisturbed();
    for (const timer_handle each : old) expect_harmless(other.home().timers(), each);
}

TEST(handles_of_a_destroyed_runtime, are_gone_on_one_that_was_there_before) {
    const watchdog guard("handles of a runtime that is no more", 30s);
    household other;
    household gone;
    for (std::size_t each = 0; each < 2 * many; ++each) {
        EXPECT_TRUE(are_alike(gone.names()[each], other.names()[each])) << "a handle that nobody mistakes says nothing";
    }
    gone.destroy();
    expect_all_harmless(other, gone.names());
}

TEST(handles_of_a_destroyed_runtime, are_gone_on_one_that_has_come_after_it) {
    const watchdog guard("handles of a runtime that was before", 30s);
    household gone;
    gone.destroy();
    household other;
    for (std::size_t each = 0; each < 2 * many; ++each) {
        EXPECT_TRUE(are_alike(gone.names()[each], other.names()[each])) << "a handle that nobody mistakes says nothing";
    }
    expect_all_harmless(other, gone.names());
    // The names of the sleeps are known now.
    std::size_t alike = 0;
    for (const timer_handle each : gone.names()) {
        alike += static_cast<std::size_t>(std::count_if(other.names().begin(), other.names().end(),
                                                        [&](timer_handle own) { return are_alike(each, own); }));
    }
    EXPECT_GE(alike, 3 * many - 1);
}

}  // namespace
}  // namespace chime::test
