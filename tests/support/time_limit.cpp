// SPDX-License-Identifier: MIT
//
// Linked into every program that is a test. What has taken CHIME_TIME_LIMIT seconds, or what a watchdog gives up, writes down
// where each of its threads stands, and ends; CTest sets the limit a little below the one at which it would kill the program
// without a word. No thread is needed for that, because some tests count threads: a timer of the system rings. And no
// memory, because whoever hangs may hang in there.

#include "support/time_limit.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

namespace chime::test {

void (*also_tells_where_it_stands)() = nullptr;

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr int most_frames = 48;
constexpr int patience_ms = 1'000;  ///< For one thread.
constexpr int most_seconds = 20;    ///< For all that is told.
const int time_is_up = SIGRTMAX - 3;
const int tell = SIGRTMAX - 4;

char limited[256];
timer_t timer{};
pid_t owner_of_timer = 0;
timespec deadline{};  ///< Zero: there is none.
std::atomic<bool> is_telling{false};
std::atomic<int> answered{0};

void write_text(const char* text) noexcept {
    for (std::size_t left = std::strlen(text); left > 0;) {
        const auto written = ::write(STDERR_FILENO, text, left);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return;
        text += written;
        left -= static_cast<std::size_t>(written);
    }
}

/// What the kernel knows of a thread. Of several callers only the one that tells is here.
const char* status_of(int thread) noexcept {
    static char status[4'096];
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
    ssize_t length = 0;
    if (const int file = ::open(path, O_RDONLY | O_CLOEXEC); file >= 0) {
        do {
            length = ::read(file, status, sizeof status - 1);
        } while (length < 0 && errno == EINTR);
        ::close(file);
    }
    status[std::max<ssize_t>(length, 0)] = '\0';
    return status;
}

/// "thread 123 (name)". True: it hears when it is asked.
bool write_thread(int thread) noexcept {
    const char* const status = status_of(thread);
    char name[32] = "";
    char line[64];
    if (std::strncmp(status, "Name:\t", 6) == 0) {
        std::snprintf(name, sizeof name, "%.*s", static_cast<int>(std::strcspn(status + 6, "\n")), status + 6);
    }
    std::snprintf(line, sizeof line, "\nthread %d (%s):\n", thread, name);
    write_text(line);
    const char* const blocked = std::strstr(status, "SigBlk:\t");
    return blocked == nullptr || (std::strtoull(blocked + 8, nullptr, 16) >> static_cast<unsigned>(tell - 1) & 1U) == 0;
}

void write_stack() noexcept {
    void* frames[most_frames];
    ::backtrace_symbols_fd(frames, ::backtrace(frames, most_frames), STDERR_FILENO);
}

extern "C" void tell_where_this_thread_stands(int) {
    const int error = errno;
    write_stack();
    answered.store(::gettid());
    errno = error;
}

void ask(int thread) noexcept {
    const bool hears = write_thread(thread);
    if (thread == ::gettid()) {
        write_stack();
        return;
    }
    if (!hears) {
        write_text("  blocks signals\n");
        return;
    }
    ::tgkill(::getpid(), thread, tell);
    for (int waited_ms = 0; answered.load() != thread; ++waited_ms) {
        const bool is_there = ::tgkill(::getpid(), thread, 0) == 0;
        if (!is_there || waited_ms == patience_ms) {
            write_text(is_there ? "  does not answer\n" : "  has ended meanwhile\n");
            return;
        }
        const timespec moment{0, 1'000'000};
        ::nanosleep(&moment, nullptr);
    }
}

/// Asks one thread after the other. One that blocks signals, like those of the thread sanitizer, is named at least.
void ask_all() noexcept {
    const int tasks = ::open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tasks < 0) {
        write_text("\nThe system does not list its threads; this one stands here:\n");
        write_stack();
        return;
    }
    alignas(dirent64) static char entries[4'096];
    for (ssize_t length = 0; (length = ::getdents64(tasks, entries, sizeof entries)) > 0;) {
        for (ssize_t at = 0; at < length;) {
            const auto* const entry = reinterpret_cast<const dirent64*>(entries + at);
            at += entry->d_reclen;
            if (const int thread = std::atoi(entry->d_name); thread != 0) ask(thread);
        }
    }
    ::close(tasks);
}

/// If what is told hangs as well. Nobody can block this signal, and no test uses it.
void end_soon_whatever_happens() noexcept {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGKILL;
    timer_t last{};
    const itimerspec when{{}, {most_seconds, 0}};
    if (::timer_create(CLOCK_MONOTONIC, &event, &last) == 0) ::timer_settime(last, 0, &when, nullptr);
}

extern "C" void end_what_takes_too_long(int) {
    // Whoever tells already may want to ask this thread.
    if (is_telling.load()) return;
    tell_where_threads_stand_and_end(limited, "its time is up");
}

/// A timer belongs to one program; a child has to make its own.
void ring_at_deadline() noexcept {
    if (owner_of_timer != ::getpid()) {
        sigevent event{};
        event.sigev_notify = SIGEV_SIGNAL;
        event.sigev_signo = time_is_up;
        if (::timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return;
        owner_of_timer = ::getpid();
    }
    const itimerspec when{{}, deadline};
    ::timer_settime(timer, TIMER_ABSTIME, &when, nullptr);
}

extern "C" void limit_a_child() {
    if (deadline.tv_sec == 0) return;
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    const std::int64_t left_ns = (deadline.tv_sec - now.tv_sec) * second_ns + deadline.tv_nsec - now.tv_nsec;
    const std::int64_t earlier_ns = std::min(left_ns / 2, left_ns / 10 + 3 * second_ns);
    const std::int64_t rings_ns = now.tv_nsec + left_ns - earlier_ns;
    deadline = {now.tv_sec + rings_ns / second_ns, rings_ns % second_ns};
    ring_at_deadline();
}

/// The system's own. Where a sanitizer stands in between, it holds a signal back until the thread comes out of what it
/// waits in, and complains of what is done inside.
void answer_signal(int signal, void (*answer)(int)) noexcept {
    using setter = int (*)(int, const struct sigaction*, struct sigaction*);
    const auto set = reinterpret_cast<setter>(::dlsym(RTLD_NEXT, "sigaction"));
    struct sigaction action {};
    sigfillset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    action.sa_handler = answer;
    (set != nullptr ? set : &::sigaction)(signal, &action, nullptr);
}

void answer_signals() noexcept {
    static const bool is_done = [] {
        void* frame = nullptr;
        static_cast<void>(::backtrace(&frame, 1));  // The first call loads a library; not inside a signal, please.
        answer_signal(time_is_up, end_what_takes_too_long);
        answer_signal(tell, tell_where_this_thread_stands);
        return ::pthread_atfork(nullptr, nullptr, limit_a_child) == 0;
    }();
    static_cast<void>(is_done);
}

// A watchdog asks all threads, whether there is a limit or not.
[[maybe_unused]] const bool answers = (answer_signals(), true);

}  // namespace

void tell_where_threads_stand_and_end(const char* what, const char* why) noexcept {
    if (is_telling.exchange(true)) {
        for (;;) ::pause();
    }
    end_soon_whatever_happens();
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
    for (const char* part : {"\n[  FAILED  ] ", what, ": ", why,
                             ". Where its threads stand (addr2line -Cfe PROGRAM 0xOFFSET tells more):\n"}) {
        write_text(part);
    }
    ask_all();
    if (also_tells_where_it_stands != nullptr) also_tells_where_it_stands();
    // A seed may wait there to be printed. It comes last, because whoever was interrupted may be in the middle of it.
    if (::ftrylockfile(stdout) == 0) ::fflush_unlocked(stdout);
    ::_exit(1);
}

void begin_limited(const char* what) noexcept {
    const char* const limit = std::getenv("CHIME_TIME_LIMIT");
    const int seconds = limit != nullptr ? std::atoi(limit) : 0;
    if (seconds <= 0) return;
    answer_signals();
    std::snprintf(limited, sizeof limited, "%s", what);
    ::clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += seconds;
    ring_at_deadline();
}

void end_limited() noexcept {
    if (deadline.tv_sec == 0) return;
    deadline = {};
    ring_at_deadline();  // Never.
}

}  // namespace chime::test
