// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

// The atomic of the test build: as large as the real one, and with the same operations, but every one of them is a step
// of the execution. Outside of an execution it does what it says, and nothing else.

namespace chime::shim {

enum class change : std::uint8_t { exchange, add, subtract, bit_and, bit_or };

void atomic_made(const void* address) noexcept;
[[nodiscard]] std::uint64_t atomic_load(const void* address, unsigned bytes, std::memory_order order,
                                        const std::source_location& where) noexcept;
void atomic_store(void* address, unsigned bytes, std::uint64_t value, std::memory_order order,
                  const std::source_location& where) noexcept;
std::uint64_t atomic_modify(void* address, unsigned bytes, change how, std::uint64_t operand, std::memory_order order,
                            const std::source_location& where) noexcept;

struct comparison {
    std::uint64_t desired;
    std::memory_order success;
    std::memory_order failure;
    bool has_own_failure;
    bool is_weak;
};
[[nodiscard]] bool atomic_compare(void* address, unsigned bytes, std::uint64_t& expected, const comparison& wanted,
                                  const std::source_location& where) noexcept;
void atomic_fence(std::memory_order order,
                  const std::source_location& where = std::source_location::current()) noexcept;

/// What follows a compare-and-swap that fails, if nothing else is said.
[[nodiscard]] constexpr std::memory_order failure_of(std::memory_order success) noexcept {
    if (success == std::memory_order_acq_rel) return std::memory_order_acquire;
    if (success == std::memory_order_release) return std::memory_order_relaxed;
    return success;
}

#define CHIME_SHIM_PLAIN __attribute__((no_sanitize("thread")))

template <class T>
class atomic {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);

 public:
    using value_type = T;
    using location = std::source_location;
    static constexpr bool is_always_lock_free = true;

    CHIME_SHIM_PLAIN constexpr atomic() noexcept : atomic(T{}) {}
    CHIME_SHIM_PLAIN constexpr atomic(T value) noexcept : value_(value) {
        if (!std::is_constant_evaluated()) atomic_made(this);
    }
    atomic(const atomic&) = delete;
    atomic& operator=(const atomic&) = delete;

    [[nodiscard]] CHIME_SHIM_PLAIN T load(std::memory_order order = std::memory_order_seq_cst,
                                          const location& where = location::current()) const noexcept {
        return from_bits(atomic_load(this, sizeof(T), order, where));
    }
    CHIME_SHIM_PLAIN void store(T value, std::memory_order order = std::memory_order_seq_cst,
                                const location& where = location::current()) noexcept {
        atomic_store(this, sizeof(T), to_bits(value), order, where);
    }
    CHIME_SHIM_PLAIN T exchange(T value, std::memory_order order = std::memory_order_seq_cst,
                                const location& where = location::current()) noexcept {
        return from_bits(atomic_modify(this, sizeof(T), change::exchange, to_bits(value), order, where));
    }
    CHIME_SHIM_PLAIN T fetch_add(T value, std::memory_order order = std::memory_order_seq_cst,
                                 const location& where = location::current()) noexcept {
        return from_bits(atomic_modify(this, sizeof(T), change::add, to_bits(value), order, where));
    }
    CHIME_SHIM_PLAIN T fetch_sub(T value, std::memory_order order = std::memory_order_seq_cst,
                                 const location& where = location::current()) noexcept {
        return from_bits(atomic_modify(this, sizeof(T), change::subtract, to_bits(value), order, where));
    }
    CHIME_SHIM_PLAIN T fetch_and(T value, std::memory_order order = std::memory_order_seq_cst,
                                 const location& where = location::current()) noexcept {
        return from_bits(atomic_modify(this, sizeof(T), change::bit_and, to_bits(value), order, where));
    }
    CHIME_SHIM_PLAIN T fetch_or(T value, std::memory_order order = std::memory_order_seq_cst,
                                const location& where = location::current()) noexcept {
        return from_bits(atomic_modify(this, sizeof(T), change::bit_or, to_bits(value), order, where));
    }
    CHIME_SHIM_PLAIN bool compare_exchange_weak(T& expected, T desired, std::memory_order order,
                                                const location& where = location::current()) noexcept {
        return compare(expected, desired, order, failure_of(order), false, true, where);
    }
    CHIME_SHIM_PLAIN bool compare_exchange_weak(T& expected, T desired, std::memory_order success,
                                                std::memory_order failure,
                                                const location& where = location::current()) noexcept {
        return compare(expected, desired, success, failure, true, true, where);
    }
    CHIME_SHIM_PLAIN bool compare_exchange_strong(T& expected, T desired, std::memory_order order,
                                                  const location& where = location::current()) noexcept {
        return compare(expected, desired, order, failure_of(order), false, false, where);
    }
    CHIME_SHIM_PLAIN bool compare_exchange_strong(T& expected, T desired, std::memory_order success,
                                                  std::memory_order failure,
                                                  const location& where = location::current()) noexcept {
        return compare(expected, desired, success, failure, true, false, where);
    }

 private:
    [[nodiscard]] CHIME_SHIM_PLAIN static std::uint64_t to_bits(T value) noexcept {
        std::uint64_t bits = 0;
        __builtin_memcpy(&bits, &value, sizeof(T));
        return bits;
    }
    [[nodiscard]] CHIME_SHIM_PLAIN static T from_bits(std::uint64_t bits) noexcept {
        T value;
        __builtin_memcpy(&value, &bits, sizeof(T));
        return value;
    }
    CHIME_SHIM_PLAIN bool compare(T& expected, T desired, std::memory_order success, std::memory_order failure,
                                  bool has_own_failure, bool is_weak, const location& where) noexcept {
        std::uint64_t seen = to_bits(expected);
        const bool did = atomic_compare(this, sizeof(T), seen,
                                        {to_bits(desired), success, failure, has_own_failure, is_weak}, where);
        if (!did) expected = from_bits(seen);
        return did;
    }

    alignas(sizeof(T)) T value_;
};

}  // namespace chime::shim
