// SPDX-License-Identifier: MIT
#include "shim/engine/sync.hpp"

#include "shim/engine/execution.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace chime::shim {

// --- Mutexes and conditions.

mutex::mutex() noexcept {
    if (execution* const in = execution::current()) {
        const execution::pause own;
        in->unlocked.erase(this);
    }
}

// One that outlives executions guards what outlives them as well: how often it is locked depends on what was before, so
// it is no choice point. Nobody is preempted while he has it.

void mutex::lock() noexcept {
    execution* const in = execution::current();
    if (in == nullptr) return;
    const execution::pause own;
    if (!outlives_executions(this)) {
        in->step();
        while (is_locked_) in->block(this, "a mutex");
        is_locked_ = true;
        if (in->is_traced()) in->note("locks a mutex");
    }
    in->view().tick();
    in->view().clock.join(in->unlocked[this]);
}

void mutex::unlock() noexcept {
    execution* const in = execution::current();
    if (in == nullptr) return;
    const execution::pause own;
    in->view().tick();
    in->unlocked[this] = in->view().clock;
    if (outlives_executions(this)) return;
    is_locked_ = false;
    in->wake(this, most_threads);
    if (in->is_traced()) in->note("unlocks a mutex");
}

void condition::wait(std::unique_lock<mutex>& lock) noexcept {
    execution* const in = execution::current();
    if (in == nullptr) std::abort();
    lock.unlock();
    {
        const execution::pause own;
        in->block(&address_, "a condition", never, true);
    }
    lock.lock();
}

void condition::notify_one() noexcept {
    if (execution* const in = execution::current()) {
        const execution::pause own;
        in->wake(&address_, 1);
    }
}

void condition::notify_all() noexcept {
    if (execution* const in = execution::current()) in->wake(&address_, most_threads);
}

// --- Threads.

thread::thread(std::function<void()> body, const char* name) {
    execution* const in = execution::current();
    if (in == nullptr) std::abort();
    number_ = in->start(std::move(body), name);
}

thread::~thread() {
    if (joinable()) std::terminate();
}

void thread::join() {
    execution* const in = execution::current();
    if (in == nullptr) std::abort();
    const execution::pause own;
    in->join(std::exchange(number_, none));
}

void yield() noexcept {
    if (execution* const in = execution::current()) {
        const execution::pause own;
        in->yield();
    }
}

unsigned this_thread() noexcept {
    execution* const in = execution::current();
    return in != nullptr ? in->running().number : 0;
}

void require(bool condition, const char* what) noexcept {
    if (condition) return;
    execution* const in = execution::current();
    if (in == nullptr) std::abort();
    in->fail(what);
}

void require_equal(std::uint64_t actual, std::uint64_t expected, const char* what) noexcept {
    if (actual == expected) return;
    execution* const in = execution::current();
    if (in == nullptr) std::abort();
    const execution::pause own;
    in->fail(std::string(what) + ": " + std::to_string(actual) + " instead of " + std::to_string(expected));
}

void tally::add(std::int64_t amount) noexcept {
    count_ += amount;
}

std::int64_t tally::count() const noexcept {
    return count_;
}

time_point now() noexcept {
    const execution* const in = execution::current();
    return in != nullptr ? in->now() : clock::now();
}

void sleep_until(time_point deadline) noexcept {
    execution* const in = execution::current();
    if (in == nullptr) std::abort();
    const execution::pause own;
    while (in->now() < deadline) in->block(&in->running(), "a time", deadline);
    in->view().tick();
}

// --- Faults.

lost_wake::lost_wake() noexcept {
    if (execution* const in = execution::current()) in->running().next_wake_is_lost = &has_happened_;
}

lost_wake::~lost_wake() {
    if (execution* const in = execution::current()) in->running().next_wake_is_lost = nullptr;
}

bool lost_wake::has_happened() const noexcept {
    return has_happened_;
}

scarce_memory::scarce_memory(unsigned most) noexcept : most_(most) {
    if (execution* const in = execution::current()) in->refusals_left = most;
}

scarce_memory::~scarce_memory() {
    if (execution* const in = execution::current()) in->refusals_left = 0;
}

unsigned scarce_memory::refusals() const noexcept {
    execution* const in = execution::current();
    return in != nullptr ? most_ - in->refusals_left : 0;
}

void interrupt_all() noexcept {
    if (execution* const in = execution::current()) {
        const execution::pause own;
        in->step();
        in->interrupt_all();
    }
}

// --- Descriptors.

namespace {

struct readable {
    bool is_signalled = false;
    time_point deadline = never;
    int first = -1;  ///< Of a watch.
    int second = -1;
};

std::vector<readable>& descriptors() {
    static std::vector<readable> all;
    return all;
}

/// Whoever waits for any descriptor looks again when one of them changes.
constexpr char any_descriptor = 0;
constexpr int first_number = 1 << 20;

int add(const readable& made) noexcept {
    const execution::pause own;
    descriptors().push_back(made);
    return first_number + static_cast<int>(descriptors().size()) - 1;
}

readable& at(int descriptor) noexcept {
    return descriptors()[static_cast<std::size_t>(descriptor - first_number)];
}

time_point readable_from(int descriptor) noexcept {
    const readable& its = at(descriptor);
    if (its.first >= 0) return std::min(readable_from(its.first), readable_from(its.second));
    return its.is_signalled ? time_point::min() : its.deadline;
}

void change(int descriptor, bool is_signalled, time_point deadline) noexcept {
    execution* const in = execution::current();
    if (in == nullptr) return;
    const execution::pause own;
    in->step();
    in->view().tick();
    at(descriptor).is_signalled = is_signalled;
    at(descriptor).deadline = deadline;
    in->wake(&any_descriptor, most_threads);
    if (in->is_traced()) in->note(is_signalled ? "signals an event" : "sets or drains a descriptor");
}

}  // namespace

int new_event() noexcept {
    return add({});
}

int new_timer() noexcept {
    return add({});
}

int new_watch(int first, int second) noexcept {
    return add({.first = first, .second = second});
}

void signal_event(int descriptor) noexcept {
    if (execution* const in = execution::current()) {
        const execution::pause own;
        if (in->loses_wake()) return;
    }
    change(descriptor, true, never);
}

void set_timer(int descriptor, time_point deadline) noexcept {
    change(descriptor, false, deadline);
}

bool drain(int descriptor) noexcept {
    const bool was_readable = readable_from(descriptor) <= now();
    change(descriptor, false, was_readable ? never : at(descriptor).deadline);
    return was_readable;
}

void close_descriptor(int) noexcept {}

bool wait_readable(int descriptor, time_point deadline) noexcept {
    execution* const in = execution::current();
    if (in == nullptr) std::abort();
    const execution::pause own;
    in->step();
    for (;;) {
        const time_point from = readable_from(descriptor);
        if (from <= in->now()) break;
        if (in->now() >= deadline) return false;
        in->block(&any_descriptor, "a descriptor", std::min(from, deadline));
    }
    in->view().tick();
    return true;
}

}  // namespace chime::shim
