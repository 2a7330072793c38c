// SPDX-License-Identifier: MIT
#pragma once

#include "base/clock.hpp"
#include "base/thread.hpp"

#include <chime/time.hpp>

#include <chrono>

namespace chime::inline v0::detail {

/// Lets others have the processor in the middle of something long, because one of them may be about to fire what is due.
///
/// A thread that is busy is left alone by the kernel for milliseconds; one that gives way comes back when the others have
/// had as much. Where they never sleep that is a long time, so there is a limit to what it may cost.
class giving_way {
 public:
    void give() noexcept {
        const time_point before = base::now();
        if (before - since_ > std::chrono::seconds{1}) {
            since_ = before;
            lost_ = {};
        }
        if (lost_ >= most_lost_in_a_second) return;
        base::yield_this_thread();
        lost_ += base::now() - before;
    }

 private:
    static constexpr std::chrono::milliseconds most_lost_in_a_second{10};

    time_point since_{};
    duration lost_{};
};

}  // namespace chime::inline v0::detail
