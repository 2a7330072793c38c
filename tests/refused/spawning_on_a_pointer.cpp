// SPDX-License-Identifier: MIT
// says: a task is spawned on an io_context or a runtime
#include <chime/runtime.hpp>

chime::task<int> work() {
    co_return 42;
}

chime::join_handle<int> start(chime::runtime* rt) {
#ifdef MISTAKE
    auto joined = chime::spawn(rt, work());
    return {};
#else
    return chime::spawn(*rt, work());
#endif
}
