// SPDX-License-Identifier: MIT
#include "separate_run.hpp"

#include "work.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace chime_demo {
namespace {

static_assert(std::is_trivially_copyable_v<results>, "it is sent through a pipe as it is");

/// The process that runs now; who interrupts this one means that one.
std::atomic<pid_t> child{0};

extern "C" void on_interrupt(int) {
    interrupted = true;
    if (const pid_t running = child; running > 0) kill(running, SIGINT);
}

std::uint64_t status_bytes(std::string_view key) {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with(key)) return std::stoull(line.substr(key.size())) * 1024;
    }
    return 0;
}

std::chrono::nanoseconds processor_time() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return std::chrono::seconds{usage.ru_utime.tv_sec + usage.ru_stime.tv_sec} +
           std::chrono::microseconds{usage.ru_utime.tv_usec + usage.ru_stime.tv_usec};
}

/// In the new process.
[[noreturn]] void run_and_tell(const std::function<results()>& run, int descriptor, pid_t parent) {
    // Whatever happens to the first process, this one does not stay behind.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    try {
        const std::uint64_t before = status_bytes("VmRSS:");
        results told = run();
        told.is_there = true;
        told.peak_bytes = status_bytes("VmHWM:") - before;
        told.processor_time = processor_time();
        std::fflush(nullptr);
        _exit(write(descriptor, &told, sizeof told) == static_cast<ssize_t>(sizeof told) ? 0 : 1);
    } catch (const std::bad_alloc&) {
        std::fputs("chime_demo: there is not enough memory; try fewer with --sleepers\n", stderr);
    } catch (const std::exception& thrown) {
        std::fprintf(stderr, "chime_demo: %s\n", thrown.what());
    }
    std::fflush(nullptr);
    _exit(1);
}

}  // namespace

std::optional<results> run_separately(const std::function<results()>& run) {
    std::array<int, 2> ends{};
    const pid_t parent = getpid();
    std::fflush(nullptr);
    if (pipe(ends.data()) != 0) {
        std::fprintf(stderr, "chime_demo: no pipe: %s\n", std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
        return {};
    }
    const pid_t started = fork();
    if (started == 0) {
        close(ends[0]);
        child = 0;
        run_and_tell(run, ends[1], parent);
    }
    close(ends[1]);
    if (started < 0) {
        close(ends[0]);
        std::fprintf(stderr, "chime_demo: no process: %s\n", std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
        return {};
    }
    child = started;
    if (interrupted) kill(started, SIGINT);  // It came before there was anybody to tell.

    results told;
    std::size_t received = 0;
    while (received < sizeof told) {
        const ssize_t count = read(ends[0], reinterpret_cast<char*>(&told) + received, sizeof told - received);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        received += static_cast<std::size_t>(count);
    }
    close(ends[0]);
    int status = 0;
    while (waitpid(started, &status, 0) < 0 && errno == EINTR) {}
    child = 0;
    if (WIFSIGNALED(status)) std::fprintf(stderr, "chime_demo: the run was ended by signal %d\n", WTERMSIG(status));
    if (received != sizeof told) return {};
    return told;
}

void answer_interrupts() {
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

}  // namespace chime_demo
