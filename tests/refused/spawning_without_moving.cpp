// SPDX-License-Identifier: MIT
// says: a task is spawned once: move it in
#include <chime/spawn.hpp>

#include <utility>

void start(chime::io_context& ctx, chime::task<> work) {
#ifdef MISTAKE
    chime::spawn_detached(ctx, work);
#else
    chime::spawn_detached(ctx, std::move(work));
#endif
}
