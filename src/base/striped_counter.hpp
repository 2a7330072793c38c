// SPDX-License-Identifier: MIT
#pragma once

#include "base/atomic.hpp"
#include "base/cache_line.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace chime::inline v0::base {

/// The number of this thread, and one: zero until it has asked.
[[gnu::tls_model("initial-exec")]] extern thread_local constinit std::uint32_t own_thread_number;

/// The first time that a thread asks.
[[nodiscard]] std::uint32_t number_this_thread() noexcept;

/// A number of the calling thread, counted from zero in the order in which threads first ask. Wraps after 2^32 - 1 threads.
[[nodiscard]] inline std::uint32_t thread_number() noexcept {
    const std::uint32_t known = own_thread_number;
    return known != 0 ? known - 1 : number_this_thread();
}

/// A counter that many threads add to without contending and somebody sums now and then.
///
/// Every thread adds to one of the stripes, each on a cache line of its own. Any thread may add and sum. A sum taken
/// while others add lies between what was there before and what is there after; at rest it is exact. Sums wrap around
/// like any unsigned number, so adding the complement subtracts.
template <std::size_t Stripes = 16>
class striped_counter {
    static_assert(std::has_single_bit(Stripes), "a stripe is chosen by masking, so their number is a power of two");

 public:
    striped_counter() noexcept = default;
    striped_counter(const striped_counter&) = delete;
    striped_counter& operator=(const striped_counter&) = delete;

    void add(std::uint64_t amount) noexcept {
        // Relaxed: the count publishes nothing else, and every addition is a read-modify-write, so none is lost.
        stripes_[thread_number() & (Stripes - 1)].count.fetch_add(amount, memory_order_relaxed);
    }

    [[nodiscard]] std::uint64_t sum() const noexcept {
        std::uint64_t total = 0;
        // Relaxed: pairs with no store; who needs an exact sum has joined the adders by other means.
        for (const stripe& each : stripes_) total += each.count.load(memory_order_relaxed);
        return total;
    }

 private:
    struct alignas(cache_line_bytes) stripe {
        atomic<std::uint64_t> count{0};
    };

    std::array<stripe, Stripes> stripes_{};
};

}  // namespace chime::inline v0::base
