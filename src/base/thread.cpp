// SPDX-License-Identifier: MIT
#include "base/thread.hpp"

#include <algorithm>
#include <cerrno>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

namespace chime::inline v0::base {

int fork_number() noexcept {
    return ::getpid();
}

void call_around_fork(void (*before)(), void (*after)()) noexcept {
    static_cast<void>(::pthread_atfork(before, after, after));
}

unsigned usable_processors() noexcept {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) return static_cast<unsigned>(CPU_COUNT(&allowed));
    // A machine with more processors than a cpu_set_t holds; the library's own count has no such limit.
    return std::max(1U, std::thread::hardware_concurrency());
}

unsigned usable_processor(unsigned position) noexcept {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return position % usable_processors();
    unsigned left = position % static_cast<unsigned>(CPU_COUNT(&allowed));
    for (unsigned processor = 0; processor < CPU_SETSIZE; ++processor) {
        if (CPU_ISSET(processor, &allowed) && left-- == 0) return processor;
    }
    return 0;
}

std::error_code pin_this_thread(unsigned processor) noexcept {
    if (processor >= CPU_SETSIZE) return std::make_error_code(std::errc::invalid_argument);
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    CPU_SET(processor, &wanted);
    if (::sched_setaffinity(0, sizeof wanted, &wanted) == 0) return {};
    return {errno, std::generic_category()};
}

void name_this_thread(std::string_view name) noexcept {
    char text[16] = {};  // What the kernel keeps, with its terminating zero.
    name.copy(text, sizeof text - 1);
    // A name is a comfort: if it is refused, the thread runs as well without.
    [[maybe_unused]] const int refused = ::pthread_setname_np(::pthread_self(), text);
}

}  // namespace chime::inline v0::base
