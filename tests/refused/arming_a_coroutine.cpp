// SPDX-License-Identifier: MIT
// says: spawn the task inside the callback
#include <chime/spawn.hpp>

#include <chrono>

chime::task<> work() {
    co_return;
}

void start(chime::io_context& ctx) {
#ifdef MISTAKE
    ctx.timers().after(std::chrono::seconds{1}, [] { return work(); });
#else
    ctx.timers().after(std::chrono::seconds{1}, [&] { chime::spawn_detached(ctx, work()); });
#endif
}
