// SPDX-License-Identifier: MIT
#pragma once

#include "support/contender.hpp"
#include "support/forked_run.hpp"
#include "support/plan.hpp"
#include "workloads/lateness.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <unistd.h>

namespace chime_bench {

/// A machine with many services that have nothing to do: a loop with a timer that is a minute away.
///
/// The loop sleeps on a thread of its own. What is shown is how often the kernel let it, or any other thread of the
/// contender, wake up and go back to sleep, a second: its voluntary context switches. Nobody needs any. Every run is a
/// process of its own.
struct idle {
    static constexpr std::string_view name = "idle";
    static constexpr std::string_view unit = "wake-ups/s";
    static constexpr std::string_view one_operation = "wake-ups a second while one timer is a minute away";

    static std::uint64_t operations(std::size_t) { return scale; }

    /// Of a contender that is a program of its own.
    static outcome run_other(const std::vector<std::string>& command) {
        outcome result;
        result.elapsed_ns = static_cast<std::int64_t>(wakeups_of_program(command) * static_cast<double>(scale));
        return result;
    }

    template <waiting_contender Contender>
    static outcome run(const plan&) {
        return run_forked([] { return measured<Contender>(); });
    }

 private:
    // What is shown is a time per operation; this many operations make thousandths of a wake-up visible in it.
    static constexpr std::uint64_t scale = 1'000;
    static constexpr std::chrono::milliseconds settling{200};
    static constexpr std::chrono::seconds watched{2};

    template <class Contender>
    static outcome measured() {
        // The process ends around it, so nobody has to end the wait.
        std::thread([] {
            firing_log log(1);
            Contender contender(1, log);
            contender.arm(0, std::chrono::minutes{1});
            contender.wait();
        }).detach();
        std::this_thread::sleep_for(settling);
        const std::uint64_t before = switches_of_others();
        std::this_thread::sleep_for(watched);
        const std::uint64_t count = switches_of_others() - before;
        outcome result;
        result.elapsed_ns = static_cast<std::int64_t>(count * scale / static_cast<std::uint64_t>(watched.count()));
        return result;
    }

    static std::uint64_t switches_of_others() { return context_switches("self", std::to_string(getpid())); }
};

}  // namespace chime_bench
