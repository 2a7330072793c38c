// SPDX-License-Identifier: MIT
#pragma once

#include <chime/detail/export.hpp>
#include <chime/time.hpp>

namespace chime {
inline namespace v0 {

/// A loop, as a clock sees it.
class CHIME_API clock_listener {
 public:
    /// Time has moved: look again. Any thread; does not block.
    virtual void time_moved() noexcept = 0;

    /// It was idle, and somebody has given it something to do since. Any thread.
    [[nodiscard]] virtual bool was_woken() const noexcept = 0;

 protected:
    clock_listener() = default;
    clock_listener(const clock_listener&) = default;
    clock_listener& operator=(const clock_listener&) = default;
    ~clock_listener() = default;
};

/// Where a context takes its time from, if not from the monotonic clock of the system: see <chime/testing.hpp>.
///
/// Time should not run back; if it does, it stands still for a context until the clock shows again what that has seen
/// before. It outlives every context that was given it.
class CHIME_API clock_source {
 public:
    /// Any thread.
    [[nodiscard]] virtual time_point now() const noexcept = 0;

    /// A context begins and ends to follow this clock.
    virtual void attach(clock_listener& listener) = 0;
    virtual void detach(clock_listener& listener) noexcept = 0;

    /// Somebody begins and ends to drive the loop of the listener.
    virtual void begin_run(clock_listener& listener) noexcept = 0;
    virtual void end_run(clock_listener& listener) noexcept = 0;

    /// The loop has nothing to do before `deadline` and is about to sleep. True: time has moved, it should look again.
    /// `may_jump` is false while work that does not follow this clock is going on for it.
    virtual bool begin_idle(clock_listener& listener, time_point deadline, bool may_jump) noexcept = 0;
    virtual void end_idle(clock_listener& listener) noexcept = 0;

 protected:
    clock_source() = default;
    clock_source(const clock_source&) = default;
    clock_source& operator=(const clock_source&) = default;
    ~clock_source() = default;
};

}  // namespace v0
}  // namespace chime
