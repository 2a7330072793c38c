// SPDX-License-Identifier: MIT

// Tasks that sleep, at the same time, on one thread. The first example of the README, as it stands there.

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>

#include <chrono>
#include <cstdio>
#include <string>

using namespace std::chrono_literals;

namespace {

chime::task<std::string> brew(const char* what, std::chrono::milliseconds time) {
    co_await chime::sleep_for(time);  // Only this task waits. The thread goes on with others.
    co_return std::string(what) + " is ready";
}

chime::task<> breakfast(chime::io_context& ctx) {
    auto tea = chime::spawn(ctx, brew("tea", 30ms));
    auto coffee = chime::spawn(ctx, brew("coffee", 20ms));  // At the same time.
    const auto alarm = ctx.timers().after(1h, [] { std::puts("the train has left"); });

    std::puts((co_await coffee).c_str());
    std::puts((co_await tea).c_str());
    if (ctx.timers().cancel(alarm) == chime::cancel_result::cancelled) std::puts("in time for the train");
}

}  // namespace

int main() {
    chime::io_context ctx;
    chime::spawn_detached(ctx, breakfast(ctx));
    ctx.run();  // On this thread, until nothing is left to do.
}
