// SPDX-License-Identifier: MIT
// says: call the lambda, spawn(ctx, lambda())
#include <chime/spawn.hpp>

void start(chime::io_context& ctx) {
#ifdef MISTAKE
    chime::spawn_detached(ctx, []() -> chime::task<> { co_return; });
#else
    chime::spawn_detached(ctx, []() -> chime::task<> { co_return; }());
#endif
}
