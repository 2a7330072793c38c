// SPDX-License-Identifier: MIT
#pragma once

#include "support/sequence.hpp"

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chime_bench {

/// A timer service that T threads use at once.
///
/// A workload is T lanes, each with N timers of its own, named by slot. A lane is a chain of steps: each is a piece of user
/// code that touches only its own lane's timers, and between two steps the service gets its turn.
///
/// - lane(which): arm, cancel and postpone as contenders do (support/contender.hpp). Only inside a step of that lane.
/// - run(step): runs step(which) for each lane again and again until that answers false, on T threads; which of them runs
///   a lane is the service's affair. Returns when all lanes are through and nothing is left to do for what they cancelled.
/// - fired(): how many callbacks have run. After run().
/// - complaint(): what its own counts say is wrong; empty if nothing. After run().
template <class C>
concept shared_contender = std::constructible_from<C, unsigned, std::size_t> &&
    requires(C& it, const C& view, slot_index slot, std::chrono::nanoseconds delay, bool (*step)(unsigned)) {
    { C::name } -> std::convertible_to<std::string_view>;
    { C::clock_reads } -> std::convertible_to<std::string_view>;
    { C::version() } -> std::convertible_to<std::string>;
    { it.lane(0U).arm(slot, delay) } -> std::same_as<void>;
    { it.lane(0U).cancel(slot) } -> std::same_as<bool>;
    { it.lane(0U).postpone(slot, delay) } -> std::same_as<bool>;
    it.run(step);
    { view.fired() } -> std::same_as<std::uint64_t>;
    { view.complaint() } -> std::convertible_to<std::string>;
};

/// A counter that many threads add to, each in a cache line of its own; the sum is exact when they are through.
class scattered_count {
 public:
    void add_one() noexcept {
        std::atomic<std::uint64_t>& mine = parts_[part_of_this_thread()].value;
        mine.fetch_add(1, std::memory_order_relaxed);
    }

    [[nodiscard]] std::uint64_t sum() const noexcept {
        std::uint64_t total = 0;
        for (const part& each : parts_) total += each.value.load(std::memory_order_relaxed);
        return total;
    }

 private:
    static constexpr std::size_t part_count = 64;
    struct alignas(64) part {
        std::atomic<std::uint64_t> value{0};
    };

    static std::size_t part_of_this_thread() noexcept {
        static std::atomic<std::size_t> next{0};
        thread_local const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed) % part_count;
        return mine;
    }

    std::vector<part> parts_ = std::vector<part>(part_count);
};

}  // namespace chime_bench
