// SPDX-License-Identifier: MIT

// A program with chime in it that loads a plug-in with another copy, and lends it its timers.

#include "churn.hpp"

#include <chime/runtime.hpp>

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>

namespace {

void* find(void* plugin, const char* name) {
    void* const found = dlsym(plugin, name);
    if (found == nullptr) std::fprintf(stderr, "%s is not in the plug-in: %s\n", name, dlerror());
    return found;
}

template <class Wait>
bool waits_for_callback(chime::timers& timers, Wait wait) {
    std::atomic<bool> has_begun{false};
    std::atomic<bool> is_over{false};
    const chime::timer_handle running = timers.after(std::chrono::nanoseconds{0}, [&] {
        has_begun = true;
        std::this_thread::sleep_for(std::chrono::milliseconds{100});
        is_over = true;
    });
    while (!has_begun) std::this_thread::yield();
    if (wait(&timers, &running, &is_over)) return true;
    std::fprintf(stderr, "cancel_and_wait() has returned before the callback did\n");
    return false;
}

}  // namespace

int main() {
    void* const plugin = dlopen(PLUGIN_FILE, RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) {
        std::fprintf(stderr, "the plug-in cannot be loaded: %s\n", dlerror());
        return 1;
    }
    auto* const run_own_loop = reinterpret_cast<int (*)()>(find(plugin, "run_own_loop"));
    auto* const churn_from_there = reinterpret_cast<void (*)(chime::timers*)>(find(plugin, "churn_from_here"));
    auto* const wait_there =
        reinterpret_cast<bool (*)(chime::timers*, const chime::timer_handle*, const std::atomic<bool>*)>(
            find(plugin, "wait_for"));
    if (run_own_loop == nullptr || churn_from_there == nullptr || wait_there == nullptr || run_own_loop() != 42)
        return 1;

    chime::runtime runtime({.workers = 1});
    if (!waits_for_callback(runtime.timers(), wait_there)) return 1;
    std::thread here([&runtime] { churn(runtime.timers()); });
    churn_from_there(&runtime.timers());
    here.join();
    runtime.shutdown();
    const chime::timer_stats sums = runtime.timers().stats();
    std::printf("armed %llu, cancelled %llu, pending %llu\n", static_cast<unsigned long long>(sums.armed),
                static_cast<unsigned long long>(sums.cancelled), static_cast<unsigned long long>(sums.pending));
    return sums.armed == 2 * churn_count + 1 && sums.cancelled == 2 * churn_count && sums.pending == 0 ? 0 : 1;
}
