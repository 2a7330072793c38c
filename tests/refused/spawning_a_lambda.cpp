// SPDX-License-Identifier: MIT
// says: call the lambda, spawn(ctx, lambda())
#include <chime/spawn.hpp>

void start(chime::io_context& ctx) {
    auto lambda = []() -> chime::task<int> { co_return 42; };
#ifdef MISTAKE
    auto joined = chime::spawn(ctx, lambda);
#else
    auto joined = chime::spawn(ctx, lambda());
#endif
    static_cast<void>(joined.is_done());
}
