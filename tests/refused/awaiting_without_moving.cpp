// SPDX-License-Identifier: MIT
// says: write co_await std::move(the_task)
#include <chime/task.hpp>

#include <utility>

chime::task<int> number() {
    co_return 42;
}

chime::task<int> twice() {
    auto once = number();
#ifdef MISTAKE
    const int given = co_await once;
#else
    const int given = co_await std::move(once);
#endif
    co_return 2 * given;
}
