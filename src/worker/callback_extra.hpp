// SPDX-License-Identifier: MIT
#pragma once

#include "worker/crew.hpp"
#include "worker/hot_paths.hpp"

#include <chime/detail/frame_memory.hpp>

#include <optional>
#include <stop_token>

namespace chime::inline v0::detail {

/// What a token does when it is cancelled.
struct token_reaction {
    void operator()() const noexcept {
        // Whoever cancels a token knows nothing of the context, which may end this moment.
        const crew::visit visiting(*home);
        home->cancel(which);
    }
    crew* home;
    timer_handle which;
};

/// What few callbacks have.
struct callback_extra {
    std::int64_t period_ns = 0;
    missed_ticks policy = missed_ticks::skip;
    std::optional<std::stop_callback<token_reaction>> watch;

    static void* operator new(std::size_t bytes) { return take_frame(bytes); }
    static void operator delete(void* memory, std::size_t bytes) noexcept { give_frame(memory, bytes); }

    /// The deadline after the one that was met.
    [[nodiscard]] ordinal next(ordinal met, ordinal now) const noexcept {
        if (policy == missed_ticks::delay) return ordinal_after(now, period_ns);
        ordinal from = met;
        if (policy == missed_ticks::skip && now > met) {
            const auto period = static_cast<ordinal>(period_ns);
            from = met + (now - met) / period * period;  // The last tick that has passed.
        }
        return ordinal_after(from, period_ns);
    }
};

}  // namespace chime::inline v0::detail
