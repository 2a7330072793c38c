// SPDX-License-Identifier: MIT
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace chime {
inline namespace v0 {

/// Names one timer, or one sleep of one task, for ever. Plain data: copy it, store it, send it to another thread.
///
/// It owns nothing and keeps nothing alive. Whatever became of what it names, every call that takes a handle answers:
/// a stale, doubled, forged or foreign one is `gone`. A value-initialised one names nothing.
struct timer_handle {
    std::uint64_t life = 0;     ///< Which life of the record or slot: counts up and is never used twice.
    std::uint32_t index = 0;    ///< Which record or task slot.
    std::uint32_t runtime = 0;  ///< Which context or runtime, of all in this process.

    /// True if it names a sleep, which belongs to a task: its slot is task_slot() and its suspension task_id().
    [[nodiscard]] constexpr bool is_sleep() const noexcept { return index >> 31U != 0; }
    [[nodiscard]] constexpr std::uint32_t task_slot() const noexcept { return is_sleep() ? index & ~(1U << 31U) : 0; }
    [[nodiscard]] constexpr std::uint64_t task_id() const noexcept { return is_sleep() ? timer_id() : 0; }
    [[nodiscard]] constexpr std::uint64_t timer_id() const noexcept { return life & ((std::uint64_t{1} << 54U) - 1); }
    /// The worker that took it first; a hint, because timers move when workers retire.
    [[nodiscard]] constexpr std::uint32_t worker_hint() const noexcept {
        return static_cast<std::uint32_t>(life >> 54U);
    }

    explicit constexpr operator bool() const noexcept { return runtime != 0; }
    friend constexpr auto operator<=>(const timer_handle&, const timer_handle&) = default;
};

/// What became of a timer that was to be cancelled.
enum class cancel_result {
    cancelled,  ///< It will never run. Its closure is destroyed already.
    running,    ///< Its callback is running now; if it repeats, this was its last run.
    gone        ///< It ran, or was cancelled before, or never was one of these.
};

/// Why a sleeper was resumed.
enum class wake_reason {
    elapsed,   ///< Its time has come.
    cancelled  ///< It was cancelled before: by its token, its handle, its task, or because everything stops.
};

/// What a periodic timer does about ticks that it could not run in time.
enum class missed_ticks {
    skip,   ///< Leave them out: the next run is at the next tick of the original rhythm.
    burst,  ///< Make up for them: one run after the other until the rhythm is reached again.
    delay   ///< Start a new rhythm: the next run is one period after the end of this one.
};

}  // namespace v0
}  // namespace chime

/// For unordered containers.
template <>
struct std::hash<chime::timer_handle> {
    [[nodiscard]] std::size_t operator()(const chime::timer_handle& handle) const noexcept {
        const std::uint64_t place = std::uint64_t{handle.runtime} << 32U | handle.index;
        const std::uint64_t mixed = (handle.life ^ place * 0x9e3779b97f4a7c15U) * 0xbf58476d1ce4e5b9U;
        return std::hash<std::uint64_t>{}(mixed ^ mixed >> 32U);  // What stands above has to reach the lower half.
    }
};
