// SPDX-License-Identifier: MIT
// says: a task is spawned on an io_context or a runtime
#include <chime/testing.hpp>

chime::task<> work() {
    co_return;
}

void start(chime::testing::virtual_context& ctx) {
#ifdef MISTAKE
    chime::spawn_detached(ctx, work());
#else
    chime::spawn_detached(*ctx, work());
#endif
}
