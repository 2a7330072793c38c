// SPDX-License-Identifier: MIT
#include "shim/engine/explore.hpp"
#include "shim/small_loops.hpp"

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <utility>

// How tasks and timers end, for those who wait for it.

namespace {

using namespace chime;
using namespace std::chrono_literals;
using shim::require;
using shim::require_equal;
using shim::tally;
using shim::thread;
using test::small_loop;

/// A result that is looked at when it ends. Plain: whoever destroys it must know of whoever made it.
class watched_result {
 public:
    explicit watched_result(tally& ends) noexcept : ends_(&ends) {}
    watched_result(watched_result&& other) noexcept : ends_(std::exchange(other.ends_, nullptr)) {}
    watched_result& operator=(watched_result&&) = delete;
    ~watched_result() {
        if (ends_ != nullptr) ends_->add();
    }

 private:
    tally* ends_;
};

task<watched_result> give_result(tally& ends) {
    co_return watched_result(ends);
}

CHIME_SCENARIO(task, whose_handle_is_dropped_while_it_ends_leaves_its_result_to_the_last, .share = 2, .is_small = true,
               .stale_values = 0) {
    tally ends;
    small_loop loop;
    auto joined = spawn(*loop, give_result(ends));
    thread driver([&] { loop->run(); }, "loop");
    joined.detach();
    driver.join();
    require_equal(static_cast<std::uint64_t>(ends.count()), 1, "results that were destroyed");
    loop.require_rest();
}

task<> write_down(int& shared) {
    shared = 42;
    co_return;
}

CHIME_SCENARIO(task, is_known_to_who_has_waited_for_its_end, .share = 2, .is_small = true, .stale_values = 0) {
    int shared = 0;  // Plain: written by the task, read by who has waited.
    small_loop loop;
    auto joined = spawn(*loop, write_down(shared));
    thread driver([&] { loop->run(); }, "loop");
    joined.wait();
    require(shared == 42, "it has ended");
    driver.join();
    loop.require_rest();
}

// --- The end of a timer.

task<> cancel_and_write(timers& of, timer_handle which, time_point due, int& shared) {
    co_await sleep_until(due);
    auto joining = of.cancel_and_join(which);
    co_await joining;
    require(shared == 0 || shared == 2, "it has run or will not");
    shared = 7;
}

/// Whether it is cancelled, runs or has run: the task that goes on knows of all that its callback did.
CHIME_SCENARIO(timer, is_over_when_a_task_that_cancels_and_joins_goes_on, .share = 4) {
    int shared = 0;  // Plain: written by the callback, and by who has waited for its end.
    small_loop one;
    small_loop other;
    const time_point due = shim::now() + 1ms;
    const timer_handle which = one->timers().at(due, [&shared] {
        ++shared;
        shim::yield();
        ++shared;
    });
    spawn_detached(*other, cancel_and_write(one->timers(), which, due, shared));
    thread driver([&] { one->run(); }, "one");
    other->run();
    require(shared == 7, "nothing has run since");
    driver.join();
    one.require_rest();
    other.require_rest();
}

}  // namespace
