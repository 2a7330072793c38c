// SPDX-License-Identifier: MIT
#pragma once

#include "base/descriptor.hpp"

namespace chime::inline v0::base {

/// A descriptor that is readable from a signal until it is drained: an eventfd.
///
/// Any thread may signal and drain; whoever owns it outlives them.
class event_descriptor {
 public:
    /// Throws std::system_error when the process or the system has no descriptor left.
    event_descriptor();

    [[nodiscard]] int get() const noexcept { return descriptor_.get(); }

    /// Makes the descriptor readable; it stays so however often it is signalled. Never blocks.
    void signal() const noexcept;

    /// Makes the descriptor unreadable; true: it was readable. Never blocks.
    bool drain() const noexcept;

 private:
    descriptor descriptor_;
};

}  // namespace chime::inline v0::base
