// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace chime_bench::layouts {

inline constexpr unsigned tick_bits = 18;  // A tick is 2^18 ns, as in chime::timer_wheel.
inline constexpr unsigned slot_bits = 8;
inline constexpr std::size_t slots_per_level = std::size_t{1} << slot_bits;
inline constexpr std::size_t level_count = 6;  // 2^66 ns: more than there is.

/// Which slots of a hierarchical wheel are occupied, and which of them time reaches next.
///
/// The level of a tick is given by the highest byte in which it differs from the current tick, so every occupied slot
/// lies ahead of the current tick's own slot on its level, and the lowest occupied level has the next one.
class levels {
 public:
    [[nodiscard]] static constexpr std::uint64_t tick_of(std::uint64_t deadline_ns) { return deadline_ns >> tick_bits; }

    [[nodiscard]] std::uint64_t current_tick() const noexcept { return current_tick_; }

    /// Where a tick after the current one belongs: level * 256 + slot.
    [[nodiscard]] std::size_t place_of(std::uint64_t tick) const noexcept {
        const auto differing_bit = static_cast<std::size_t>(std::bit_width(tick ^ current_tick_)) - 1;
        const std::size_t level = differing_bit / slot_bits;
        return level * slots_per_level + ((tick >> (level * slot_bits)) & (slots_per_level - 1));
    }

    void set(std::size_t place) noexcept { occupied_[place / 64] |= std::uint64_t{1} << place % 64; }
    void reset(std::size_t place) noexcept { occupied_[place / 64] &= ~(std::uint64_t{1} << place % 64); }

    /// The first occupied place at or after `place`; none if there is none.
    [[nodiscard]] std::optional<std::size_t> first_from(std::size_t place) const noexcept {
        for (std::size_t word = place / 64; word < occupied_.size(); ++word) {
            std::uint64_t bits = occupied_[word];
            if (word == place / 64) bits &= ~std::uint64_t{0} << place % 64;
            if (bits != 0) return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        }
        return {};
    }

    /// Moves the current tick to the next occupied slot that begins no later than `until`, and gives that slot's
    /// place; if there is none, moves it to `until`.
    std::optional<std::size_t> step(std::uint64_t until) noexcept {
        const std::optional<std::size_t> next = first_from(0);
        if (next) {
            const std::size_t shift = *next / slots_per_level * slot_bits;
            const std::uint64_t above = current_tick_ >> shift >> slot_bits << slot_bits << shift;
            const std::uint64_t begin = above | (std::uint64_t{*next % slots_per_level} << shift);
            if (begin <= until) {
                current_tick_ = begin;
                return next;
            }
        }
        if (until > current_tick_) current_tick_ = until;
        return {};
    }

 private:
    std::uint64_t current_tick_ = 0;
    std::array<std::uint64_t, level_count * slots_per_level / 64> occupied_{};
};

}  // namespace chime_bench::layouts
