// SPDX-License-Identifier: MIT
//
// A coroutine of another library that a task starts beside itself waits in the place of the task. On a runtime another worker
// may go on with it there while the task still runs. What the task asks for then is refused, and if it ends, that ends the program
// with a message; nobody's timer is lost for it. What is not told is a runtime that ends in the very moment: it destroys the
// frame of the task, which still runs.

#include "support/eager.hpp"

#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <thread>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

struct meeting {
    std::optional<eager> beside;
    std::optional<join_handle<void>> awaited;
    std::atomic<bool> may_end{false};
    std::atomic<bool> runs_elsewhere{false};
    std::atomic<bool> was_refused{false};

    static void await(const std::atomic<bool>& flag) {
        while (!flag.load()) std::this_thread::yield();
    }
};

task<> end_when_told(meeting& both) {
    meeting::await(both.may_end);
    co_return;
}

eager join_and_sleep(meeting& both, duration pause) {
    co_await *both.awaited;  // In the place of the task, which goes on meanwhile.
    both.runs_elsewhere.store(true);
    meeting::await(both.was_refused);
    co_await sleep_for(pause);
}

/// Goes on while another worker runs the coroutine beside it, asks for a wait of its own, and ends.
task<> lend_and_sleep(runtime& home, meeting& both, duration pause) {
    both.awaited.emplace(spawn(home, end_when_told(both)));
    both.beside.emplace(join_and_sleep(both, pause));
    both.may_end.store(true);
    meeting::await(both.runs_elsewhere);
    try {
        co_await sleep_for(1ms);
        std::_Exit(3);  // A wait in a place that is another worker's.
    } catch (const std::system_error& error) {
        if (error.code() != make_error_code(errc::not_in_a_task)) std::_Exit(4);
    }
    both.was_refused.store(true);
}

void end_beside_a_coroutine_that_sleeps(duration pause) {
    meeting both;
    runtime home({.workers = 2});
    spawn_detached(home, lend_and_sleep(home, both, pause));
    std::this_thread::sleep_for(20s);
}

eager go_there(io_context& other) {
    co_await other.get_scheduler().schedule();
}

task<> lend_and_end(meeting& both, io_context& other) {
    both.beside.emplace(go_there(other));
    co_return;
}

void end_beside_a_coroutine_that_goes_elsewhere() {
    meeting both;
    io_context home;
    io_context other;
    spawn_detached(home, lend_and_end(both, other));
    home.run();
}

TEST(task_death_test, that_ends_while_its_place_is_somebody_elses_ends_the_program_and_says_why) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const char* const lent =
        "chime: misuse: a task does not end while a coroutine that it has started beside itself is being woken in its "
        "place, or has gone to another context: spawn it, or await it at once";
    EXPECT_DEATH(end_beside_a_coroutine_that_sleeps(1h), lent);
    EXPECT_DEATH(end_beside_a_coroutine_that_goes_elsewhere(), lent);
}

}  // namespace
}  // namespace chime::test
