// SPDX-License-Identifier: MIT
//
// Rounds of a few seconds: threads do what they like, then all comes to rest, then the books are checked.

#include "runtime/watchdog.hpp"
#include "soak/caller.hpp"
#include "soak/options.hpp"
#include "soak/promises.hpp"
#include "soak/rig.hpp"
#include "soak/trouble.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

namespace chime::soak {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

volatile sig_atomic_t is_interrupted = 0;

/// Resident memory of this process, in MiB.
std::size_t resident_mib() {
    std::ifstream numbers("/proc/self/statm");
    std::size_t all = 0;
    std::size_t resident = 0;
    numbers >> all >> resident;
    return (resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) >> 20U;
}

std::ptrdiff_t entries_of(const char* folder) {
    const std::filesystem::directory_iterator entries(folder);
    return std::distance(begin(entries), end(entries));
}

/// Signals interrupt whatever the threads wait in, a thousand times a second.
class signal_storm {
 public:
    signal_storm() {
        struct sigaction ignored {};
        ignored.sa_handler = [](int) {};  // Without SA_RESTART.
        ::sigaction(SIGALRM, &ignored, nullptr);
        set(1'000);
    }
    signal_storm(const signal_storm&) = delete;
    signal_storm& operator=(const signal_storm&) = delete;
    ~signal_storm() { set(0); }

 private:
    static void set(suseconds_t period_us) {
        const itimerval setting{{0, period_us}, {0, period_us}};
        ::setitimer(ITIMER_REAL, &setting, nullptr);
    }
};

class soak_run {
 public:
    explicit soak_run(const options& wanted)
        : wanted_(wanted), began_(steady::now()), end_(began_ + std::chrono::seconds{wanted.seconds}) {
        for (std::uint64_t number = 0; number < 3; ++number) {
            callers_.push_back(std::make_unique<caller>(rig_, kept_, shared_, wanted.seed * 16 + number));
        }
    }

    void run() {
        const signal_storm storm;
        while (steady::now() < end_ && is_interrupted == 0 && kept_.count() == 0) {
            one_round();
            ++rounds_;
            if (!is_on_terminal_) show('\n');
        }
    }

    /// True: every promise was kept.
    bool finish() {
        rig_.finish();
        if (is_on_terminal_) std::fputs("\n", stdout);
        return kept_.count() == 0;
    }

    [[nodiscard]] const promises& kept() const { return kept_; }
    [[nodiscard]] const trouble& met() const { return trouble_; }
    [[nodiscard]] std::uint64_t rounds() const { return rounds_; }
    [[nodiscard]] std::size_t growth_mib() const { return most_mib_ > first_mib_ ? most_mib_ - first_mib_ : 0; }

 private:
    void one_round() {
        const auto round_end = std::min(end_, steady::now() + 3s);
        std::atomic<bool> is_over{false};
        std::vector<std::thread> threads;
        for (const auto& each : callers_) {
            threads.emplace_back([&] {
                while (!is_over.load(std::memory_order_relaxed)) {
                    each->step();
                    guard_.pat();
                }
                each->let_go();
            });
        }
        while (steady::now() < round_end && is_interrupted == 0) {
            std::this_thread::sleep_for(100ms);
            trouble_.strike();
            if (is_on_terminal_) show('\r');
        }
        is_over = true;
        for (std::thread& each : threads) each.join();
        shared_.clear();
        rig_.settle(30s);
        for (const auto& each : callers_) each->check_at_rest();
        const std::size_t now_mib = resident_mib();
        if (rounds_ == 0) first_mib_ = now_mib;
        most_mib_ = std::max(most_mib_, now_mib);
    }

