// SPDX-License-Identifier: MIT
// says: give the pool a plain function, or spawn the task
#include <chime/io_context.hpp>
#include <chime/spawn.hpp>

chime::task<> work() {
    co_return;
}

chime::task<> start(chime::io_context& ctx) {
#ifdef MISTAKE
    auto job = ctx.cpu_pool().submit([] { return work(); });
#else
    auto job = ctx.cpu_pool().submit([] {});
#endif
    co_await job;
}
