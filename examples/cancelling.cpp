// SPDX-License-Identifier: MIT

// Four ways to end what is waiting: a token for many, a join_handle for one task, an exception instead of an answer, and
// cancel_and_wait() from another thread, after which nothing of the callback runs any more.

#include <chime/cancel.hpp>
#include <chime/error.hpp>
#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/timers.hpp>

#include <chrono>
#include <cstdio>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

chime::task<> watch(int number, chime::cancel_token token) {
    int looks = 0;
    for (;; ++looks) {
        const auto why = co_await chime::sleep_for(10ms, token);
        if (why == chime::wake_reason::cancelled) break;
    }
    std::printf("watcher %d: %s\n", number, looks > 0 ? "looked around, then was cancelled" : "was cancelled");
}

void cancel_many_with_a_token() {
    chime::io_context ctx;
    chime::cancel_source source;
    for (int number = 1; number <= 3; ++number) chime::spawn_detached(ctx, watch(number, source.token()));
    ctx.timers().after(
        1h, [] { std::puts("an hour later"); }, source.token());
    ctx.timers().after(35ms, [&] { source.request_cancel(); });
    ctx.run();  // Returns after 35 ms, not after an hour.
}

chime::task<int> count_sheep() {
    int sheep = 0;
    while (!chime::this_task::is_cancelled()) {
        co_await chime::sleep_for(5ms);  // Ends at once when the task is cancelled, and so do all that follow.
        ++sheep;
    }
    co_return sheep;
}

chime::task<> wake_the_counter(chime::io_context& ctx) {
    auto counter = chime::spawn(ctx, count_sheep());
    co_await chime::sleep_for(30ms);
    counter.cancel();
    const int sheep = co_await counter;  // A cancelled task ends in its own way, here with a result.
    std::printf("counter: %s sheep\n", sheep > 0 ? "some" : "no");
}

chime::task<> send_in_three_steps(chime::cancel_token token) {
    try {
        for (int step = 1; step <= 3; ++step) co_await chime::sleep_for(20ms, token, chime::throw_on_cancel);
        std::puts("sender: all sent");
    } catch (const std::system_error& error) {
        if (error.code() != chime::errc::cancelled) throw;
        std::puts("sender: cancelled between two steps");
    }
}

void cancel_from_another_thread() {
    chime::io_context ctx;
    auto guard = ctx.make_work_guard();  // Without it, run() could return before anything is armed.
    std::jthread loop([&] { ctx.run(); });

    auto samples = std::make_unique<std::vector<int>>();
    const chime::timer_handle sampling =
        ctx.timers().every(1ms, chime::missed_ticks::skip, [&samples] { samples->push_back(42); });
    std::this_thread::sleep_for(30ms);
    ctx.timers().cancel_and_wait(sampling);
    samples.reset();  // Safe: the callback does not run now, and never will again.

    std::printf("sampler: the second cancel finds it %s\n",
                ctx.timers().cancel(sampling) == chime::cancel_result::gone ? "gone" : "alive");
    guard.reset();  // Nothing is left to do: run() returns, and the thread ends.
}

}  // namespace

int main() {
    cancel_many_with_a_token();

    chime::io_context ctx;
    chime::cancel_source source;
    chime::spawn_detached(ctx, wake_the_counter(ctx));
    chime::spawn_detached(ctx, send_in_three_steps(source.token()));
    ctx.timers().after(30ms, [&] { source.request_cancel(); });
    ctx.run();

    cancel_from_another_thread();
}
