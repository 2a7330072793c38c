// SPDX-License-Identifier: MIT
//
// A runtime that has nothing to do costs nothing: none of its threads wakes up, and the metronome is one of them.

#include "runtime/watchdog.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <system_error>
#include <thread>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// How often each thread of chime's in this process has gone to sleep by itself, by name. Empty: the system does not tell.
std::map<std::string, std::uint64_t> voluntary_switches() {
    std::map<std::string, std::uint64_t> switches;
    std::error_code refused;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/task", refused)) {
        std::ifstream status(each.path() / "status");
        std::string name;
        for (std::string key; status >> key;) {
            if (key == "Name:") status >> name;
            std::uint64_t value = 0;
            if (key == "voluntary_ctxt_switches:" && status >> value && name.starts_with("chime-")) {
                switches[name] = value;
            }
        }
    }
    return switches;
}

TEST(an_idle_runtime, wakes_none_of_its_threads_nor_the_metronome_for_a_second) {
    const watchdog guard("idle threads", 30s);
    runtime home({.workers = 3, .metronome = true, .metronome_period = 1ms});
    const timer_handle far_away = home.timers().after(1h, [] {});
    EXPECT_EQ(home.block_on(sleep_for(20ms)), wake_reason::elapsed);
    bool is_silent = false;
    for (int tries = 0; tries < 3 && !is_silent; ++tries) {
        std::this_thread::sleep_for(200ms);  // Until the last one has come to rest.
        const auto before = voluntary_switches();
        const runtime_stats stats_before = home.stats();
        std::this_thread::sleep_for(1s);
        const runtime_stats stats_after = home.stats();
        const auto after = voluntary_switches();
        if (before.empty()) GTEST_SKIP() << "the system does not tell how often a thread has slept";
        EXPECT_EQ(before.size(), 4U) << "three workers and the metronome";
        for (const char* const name : {"chime-0", "chime-1", "chime-2", "chime-metronome"}) {
            EXPECT_TRUE(before.contains(name)) << name;
        }
        is_silent = before == after && stats_before.timers.turns == stats_after.timers.turns &&
                    stats_before.timers.parks == stats_after.timers.parks &&
                    stats_before.metronome_beats == stats_after.metronome_beats;
    }
    EXPECT_TRUE(is_silent);
    EXPECT_EQ(home.timers().cancel(far_away), cancel_result::cancelled);
    check_ledger_after_shutdown(home);
}

}  // namespace
}  // namespace chime::test
