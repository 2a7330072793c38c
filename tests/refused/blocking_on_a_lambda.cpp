// SPDX-License-Identifier: MIT
// says: call the lambda, spawn(ctx, lambda())
#include <chime/spawn.hpp>

void start(chime::io_context& ctx) {
    const auto lambda = []() -> chime::task<> { co_return; };
#ifdef MISTAKE
    chime::block_on(ctx, lambda);
#else
    chime::block_on(ctx, lambda());
#endif
}
