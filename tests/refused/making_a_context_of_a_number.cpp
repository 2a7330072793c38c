// SPDX-License-Identifier: MIT
// says: an io_context is run by one thread and takes no number
#include <chime/io_context.hpp>

void start() {
#ifdef MISTAKE
    chime::io_context ctx(1);
#else
    chime::io_context ctx;
#endif
}
