// SPDX-License-Identifier: MIT
// says: this function returns a task, which nobody would run: spawn the task instead
#include <chime/runtime.hpp>

chime::task<> work() {
    co_return;
}

void start(chime::runtime& rt) {
#ifdef MISTAKE
    rt.post([] { return work(); });
#else
    chime::spawn_detached(rt, work());
#endif
}
