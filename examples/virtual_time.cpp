// SPDX-License-Identifier: MIT

// A test of hours that runs in milliseconds: a task that tries again and again, after pauses that double up to an hour.
// The task is ordinary code and knows nothing of the test; only the clock of its context is another one.

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/testing.hpp>
#include <chime/timers.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;

namespace {

/// Tries until it works; answers how many attempts that took. What a program would have.
chime::task<int> retry(std::function<bool()> attempt) {
    std::chrono::seconds pause = 1s;
    for (int attempts = 1;; ++attempts) {
        if (attempt()) co_return attempts;
        co_await chime::sleep_for(pause);
        pause = std::min<std::chrono::seconds>(pause * 2, 1h);
    }
}

void expect(bool holds, const char* what) {
    if (!holds) throw std::logic_error(std::string("this does not hold: ") + what);
    std::printf("holds: %s\n", what);
}

void pauses_double() {
    chime::testing::virtual_context ctx;
    int attempts = 0;
    chime::spawn_detached(*ctx, retry([&] { return ++attempts == 100; }));

    ctx.settle();  // Runs what is ready, and time does not move.
    expect(attempts == 1, "the first attempt is made at once");
    ctx.advance(999ms);
    expect(attempts == 1, "the second one not before a second has passed");
    ctx.advance(1ms);
    expect(attempts == 2, "but then");
    ctx.advance(2s);
    expect(attempts == 3, "the third one two seconds later");
    ctx.advance(24h);
    expect(attempts == 35, "and after a day it is at the 35th");
}

chime::task<> fetch(int& result) {
    int failures = 20;
    std::function<bool()> attempt = [&] { return failures-- == 0; };
    result = co_await retry(attempt);
}

void succeeds_in_the_end() {
    chime::testing::virtual_clock clock;  // Jumps to the next deadline whenever nothing else is to be done.
    chime::io_context ctx({.clock = &clock});
    const chime::time_point start = clock.now();
    int attempts = 0;
    chime::spawn_detached(ctx, fetch(attempts));
    ctx.run();
    expect(attempts == 21, "twenty failures are followed by a success");
    expect(clock.now() - start == 4095s + 8h, "more than nine hours later");
}

}  // namespace

int main() {
    const auto began = std::chrono::steady_clock::now();
    pauses_double();
    succeeds_in_the_end();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
    std::printf("33 hours, tested in %.1f ms\n", took.count());
}
