// SPDX-License-Identifier: MIT
#pragma once

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/stripes.hpp"
#include "base/thread_number.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace chime::inline v0::base {

/// Counters that many threads add to without contending and somebody sums now and then; `Which` numbers them from zero.
///
/// Every thread adds to one of the stripes, each on a cache line of its own with all the counters. The first threads of a program
/// have one to themselves, so that they need no locked instruction; those that come later share the others. Any thread may add and
/// sum. A sum taken while others add lies between what was there before and what is there after; at rest it is exact. Sums wrap
/// around like any unsigned number, so adding the complement subtracts.
template <class Which, std::size_t Stripes = usual_stripes>
class striped_counters {
    static_assert(std::has_single_bit(Stripes), "a stripe is chosen by masking, so their number is a power of two");

 public:
    /// How many have room in a stripe.
    static constexpr std::size_t most_counters = cache_line_bytes / sizeof(std::uint64_t);

 private:
    struct alignas(cache_line_bytes) stripe {
        std::array<atomic<std::uint64_t>, most_counters> counts{};
    };

 public:
    striped_counters() noexcept = default;
    striped_counters(const striped_counters&) = delete;
    striped_counters& operator=(const striped_counters&) = delete;

    /// The one that this thread adds to.
    class adder {
     public:
        void add(Which which, std::uint64_t amount) const noexcept {
            atomic<std::uint64_t>& count = at_.counts[static_cast<std::size_t>(which)];
            if (is_own_) [[likely]] {
                // Relaxed: this thread alone writes it, and it publishes nothing else.
                count.store(count.load(memory_order_relaxed) + amount, memory_order_relaxed);
            } else {
                count.fetch_add(amount, memory_order_relaxed);
            }
        }

        /// The same, and who sums by sum_acquiring() and finds it added sees what this thread did before.
        void add_releasing(Which which, std::uint64_t amount) const noexcept {
            atomic<std::uint64_t>& count = at_.counts[static_cast<std::size_t>(which)];
            if (is_own_) [[likely]] {
                count.store(count.load(memory_order_relaxed) + amount, memory_order_release);  // As above.
            } else {
                count.fetch_add(amount, memory_order_release);
            }
        }

     private:
        friend striped_counters;
        adder(stripe& at, bool is_own) noexcept : at_(at), is_own_(is_own) {}
        stripe& at_;
        bool is_own_;
    };

    [[nodiscard]] adder mine() noexcept {
        const std::uint32_t number = thread_number();
        // Numbers of another copy of the library are also those of other threads.
        if (number < Stripes && numbering_ == &thread_numbering) [[likely]]
            return {own_[number], true};
        return {shared_[number & (Stripes - 1)], false};
    }

    void add(Which which, std::uint64_t amount) noexcept { mine().add(which, amount); }

    [[nodiscard]] std::uint64_t sum(Which which) const noexcept {
        std::uint64_t total = 0;
        for (const auto* const stripes : {&own_, &shared_}) {
            // Relaxed: pairs with no store; who needs an exact sum has joined the adders by other means.
            for (const stripe& each : *stripes)
                total += each.counts[static_cast<std::size_t>(which)].load(memory_order_relaxed);
        }
        return total;
    }

    [[nodiscard]] std::uint64_t sum_acquiring(Which which) const noexcept {
        std::uint64_t total = 0;
        for (const auto* const stripes : {&own_, &shared_}) {
            // Acquire: pairs with add_releasing().
            for (const stripe& each : *stripes)
                total += each.counts[static_cast<std::size_t>(which)].load(memory_order_acquire);
        }
        return total;
    }

 private:
    const char* const numbering_ = &thread_numbering;
    std::array<stripe, Stripes> own_{};
    std::array<stripe, Stripes> shared_{};
};

}  // namespace chime::inline v0::base
