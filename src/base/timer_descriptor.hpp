// SPDX-License-Identifier: MIT
#pragma once

#include "base/descriptor.hpp"

#include <chime/time.hpp>

namespace chime::inline v0::base {

/// A descriptor that becomes readable at a time: a timerfd on the monotonic clock.
///
/// Any thread may set and drain; whoever owns it outlives them.
class timer_descriptor {
 public:
    /// Throws std::system_error when the process or the system has no descriptor left.
    timer_descriptor();

    [[nodiscard]] int get() const noexcept { return descriptor_.get(); }

    /// Readable from `deadline` on, never before; a passed deadline means at once, `never` means not at all. Replaces
    /// the deadline before it, and the descriptor is unreadable until the new one has come.
    void set(time_point deadline) const noexcept;

    /// Makes the descriptor unreadable until it is set again; true: its deadline had passed. Never blocks.
    bool drain() const noexcept;

 private:
    descriptor descriptor_;
};

}  // namespace chime::inline v0::base
