// SPDX-License-Identifier: MIT
#include "support/forked_run.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace chime_bench {
namespace {

// An outcome as lines of text: the time, the error, the early ones, and a figure per line.

std::string written(const outcome& it) {
    std::ostringstream text;
    text.precision(17);
    text << it.elapsed_ns << '\n' << it.error << '\n' << it.early << '\n';
    for (const figure& each : it.figures) text << each.name << ' ' << each.value << '\n';
    return text.str();
}

outcome read_back(const std::string& text) {
    std::istringstream lines(text);
    outcome result;
    lines >> result.elapsed_ns;
    lines.ignore();
    std::getline(lines, result.error);
    lines >> result.early;
    for (figure each; lines >> each.name >> each.value;) result.figures.push_back(each);
    return result;
}

void write_all(int descriptor, std::string_view text) {
    while (!text.empty()) {
        const ssize_t count = write(descriptor, text.data(), text.size());
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return;
        text.remove_prefix(static_cast<std::size_t>(count));
    }
}

std::string read_all(int descriptor) {
    std::string text;
    std::array<char, 4096> piece{};
    for (;;) {
        const ssize_t count = read(descriptor, piece.data(), piece.size());
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return text;
        text.append(piece.data(), static_cast<std::size_t>(count));
    }
}

std::uint64_t status_kilobytes(std::string_view key) {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with(key)) return std::stoull(line.substr(key.size()));
    }
    return 0;
}

/// A process that runs a program, and where its output can be read.
struct started_program {
    pid_t process = -1;
    int output = -1;
};

started_program start(const std::vector<std::string>& command) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) return {};
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);  // It may be one that never ends by itself.
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        std::vector<char*> arguments;
        for (const std::string& each : command) arguments.push_back(const_cast<char*>(each.c_str()));
        arguments.push_back(nullptr);
        execv(arguments.front(), arguments.data());
        _exit(127);
    }
    close(ends[1]);
    return {child, ends[0]};
}

void wait_for(pid_t process) {
    int status = 0;
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) {}
}

}  // namespace

std::string output_of(const std::vector<std::string>& command) {
    const started_program program = start(command);
    if (program.process < 0) return {};
    std::string text = read_all(program.output);
    close(program.output);
    wait_for(program.process);
    return text;
}

outcome run_program(const std::vector<std::string>& command) {
    const std::string text = output_of(command);
    if (interrupted) return {0, interrupted_error};
    if (text.empty()) return {0, "the program has told nothing"};
    return read_back(text);
}

double wakeups_of_program(const std::vector<std::string>& command) {
    const started_program program = start(command);
    if (program.process < 0) return 0;
    const std::string name = std::to_string(program.process);
    std::this_thread::sleep_for(std::chrono::milliseconds{500});
    const std::uint64_t before = context_switches(name);
    std::this_thread::sleep_for(std::chrono::seconds{2});
    const std::uint64_t count = context_switches(name) - before;
    kill(program.process, SIGKILL);
    close(program.output);
    wait_for(program.process);
    return static_cast<double>(count) / 2;
}

std::uint64_t context_switches(const std::string& process, const std::string& except) {
    constexpr std::string_view key = "voluntary_ctxt_switches:";
    std::uint64_t sum = 0;
    std::error_code failure;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/" + process + "/task", failure)) {
        if (entry.path().filename() == except) continue;
        std::ifstream file(entry.path() / "status");
        for (std::string line; std::getline(file, line);) {
            if (line.starts_with(key)) sum += std::stoull(line.substr(key.size()));
        }
    }
    return sum;
}

outcome run_forked(const std::function<outcome()>& measure) {
    std::array<int, 2> pipe_ends{};
    if (pipe(pipe_ends.data()) != 0) return {0, std::string("no pipe to a child: ") + std::strerror(errno)};
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child < 0) return {0, std::string("no child process: ") + std::strerror(errno)};
    if (child == 0) {
        close(pipe_ends[0]);
        outcome result;
        try {
            result = measure();
        } catch (const std::exception& thrown) {
            result.error = thrown.what();
        }
        write_all(pipe_ends[1], written(result));
        _exit(0);
    }
    close(pipe_ends[1]);
    const std::string text = read_all(pipe_ends[0]);
    close(pipe_ends[0]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (interrupted) return {0, interrupted_error};
    if (WIFSIGNALED(status)) return {0, "the child process was ended by signal " + std::to_string(WTERMSIG(status))};
    if (text.empty()) return {0, "the child process has told nothing"};
    return read_back(text);
}

std::uint64_t resident_bytes() {
    return status_kilobytes("VmRSS:") * 1024;
}

std::uint64_t peak_resident_bytes() {
    return status_kilobytes("VmHWM:") * 1024;
}

void forget_peak() {
    std::ofstream("/proc/self/clear_refs") << "5";
}

std::int64_t all_threads_time_ns() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

}  // namespace chime_bench
