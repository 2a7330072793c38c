// SPDX-License-Identifier: MIT

// A program with chime in it that loads a plug-in with another copy, and lends it its timers.

#include "churn.hpp"

#include <chime/runtime.hpp>

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <thread>

namespace {

void* find(void* plugin, const char* name) {
    void* const found = dlsym(plugin, name);
    if (found == nullptr) std::fprintf(stderr, "%s is not in the plug-in: %s\n", name, dlerror());
    return found;
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
    if (run_own_loop == nullptr || churn_from_there == nullptr || run_own_loop() != 42) return 1;

    chime::runtime runtime({.workers = 1});
    std::thread here([&runtime] { churn(runtime.timers()); });
    churn_from_there(&runtime.timers());
    here.join();
    runtime.shutdown();
    const chime::timer_stats sums = runtime.timers().stats();
    std::printf("armed %llu, cancelled %llu, pending %llu\n", static_cast<unsigned long long>(sums.armed),
                static_cast<unsigned long long>(sums.cancelled), static_cast<unsigned long long>(sums.pending));
    return sums.armed == 2 * churn_count && sums.cancelled == sums.armed && sums.pending == 0 ? 0 : 1;
}
