// SPDX-License-Identifier: MIT
#pragma once

#include <cstdlib>
#include <system_error>

#include <poll.h>
#include <sys/resource.h>

namespace chime::test {

inline bool is_readable(int fd, int timeout_ms = 0) {
    pollfd entry{fd, POLLIN, 0};
    return ::poll(&entry, 1, timeout_ms) == 1;
}

/// For a process of its own, which it ends: with 0 if the constructor refuses with the right error while no new
/// descriptor can be had.
template <class Descriptor>
[[noreturn]] void construct_without_descriptors() {
    // A sanitizer needs a descriptor when it meets the category of an error for the first time.
    if (std::make_error_code(std::errc::too_many_files_open).message().empty()) std::_Exit(3);
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    rlimit none = before;
    none.rlim_cur = 0;
    ::setrlimit(RLIMIT_NOFILE, &none);
    try {
        const Descriptor refused;
    } catch (const std::system_error& error) {
        ::setrlimit(RLIMIT_NOFILE, &before);  // For the sanitizer again.
        std::_Exit(error.code() == std::errc::too_many_files_open ? 0 : 2);
    }
    std::_Exit(1);
}

}  // namespace chime::test
