// SPDX-License-Identifier: MIT
// says: spawn the task inside the callback
#include <chime/runtime.hpp>

chime::task<> work() {
    co_return;
}

void start(chime::runtime& rt) {
#ifdef MISTAKE
    rt.post([] { return work(); });
#else
    rt.post([&] { chime::spawn_detached(rt, work()); });
#endif
}
