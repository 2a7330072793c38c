// SPDX-License-Identifier: MIT
// says: chime::block_on runs an io_context; a runtime, a virtual_context and a simulated runtime have their own
#include <chime/runtime.hpp>

chime::task<> work() {
    co_return;
}

void start(chime::runtime& rt) {
#ifdef MISTAKE
    chime::block_on(rt, work());
#else
    rt.block_on(work());
#endif
}
