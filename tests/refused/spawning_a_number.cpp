// SPDX-License-Identifier: MIT
// says: only a task, or something else that can be awaited, can be spawned
#include <chime/spawn.hpp>

chime::task<int> number() {
    co_return 42;
}

void start(chime::io_context& ctx) {
#ifdef MISTAKE
    chime::spawn_detached(ctx, 42);
#else
    chime::spawn_detached(ctx, number());
#endif
}
