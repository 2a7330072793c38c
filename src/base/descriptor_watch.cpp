// SPDX-License-Identifier: MIT
#include "base/descriptor_watch.hpp"

#include <cerrno>
#include <system_error>

#include <sys/epoll.h>

namespace chime::inline v0::base {

descriptor watch_either(int first, int second) {
    descriptor watch(::epoll_create1(EPOLL_CLOEXEC));
    if (!watch)
        throw std::system_error(errno, std::generic_category(), "chime: no epoll instance to be polled through");
    for (const int watched : {first, second}) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = watched;
        if (::epoll_ctl(watch.get(), EPOLL_CTL_ADD, watched, &event) != 0) {
            throw std::system_error(errno, std::generic_category(), "chime: a descriptor cannot be watched");
        }
    }
    return watch;
}

}  // namespace chime::inline v0::base
