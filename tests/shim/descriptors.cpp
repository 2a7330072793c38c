// SPDX-License-Identifier: MIT
#include "base/descriptor.hpp"
#include "base/descriptor_watch.hpp"
#include "base/event_descriptor.hpp"
#include "base/timer_descriptor.hpp"
#include "shim/engine/sync.hpp"

// The descriptors of the test build. Here and not with the rest of the platform, so that the engine sees who reads them without
// knowing of who has made them.

namespace chime::inline v0::base {

void descriptor::reset(int fd) noexcept {
    if (fd_ != none) shim::close_descriptor(fd_);
    fd_ = fd;
}

event_descriptor::event_descriptor() : descriptor_(shim::new_event()) {}

void event_descriptor::signal() const noexcept {
    shim::signal_event(descriptor_.get());
}

bool event_descriptor::drain() const noexcept {
    return shim::drain(descriptor_.get());
}

timer_descriptor::timer_descriptor() : descriptor_(shim::new_timer()) {}

void timer_descriptor::set(time_point deadline) const noexcept {
    shim::set_timer(descriptor_.get(), deadline);
}

bool timer_descriptor::drain() const noexcept {
    return shim::drain(descriptor_.get());
}

descriptor watch_either(int first, int second) {
    return descriptor(shim::new_watch(first, second));
}

}  // namespace chime::inline v0::base
