// SPDX-License-Identifier: MIT
// says: a yield or a hop does nothing until it is awaited
#include <chime/io_context.hpp>
#include <chime/task.hpp>

chime::task<> hop(chime::io_context& other) {
#ifdef MISTAKE
    other.get_scheduler().schedule();
#endif
    co_await other.get_scheduler().schedule();
}
