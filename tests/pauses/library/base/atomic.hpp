// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

// Stands in front of src/base/atomic.hpp where the tests are built with CHIME_TEST_PAUSES: any atomic step of the library
// may be preceded by a pause, so that other threads get in between what is usually nanoseconds apart.

namespace chime::inline v0::base {

/// Who pauses where: every thread counts its own steps down and draws anew when it has come to the end.
class pauses {
 public:
    static void before_step() noexcept {
        if (--steps_left == 0) [[unlikely]]
            pause();
    }

    /// How often a thread of this process has paused.
    [[nodiscard]] static std::uint64_t taken() noexcept;

 private:
    static void pause() noexcept;

    static thread_local std::uint32_t steps_left;
};

/// As large as the real one, and with the operations that the library uses.
template <class T>
class atomic : private std::atomic<T> {
    using real = std::atomic<T>;

 public:
    using value_type = T;
    using real::is_always_lock_free;

    constexpr atomic() noexcept : real(T{}) {}
    constexpr atomic(T value) noexcept : real(value) {}  // NOLINT(google-explicit-constructor): as the real one.

    [[nodiscard]] T load(std::memory_order order = std::memory_order_seq_cst) const noexcept {
        pauses::before_step();
        return real::load(order);
    }
    void store(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
        pauses::before_step();
        real::store(value, order);
    }
    T exchange(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
        pauses::before_step();
        return real::exchange(value, order);
    }
    T fetch_add(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
        pauses::before_step();
        return real::fetch_add(value, order);
    }
    T fetch_sub(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
        pauses::before_step();
        return real::fetch_sub(value, order);
    }
    T fetch_and(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
        pauses::before_step();
        return real::fetch_and(value, order);
    }
    T fetch_or(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
        pauses::before_step();
        return real::fetch_or(value, order);
    }
    bool compare_exchange_weak(T& expected, T desired, std::memory_order order) noexcept {
        pauses::before_step();
        return real::compare_exchange_weak(expected, desired, order);
    }
    bool compare_exchange_weak(T& expected, T desired, std::memory_order success, std::memory_order failure) noexcept {
        pauses::before_step();
        return real::compare_exchange_weak(expected, desired, success, failure);
    }
    bool compare_exchange_strong(T& expected, T desired, std::memory_order order) noexcept {
        pauses::before_step();
        return real::compare_exchange_strong(expected, desired, order);
    }
    bool compare_exchange_strong(T& expected, T desired, std::memory_order success,
                                 std::memory_order failure) noexcept {
        pauses::before_step();
        return real::compare_exchange_strong(expected, desired, success, failure);
    }
};

using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

}  // namespace chime::inline v0::base
