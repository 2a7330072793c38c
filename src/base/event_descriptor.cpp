// SPDX-License-Identifier: MIT
#include "base/event_descriptor.hpp"

#include "base/check.hpp"

#include <cerrno>
#include <cstdint>
#include <system_error>

#include <sys/eventfd.h>
#include <unistd.h>

namespace chime::inline v0::base {

event_descriptor::event_descriptor() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!descriptor_) throw std::system_error(errno, std::generic_category(), "chime: no eventfd to be woken with");
}

void event_descriptor::signal() const noexcept {
    constexpr std::uint64_t once = 1;
    while (::write(descriptor_.get(), &once, sizeof once) != sizeof once) {
        if (errno == EAGAIN) return;  // The count is at its limit, so the descriptor is readable already.
        CHIME_CHECK_USE(errno == EINTR,
                        "an event descriptor is open while it is signalled: leave what poll_fd() gives open");
    }
}

bool event_descriptor::drain() const noexcept {
    std::uint64_t count = 0;
    while (::read(descriptor_.get(), &count, sizeof count) != sizeof count) {
        if (errno == EAGAIN) return false;
        CHIME_CHECK_USE(errno == EINTR,
                        "an event descriptor is open while it is drained: leave what poll_fd() gives open");
    }
    return true;
}

}  // namespace chime::inline v0::base