    void show(char line_end) {
        const auto seconds = std::chrono::duration<double>(steady::now() - began_).count();
        std::printf("   %5.0f s  round %llu  %.0f operations/s  %llu pending  early %llu  latest %.1f ms  %zu MiB   %c",
                    seconds, static_cast<unsigned long long>(rounds_),
                    static_cast<double>(kept_.operations.load()) / std::max(seconds, 0.001),
                    static_cast<unsigned long long>(rig_.pending()),
                    static_cast<unsigned long long>(kept_.early.load()),
                    static_cast<double>(kept_.latest_ns.load()) / 1e6, resident_mib(), line_end);
        std::fflush(stdout);
    }

    options wanted_;
    steady::time_point began_;
    steady::time_point end_;
    bool is_on_terminal_ = ::isatty(STDOUT_FILENO) != 0;
    test::watchdog guard_{"soak", 120s};
    promises kept_;
    exchange shared_;
    std::vector<std::unique_ptr<caller>> callers_;
    rig rig_{kept_};
    trouble trouble_{rig_, wanted_.seed * 16 + 15};
    std::uint64_t rounds_ = 0;
    std::size_t first_mib_ = 0;
    std::size_t most_mib_ = 0;
};

int run_all(const options& wanted) {
    std::printf("   seed %llu, %u s\n", static_cast<unsigned long long>(wanted.seed), wanted.seconds);
    std::thread([] {}).join();  // With the first thread a sanitizer may start one of its own.
    const std::ptrdiff_t threads = entries_of("/proc/self/task");
    const std::ptrdiff_t descriptors = entries_of("/proc/self/fd");
    struct sigaction noted {};
    noted.sa_handler = [](int) { is_interrupted = 1; };
    ::sigaction(SIGINT, &noted, nullptr);
    ::sigaction(SIGTERM, &noted, nullptr);
    std::vector<std::string> broken;
    {
        soak_run run(wanted);
        run.run();
        run.finish();
        broken = run.kept().sentences();
#if !defined(CHIME_SOAK_UNBOUNDED)
        constexpr std::size_t little_mib = 128;
        if (run.growth_mib() > little_mib) broken.emplace_back("G9: memory grows from round to round");
#endif
        std::printf("   %llu rounds, %llu operations, early %llu, latest %.1f ms, grown by %zu MiB\n",
                    static_cast<unsigned long long>(run.rounds()),
                    static_cast<unsigned long long>(run.kept().operations.load()),
                    static_cast<unsigned long long>(run.kept().early.load()),
                    static_cast<double>(run.kept().latest_ns.load()) / 1e6, run.growth_mib());
        std::printf("   memory refused %llu times, to callers %llu; a clock jumped ahead %llu times\n",
                    static_cast<unsigned long long>(run.met().refusals()),
                    static_cast<unsigned long long>(run.kept().refused.load()),
                    static_cast<unsigned long long>(run.met().jumps()));
    }
    for (int looks = 0; looks < 200 && entries_of("/proc/self/task") > threads; ++looks) {
        std::this_thread::sleep_for(5ms);
    }
    if (entries_of("/proc/self/task") > threads) broken.emplace_back("L9: a thread is left");
    if (entries_of("/proc/self/fd") > descriptors) broken.emplace_back("L9: a descriptor is left");
    for (const std::string& each : broken) std::printf("   broken: %s\n", each.c_str());
    if (!broken.empty()) {
        std::printf("   to see it again: chime_soak --seconds %u --seed %llu\n", wanted.seconds,
                    static_cast<unsigned long long>(wanted.seed));
        return 1;
    }
    std::printf("   every promise was kept\n");
    return is_interrupted != 0 ? 130 : 0;
}

}  // namespace
}  // namespace chime::soak

int main(int argc, char** argv) {
    std::string problem;
    const auto wanted = chime::soak::read_options(argc, argv, problem);
    if (!wanted) {
        std::fprintf(stderr, "chime_soak: %s; see chime_soak --help\n", problem.c_str());
        return 2;
    }
    if (wanted->wants_help) {
        std::fputs(chime::soak::usage(), stdout);
        return 0;
    }
    return chime::soak::run_all(*wanted);
}
