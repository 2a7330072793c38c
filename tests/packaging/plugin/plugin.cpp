// SPDX-License-Identifier: MIT

// What a program loads while it runs. Its copy of chime is its own: the names in it are hidden.

#include "churn.hpp"

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>

#include <chrono>

namespace {

chime::task<int> nap() {
    using namespace std::chrono_literals;
    co_await chime::sleep_for(1ms);
    co_return 42;
}

}  // namespace

/// Does a loop of this copy work?
extern "C" [[gnu::visibility("default")]] int run_own_loop() {
    chime::io_context context;
    return chime::block_on(context, nap());
}

/// With timers of another copy.
extern "C" [[gnu::visibility("default")]] void churn_from_here(chime::timers* timers) {
    churn(*timers);
}
