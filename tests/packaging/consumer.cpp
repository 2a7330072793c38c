// SPDX-License-Identifier: MIT

// What somebody else's program may look like: it takes every public header and something of all of the library.

#include <chime/cancel.hpp>
#include <chime/cpu_pool.hpp>
#include <chime/error.hpp>
#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/stats.hpp>
#include <chime/task.hpp>
#include <chime/testing.hpp>
#include <chime/time.hpp>
#include <chime/timer.hpp>
#include <chime/timer_cell.hpp>
#include <chime/timers.hpp>
#include <chime/version.hpp>
#include <chime/wheel.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <system_error>

namespace {

chime::task<int> double_slowly(chime::io_context& context, int number) {
    using namespace std::chrono_literals;
    co_await chime::sleep_for(1h);
    auto job = context.cpu_pool().submit([number] { return 2 * number; });
    co_return co_await job;
}

chime::task<int> one() {
    co_return 1;
}

/// Overflows the stack unless every resumption is a tail call, whatever the level of optimization.
chime::task<int> count_to(int number) {
    int sum = 0;
    for (int left = number; left != 0; --left) sum += co_await one();
    co_return sum;
}

bool runs() {
    using namespace std::chrono_literals;
    chime::testing::virtual_clock clock;
    chime::io_context context({.clock = &clock});
    int fired = 0;
    context.timers().after(2h, [&] { ++fired; });
    chime::cancel_source source;
    context.timers().every(
        1h, chime::missed_ticks::skip, [&] { ++fired; }, source.token());
    source.request_cancel();
    const int doubled = chime::block_on(context, double_slowly(context, 21));
    context.run();
    bool is_refused = false;
    try {
        chime::io_context nonsense({.max_timers = 0});
    } catch (const std::system_error& error) {
        is_refused = error.code() == chime::errc::bad_configuration;
    }
    const int counted = chime::block_on(context, count_to(1'000'000));
    return doubled == 42 && counted == 1'000'000 && fired == 1 && is_refused;
}

}  // namespace

int main() {
    using namespace std::chrono_literals;
    const chime::time_point start{};
    chime::timer_wheel<std::string> wheel;
    wheel.arm(chime::deadline_after(start, 2s), "world");
    wheel.arm(chime::deadline_after(start, 1s), "hello, ");
    const chime::timer_id cancelled = wheel.arm(start, "cruel ");
    wheel.cancel(cancelled);

    std::string said;
    wheel.advance(start + 3s, [&](std::string&& word) { said += word; });
    std::printf("%s from chime %.*s\n", said.c_str(), static_cast<int>(chime::version().size()),
                chime::version().data());
    return said == "hello, world" && !chime::version().empty() && runs() ? 0 : 1;
}
