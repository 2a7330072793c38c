// SPDX-License-Identifier: MIT

// What a program loads while it runs. Its copy of chime is its own: the names in it are hidden.

#include "churn.hpp"

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

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

/// Do threads of this copy wait for a callback of another copy that is running? One of them has the number of its worker.
extern "C" [[gnu::visibility("default")]] bool wait_for(chime::timers* timers, const chime::timer_handle* running,
                                                        const std::atomic<bool>* is_over) {
    std::atomic<bool> have_waited{true};
    std::vector<std::thread> threads;
    for (int count = 0; count < 8; ++count) {
        threads.emplace_back([&] {
            timers->cancel_and_wait(*running);
            if (!*is_over) have_waited = false;
        });
    }
    for (std::thread& each : threads) each.join();
    return have_waited;
}

/// With timers of another copy.
extern "C" [[gnu::visibility("default")]] void churn_from_here(chime::timers* timers) {
    churn(*timers);
}
