// SPDX-License-Identifier: MIT
//
// Linked into every program of tests. A test that has taken CHIME_TIME_LIMIT seconds writes down where each of its threads
// stands, and ends the program; CTest sets the limit a little below the one at which it would kill it without a word. No
// thread is needed for that, because some tests count threads: a timer of the system rings.

#include "support/time_limit.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dirent.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace chime::test {

void (*also_tells_where_it_stands)() = nullptr;

namespace {

constexpr int most_frames = 48;
const int time_is_up = SIGRTMAX - 3;
const int tell = SIGRTMAX - 4;

char test_name[256];
std::atomic<int> answered{0};

int this_thread() noexcept {
    return static_cast<int>(::syscall(SYS_gettid));
}

void write_text(const char* text) noexcept {
    const auto written = ::write(STDERR_FILENO, text, std::strlen(text));
    static_cast<void>(written);
}

/// "thread 123 (name)", from what the kernel knows.
void write_thread(int thread) noexcept {
    char number[16];
    char path[64];
    char name[32] = {};
    std::snprintf(number, sizeof number, "%d", thread);
    std::snprintf(path, sizeof path, "/proc/self/task/%d/comm", thread);
    if (const int file = ::open(path, O_RDONLY | O_CLOEXEC); file >= 0) {
        const auto length = ::read(file, name, sizeof name - 1);
        if (length > 0 && name[length - 1] == '\n') name[length - 1] = '\0';
        ::close(file);
    }
    for (const char* part :
         {"\nthread ", static_cast<const char*>(number), " (", static_cast<const char*>(name), "):\n"}) {
        write_text(part);
    }
}

void write_stack() noexcept {
    void* frames[most_frames];
    ::backtrace_symbols_fd(frames, ::backtrace(frames, most_frames), STDERR_FILENO);
}

extern "C" void tell_where_this_thread_stands(int) {
    write_stack();
    answered.store(this_thread());
}

/// Asks one thread after the other. One that blocks signals, or that a sanitizer keeps from hearing, is named at least.
void ask_all() noexcept {
    DIR* const tasks = ::opendir("/proc/self/task");
    if (tasks == nullptr) return;
    const int mine = this_thread();
    while (const dirent* const entry = ::readdir(tasks)) {
        const int thread = std::atoi(entry->d_name);
        if (thread == 0) continue;
        write_thread(thread);
        if (thread == mine) {
            write_stack();
            continue;
        }
        ::syscall(SYS_tgkill, ::getpid(), thread, tell);
        for (int waits = 0; answered.load() != thread; ++waits) {
            if (waits == 1'000) {
                write_text("  does not answer\n");
                break;
            }
            const timespec moment{0, 1'000'000};
            ::nanosleep(&moment, nullptr);
        }
    }
    ::closedir(tasks);
}

extern "C" void end_a_test_that_takes_too_long(int) {
    ::signal(SIGALRM, SIG_DFL);
    ::alarm(20);  // If what follows hangs as well.
    write_text("\n[  FAILED  ] ");
    write_text(test_name);
    write_text(": its time is up. Where its threads stand (addr2line -Cfe PROGRAM 0xOFFSET tells more):\n");
    ask_all();
    if (also_tells_where_it_stands != nullptr) also_tells_where_it_stands();
    ::_exit(1);
}

class time_limit : public ::testing::EmptyTestEventListener {
 public:
    explicit time_limit(int seconds) : seconds_(seconds) {
        void* frame = nullptr;
        static_cast<void>(::backtrace(&frame, 1));  // The first call loads a library; not inside a signal, please.
        struct sigaction action {};
        sigfillset(&action.sa_mask);
        sigdelset(&action.sa_mask, SIGALRM);  // It must ring inside a signal.
        action.sa_flags = SA_RESTART;
        action.sa_handler = end_a_test_that_takes_too_long;
        ::sigaction(time_is_up, &action, nullptr);
        action.sa_handler = tell_where_this_thread_stands;
        ::sigaction(tell, &action, nullptr);
        sigevent event{};
        event.sigev_notify = SIGEV_SIGNAL;
        event.sigev_signo = time_is_up;
        has_timer_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
    }

    void OnTestStart(const ::testing::TestInfo& test) override {
        std::snprintf(test_name, sizeof test_name, "%s.%s", test.test_suite_name(), test.name());
        ring_after(seconds_);
    }
    void OnTestEnd(const ::testing::TestInfo&) override { ring_after(0); }

 private:
    void ring_after(int seconds) const noexcept {
        const itimerspec when{{}, {seconds, 0}};
        if (has_timer_) ::timer_settime(timer_, 0, &when, nullptr);
    }

    int seconds_;
    timer_t timer_{};
    bool has_timer_ = false;
};

[[maybe_unused]] const bool is_limited = [] {
    const char* const limit = std::getenv("CHIME_TIME_LIMIT");
    const int seconds = limit != nullptr ? std::atoi(limit) : 0;
    if (seconds > 0) ::testing::UnitTest::GetInstance()->listeners().Append(new time_limit(seconds));
    return seconds > 0;
}();

}  // namespace
}  // namespace chime::test
