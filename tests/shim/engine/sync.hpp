// SPDX-License-Identifier: MIT
#pragma once

#include <chime/time.hpp>

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

// What threads wait with, in the test build.

namespace chime::shim {

class mutex {
 public:
    mutex() noexcept;
    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;

    void lock() noexcept;
    void unlock() noexcept;

 private:
    bool is_locked_ = false;
};

class condition {
 public:
    condition() noexcept = default;
    condition(const condition&) = delete;
    condition& operator=(const condition&) = delete;

    void wait(std::unique_lock<mutex>& lock) noexcept;
    template <class Predicate>
    void wait(std::unique_lock<mutex>& lock, Predicate is_over) {
        while (!is_over()) wait(lock);
    }
    void notify_one() noexcept;
    void notify_all() noexcept;

 private:
    char address_ = 0;  ///< All that is needed of it.
};

class thread {
 public:
    thread() noexcept = default;
    explicit thread(std::function<void()> body, const char* name = "");
    thread(thread&& other) noexcept : number_(std::exchange(other.number_, none)) {}
    thread& operator=(thread&& other) noexcept {
        number_ = std::exchange(other.number_, none);
        return *this;
    }
    ~thread();

    [[nodiscard]] bool joinable() const noexcept { return number_ != none; }
    void join();

 private:
    static constexpr unsigned none = ~0U;
    unsigned number_ = none;
};

void yield() noexcept;
/// A number of the calling thread.
[[nodiscard]] unsigned this_thread() noexcept;

/// Fails the execution, if it is not so.
void require(bool condition, const char* what) noexcept;
void require_equal(std::uint64_t actual, std::uint64_t expected, const char* what) noexcept;

/// A number that any thread counts up, and that is no step: the engine does not look at it.
class tally {
 public:
    void add(std::int64_t amount = 1) noexcept;
    [[nodiscard]] std::int64_t count() const noexcept;

 private:
    std::int64_t count_ = 0;
};

/// The time of the execution.
[[nodiscard]] time_point now() noexcept;
/// The calling thread sleeps until then.
void sleep_until(time_point deadline) noexcept;

// --- Faults.

/// While it lives, the first wake-up that the calling thread sends to somebody who sleeps on a futex, or through an event,
/// does not arrive. Kernels do not do that; a library that has forgotten one does.
class lost_wake {
 public:
    lost_wake() noexcept;
    lost_wake(const lost_wake&) = delete;
    lost_wake& operator=(const lost_wake&) = delete;
    ~lost_wake();

    [[nodiscard]] bool has_happened() const noexcept;

 private:
    bool has_happened_ = false;
};

/// While it lives, memory that any thread asks for, of the heap or of the system, may be refused: up to `most` times, where
/// the schedule says so. One at a time. What the scenario itself allocates meanwhile is asked for, too.
class scarce_memory {
 public:
    explicit scarce_memory(unsigned most = 1) noexcept;
    scarce_memory(const scarce_memory&) = delete;
    scarce_memory& operator=(const scarce_memory&) = delete;
    ~scarce_memory();

    /// So far.
    [[nodiscard]] unsigned refusals() const noexcept;

 private:
    unsigned most_;
};

/// Everybody who sleeps on a futex wakes up for no reason, as for a signal.
void interrupt_all() noexcept;

// --- Descriptors: numbers that no kernel knows.

[[nodiscard]] int new_event() noexcept;
[[nodiscard]] int new_timer() noexcept;
[[nodiscard]] int new_watch(int first, int second) noexcept;
void signal_event(int descriptor) noexcept;
void set_timer(int descriptor, time_point deadline) noexcept;
/// True: it was readable.
bool drain(int descriptor) noexcept;
void close_descriptor(int descriptor) noexcept;
/// Sleeps until it is readable, or until the deadline; true: it is.
bool wait_readable(int descriptor, time_point deadline = never) noexcept;

}  // namespace chime::shim
