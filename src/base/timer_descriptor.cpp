// SPDX-License-Identifier: MIT
#include "base/timer_descriptor.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"

#include <cerrno>
#include <cstdint>
#include <system_error>

#include <sys/timerfd.h>
#include <unistd.h>

namespace chime::inline v0::base {

timer_descriptor::timer_descriptor() : descriptor_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
    if (!descriptor_) throw std::system_error(errno, std::generic_category(), "chime: no timerfd to wait with");
}

void timer_descriptor::set(time_point deadline) const noexcept {
    itimerspec setting{};
    if (deadline != never) {
        setting.it_value = to_timespec(deadline);
        // All zero would switch the timer off; one nanosecond after the epoch is as past as the epoch.
        if (setting.it_value.tv_sec == 0 && setting.it_value.tv_nsec == 0) setting.it_value.tv_nsec = 1;
    }
    CHIME_CHECK_USE(::timerfd_settime(descriptor_.get(), TFD_TIMER_ABSTIME, &setting, nullptr) == 0,
                    "a timer descriptor is open while it is set: leave what poll_fd() gives open");
}

bool timer_descriptor::drain() const noexcept {
    std::uint64_t expirations = 0;
    while (::read(descriptor_.get(), &expirations, sizeof expirations) != sizeof expirations) {
        if (errno == EAGAIN) return false;
        CHIME_CHECK_USE(errno == EINTR,
                        "a timer descriptor is open while it is drained: leave what poll_fd() gives open");
    }
    return true;
}

}  // namespace chime::inline v0::base
