// SPDX-License-Identifier: MIT

// Something every so often: a heartbeat and a task that draws frames, by the real clock. And then, by a virtual clock so
// that the numbers are exact, what the three policies make of a run that takes too long.

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/testing.hpp>
#include <chime/timer_cell.hpp>
#include <chime/timers.hpp>

#include <chrono>
#include <cstdio>

using namespace std::chrono_literals;

namespace {

void beat_five_times(chime::io_context& ctx) {
    int beats = 0;
    chime::timer_handle heart;
    heart = ctx.timers().every(20ms, chime::missed_ticks::skip, [&] {
        std::printf("beat %d\n", ++beats);
        if (beats == 5) ctx.timers().cancel(heart);  // Inside its own callback: this was the last run.
    });
    ctx.run();
}

chime::task<> draw_three_frames(chime::io_context& ctx) {
    chime::timer_delay frame(ctx.timers(), 25ms);  // Await it as often as you like.
    for (int number = 1; number <= 3; ++number) {
        co_await frame;
        std::printf("frame %d\n", number);
    }
}

/// Runs something every 10 ms for 80 ms; the second run, at 20 ms, takes 35 ms.
void show(const char* name, chime::missed_ticks policy) {
    chime::testing::virtual_context ctx;
    const chime::time_point start = ctx.now();
    int runs = 0;
    std::printf("%-6s runs at", name);
    ctx->timers().every(10ms, policy, [&] {
        std::printf(" %2d", static_cast<int>((ctx.now() - start) / 1ms));
        if (++runs == 2) ctx.clock().advance(35ms);  // This is what slow work does to the clock.
    });
    ctx.advance(80ms);
    std::puts(" ms");
}

}  // namespace

int main() {
    chime::io_context ctx;
    beat_five_times(ctx);
    chime::spawn_detached(ctx, draw_three_frames(ctx));
    ctx.run();

    show("skip", chime::missed_ticks::skip);
    show("burst", chime::missed_ticks::burst);
    show("delay", chime::missed_ticks::delay);
}
