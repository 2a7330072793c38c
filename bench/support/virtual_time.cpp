// SPDX-License-Identifier: MIT
#include "support/virtual_time.hpp"

#include <cerrno>
#include <cstdint>
#include <ctime>
#include <limits>

#include <dlfcn.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max();

struct virtual_state {
    bool on = false;
    std::int64_t monotonic_ns = 0;
    std::int64_t realtime_minus_monotonic_ns = 0;
    std::int64_t coarse_step_ns = 1;

    // The stand-in for the one timerfd that a contender may have (Asio does): an eventfd, because a real timerfd
    // expires by the kernel's clock, which is not ours to move.
    int timer_descriptor = -1;
    bool timer_is_readable = false;
    std::int64_t timer_deadline_ns = never_ns;
};

virtual_state state;

template <class Function>
Function* next_definition(const char* name) noexcept {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int read_real_clock(clockid_t id, timespec* time) noexcept {
    // Other libraries read the clock before our static objects exist, hence the lookup on first use.
    static decltype(clock_gettime)* real = nullptr;
    if (real == nullptr) [[unlikely]] {
        real = next_definition<decltype(clock_gettime)>("clock_gettime");
    }
    return real(id, time);
}

std::int64_t to_ns(const timespec& time) noexcept {
    return time.tv_sec * second_ns + time.tv_nsec;
}

timespec to_timespec(std::int64_t ns) noexcept {
    timespec time{};
    time.tv_sec = ns / second_ns;
    time.tv_nsec = ns % second_ns;
    return time;
}

std::int64_t read_real_clock_ns(clockid_t id) noexcept {
    timespec time{};
    read_real_clock(id, &time);
    return to_ns(time);
}

void make_timer_readable() noexcept {
    const std::uint64_t one = 1;
    state.timer_is_readable = write(state.timer_descriptor, &one, sizeof one) == sizeof one;
}

void make_timer_unreadable() noexcept {
    std::uint64_t ignored = 0;
    if (read(state.timer_descriptor, &ignored, sizeof ignored) == sizeof ignored) state.timer_is_readable = false;
}

}  // namespace

// The definitions that the dynamic linker prefers to those of libc.
extern "C" {

int clock_gettime(clockid_t id, timespec* time) noexcept {
    const int answer = read_real_clock(id, time);
    if (!state.on) return answer;
    switch (id) {
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_BOOTTIME: *time = to_timespec(state.monotonic_ns); break;
    case CLOCK_MONOTONIC_COARSE:
        *time = to_timespec(state.monotonic_ns - state.monotonic_ns % state.coarse_step_ns);
        break;
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE: *time = to_timespec(state.monotonic_ns + state.realtime_minus_monotonic_ns); break;
    default: break;  // Processor time stays real.
    }
    return answer;
}

int timerfd_create(int clock, int flags) noexcept {
    if (state.on) {
        state.timer_descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        state.timer_is_readable = false;
        state.timer_deadline_ns = never_ns;
        return state.timer_descriptor;
    }
    static auto* const real = next_definition<decltype(timerfd_create)>("timerfd_create");
    return real(clock, flags);
}

int timerfd_settime(int descriptor, int flags, const itimerspec* value, itimerspec* old_value) noexcept {
    if (state.on && descriptor == state.timer_descriptor) {
        if (old_value != nullptr) *old_value = {};
        if (state.timer_is_readable) make_timer_unreadable();
        const std::int64_t value_ns = to_ns(value->it_value);
        const std::int64_t from_ns = (flags & TFD_TIMER_ABSTIME) != 0 ? 0 : state.monotonic_ns;
        state.timer_deadline_ns = value_ns == 0 ? never_ns : from_ns + value_ns;
        if (state.timer_deadline_ns <= state.monotonic_ns) make_timer_readable();
        return 0;
    }
    static auto* const real = next_definition<decltype(timerfd_settime)>("timerfd_settime");
    return real(descriptor, flags, value, old_value);
}

}  // extern "C"

namespace chime_bench {

virtual_time::virtual_time() noexcept {
    timespec coarse{};
    if (clock_getres(CLOCK_MONOTONIC_COARSE, &coarse) == 0) state.coarse_step_ns = to_ns(coarse);
    state.monotonic_ns = read_real_clock_ns(CLOCK_MONOTONIC);
    state.realtime_minus_monotonic_ns = read_real_clock_ns(CLOCK_REALTIME) - state.monotonic_ns;
    state.on = true;
}

virtual_time::~virtual_time() {
    state = virtual_state{};
}

void virtual_time::advance(std::chrono::nanoseconds step) noexcept {
    state.monotonic_ns += step.count();
    if (state.timer_deadline_ns <= state.monotonic_ns && !state.timer_is_readable) make_timer_readable();
}

std::chrono::steady_clock::time_point virtual_time::now() const noexcept {
    return std::chrono::steady_clock::time_point{std::chrono::nanoseconds{state.monotonic_ns}};
}

std::int64_t processor_time_ns() noexcept {
    return read_real_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

}  // namespace chime_bench
