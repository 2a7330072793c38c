// SPDX-License-Identifier: MIT
#pragma once

#include "support/contender.hpp"

#include <chime/version.hpp>
#include <chime/wheel.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chime_bench {

/// chime::timer_wheel as a loop drives it: time is read once per turn, and deadlines count from there.
class chime_wheel {
 public:
    static constexpr std::string_view name = "chime.wheel";
    static constexpr std::string_view clock_reads = "per turn";
    static constexpr precision keeps = precision::exact;
    static std::string version() {
        return std::to_string(CHIME_VERSION_MAJOR) + '.' + std::to_string(CHIME_VERSION_MINOR) + '.' +
               std::to_string(CHIME_VERSION_PATCH);
    }

    chime_wheel(std::size_t count, firing_log& log)
        : log_(log), now_(std::chrono::steady_clock::now()), wheel_({.start = now_}), ids_(count) {}

    void arm(slot_index slot, std::chrono::nanoseconds delay) { ids_[slot] = wheel_.arm(now_ + delay, slot); }

    bool cancel(slot_index slot) { return wheel_.cancel(ids_[slot]).has_value(); }

    bool postpone(slot_index slot, std::chrono::nanoseconds delay) { return wheel_.postpone(ids_[slot], now_ + delay); }

    void prefetch_handle(slot_index slot) const { __builtin_prefetch(&ids_[slot]); }
    void prefetch_timer(slot_index slot) const { wheel_.prefetch(ids_[slot]); }

    void turn() {
        now_ = std::chrono::steady_clock::now();
        wheel_.advance(now_, [this](std::uint64_t slot) { log_.note(static_cast<slot_index>(slot)); });
    }

    /// A loop that gives the wheel as much at a time as chime's own does.
    template <class Beat>
    void run_beating(Beat beat) {
        do {
            now_ = std::chrono::steady_clock::now();
            wheel_.advance(
                now_, [this](std::uint64_t slot) { log_.note(static_cast<slot_index>(slot)); }, 512);
        } while (beat());
    }

    [[nodiscard]] bool is_pending(slot_index slot) const { return wheel_.deadline_of(ids_[slot]).has_value(); }

    [[nodiscard]] std::string complaint() const {
        const chime::wheel_stats stats = wheel_.stats();
        if (stats.armed == stats.fired + stats.cancelled + stats.pending) return {};
        return "the wheel's counters do not add up";
    }

 private:
    firing_log& log_;
    std::chrono::steady_clock::time_point now_;
    chime::timer_wheel<std::uint64_t> wheel_;
    std::vector<chime::timer_id> ids_;
};

}  // namespace chime_bench
