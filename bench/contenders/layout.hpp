// SPDX-License-Identifier: MIT
#pragma once

#include "layouts/lists.hpp"
#include "layouts/wide_tickets.hpp"
#include "support/contender.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace chime_bench {

/// The other ways to store a wheel that chime.wheel was chosen over, driven just as it is.
///
/// They keep the same promises on the measured path, and leave out what it does not need: budgets, values of any
/// type, callbacks that call back, a next deadline.
template <class Layout>
class layout {
 public:
    static constexpr std::string_view name =
        std::is_same_v<Layout, layouts::lists> ? "layout.lists" : "layout.wide_tickets";
    static constexpr std::string_view clock_reads = "per turn";
    static constexpr precision keeps = precision::exact;
    static std::string version() { return "reference"; }

    layout(std::size_t count, firing_log& log) : log_(log), start_(std::chrono::steady_clock::now()), ids_(count) {}

    void arm(slot_index slot, std::chrono::nanoseconds delay) { ids_[slot] = wheel_.arm(deadline(delay), slot); }
    bool cancel(slot_index slot) { return wheel_.cancel(ids_[slot]).has_value(); }
    bool postpone(slot_index slot, std::chrono::nanoseconds delay) {
        return wheel_.postpone(ids_[slot], deadline(delay));
    }

    void turn() {
        now_ns_ = static_cast<std::uint64_t>((std::chrono::steady_clock::now() - start_).count());
        wheel_.advance(now_ns_, [this](std::uint64_t slot) { log_.note(static_cast<slot_index>(slot)); });
    }

    [[nodiscard]] bool is_pending(slot_index slot) const { return wheel_.is_pending(ids_[slot]); }

    [[nodiscard]] std::string complaint() const { return {}; }

 private:
    [[nodiscard]] std::uint64_t deadline(std::chrono::nanoseconds delay) const {
        return now_ns_ + static_cast<std::uint64_t>(delay.count());
    }

    firing_log& log_;
    std::chrono::steady_clock::time_point start_;
    std::uint64_t now_ns_ = 0;
    Layout wheel_;
    std::vector<typename Layout::timer_id> ids_;
};

}  // namespace chime_bench
