// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

namespace chime::inline v0::base {

/// Owns one file descriptor and closes it. Belongs to one owner at a time; a value-initialised one owns nothing.
class descriptor {
 public:
    static constexpr int none = -1;

    descriptor() noexcept = default;
    explicit descriptor(int fd) noexcept : fd_(fd) {}
    descriptor(descriptor&& other) noexcept : fd_(other.release()) {}
    descriptor& operator=(descriptor&& other) noexcept {
        reset(other.release());
        return *this;
    }
    ~descriptor() { reset(); }

    [[nodiscard]] int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ != none; }

    /// Gives the descriptor away without closing it.
    [[nodiscard]] int release() noexcept { return std::exchange(fd_, none); }

    /// Closes what is owned, if anything, and owns `fd` from now on.
    void reset(int fd = none) noexcept;

 private:
    int fd_ = none;
};

}  // namespace chime::inline v0::base
