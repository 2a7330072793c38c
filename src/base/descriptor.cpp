// SPDX-License-Identifier: MIT
#include "base/descriptor.hpp"

#include "base/check.hpp"

#include <cerrno>

#include <unistd.h>

namespace chime::inline v0::base {

void descriptor::reset(int fd) noexcept {
    const int closing = std::exchange(fd_, fd);
    if (closing == none) return;
    CHIME_CHECK(closing != fd, "a descriptor is not given to an owner that has it already");
    // On Linux the number is free again whatever close answers, so it is not tried twice. EBADF means that somebody
    // else closed a descriptor of ours, and the next victim would be a stranger's.
    CHIME_CHECK_USE(
        ::close(closing) == 0 || errno != EBADF,
        "a descriptor is closed by its owner alone: somebody has closed one of ours; leave what poll_fd() gives open");
}

}  // namespace chime::inline v0::base
