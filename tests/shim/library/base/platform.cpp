// SPDX-License-Identifier: MIT
#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/futex.hpp"
#include "base/thread.hpp"
#include "base/thread_number.hpp"
#include "shim/engine/execution.hpp"
#include "shim/engine/sync.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

// What src/base gets from the operating system, the test build gets from the execution that it is part of.

namespace chime::inline v0::base {

using shim::execution;

// --- check.hpp

void fail_check(fault whose, const char* invariant, const char* condition, const char* file, int line) noexcept {
    execution* const in = execution::current();
    if (in == nullptr) {
        std::fprintf(stderr, "%s%s (%s is false at %s:%d)\n", headline_of(whose), invariant, condition, file, line);
        std::abort();
    }
    const execution::pause own;
    in->fail(std::string(headline_of(whose)) + invariant + " (" + file + ":" + std::to_string(line) + ")");
}

// --- clock.hpp

time_point now() noexcept {
    return shim::now();
}

bool set_timer_slack(std::chrono::nanoseconds slack) noexcept {
    return slack.count() >= 0;
}

std::optional<std::chrono::nanoseconds> timer_slack() noexcept {
    return std::chrono::nanoseconds{50'000};
}

// --- thread_number.hpp

[[gnu::tls_model("initial-exec")]] thread_local constinit std::uint32_t own_thread_number = 0;

const char thread_numbering = 0;

std::uint32_t number_this_thread() noexcept {
    static std::uint32_t outside = 0;
    execution* const in = execution::current();
    own_thread_number = ++(in != nullptr ? in->numbered_threads : outside);
    return own_thread_number - 1;
}

/// All are fibers of one thread of the system.
const void* this_thread_mark() noexcept {
    return reinterpret_cast<const void*>(std::uintptr_t{thread_number()} + 1);
}

// --- futex.hpp

futex_result futex_wait(const futex_word& word, std::uint32_t expected, time_point deadline) noexcept {
    execution* const in = execution::current();
    if (in == nullptr) std::abort();
    const execution::pause own;
    in->step();
    in->view().tick();
    if (shim::memory::raw(&word, sizeof word) != expected) {
        if (in->is_traced()) in->note("does not sleep on a futex, because it has changed");
        return futex_result::changed;
    }
    if (deadline <= in->now()) return futex_result::timed_out;
    const bool has_timed_out = in->block(&word, "a futex", deadline, true);
    in->view().tick();
    return has_timed_out ? futex_result::timed_out : futex_result::woken;
}

namespace {

unsigned wake(const futex_word& word, unsigned most) noexcept {
    execution* const in = execution::current();
    if (in == nullptr) return 0;
    const execution::pause own;
    in->step();
    in->view().tick();
    if (in->is_awaited(&word) && in->loses_wake()) return 0;
    const unsigned woken = in->wake(&word, most);
    if (in->is_traced()) in->note("wakes " + std::to_string(woken) + " on a futex");
    return woken;
}

}  // namespace

bool futex_wake_one(const futex_word& word) noexcept {
    return wake(word, 1) != 0;
}

std::uint32_t futex_wake_all(const futex_word& word) noexcept {
    return wake(word, shim::most_threads);
}

// --- thread.hpp

int fork_number() noexcept {
    return 1;
}

unsigned usable_processors() noexcept {
    return 2;
}

unsigned usable_processor(unsigned position) noexcept {
    return position % 2;
}

std::error_code pin_this_thread(unsigned) noexcept {
    return {};
}

void name_this_thread(std::string_view name) noexcept {
    execution* const in = execution::current();
    if (in == nullptr) return;
    const execution::pause own;
    in->running().name = name;
}

}  // namespace chime::inline v0::base
