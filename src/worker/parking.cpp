// SPDX-License-Identifier: MIT
#include "worker/parking.hpp"

namespace chime::inline v0::detail {

void parking::sleep(time_point deadline) noexcept {
    // Whatever the answer, the loop looks at everything again [park: sleep].
    static_cast<void>(base::futex_wait(bell_, ticket_, deadline));
}

void parking::ring() noexcept {
    // Release is not needed for the work, which was published before; the number alone tells the kernel not to
    // sleep [park: ring].
    bell_.fetch_add(1, base::memory_order_relaxed);
    base::futex_wake_one(bell_);
    // Acquire: pairs with the release in descriptor().
    if (const descriptors* const both = descriptors_.load(base::memory_order_acquire)) both->event.signal();
}

int parking::descriptor() {
    if (!own_descriptors_) {
        own_descriptors_ = std::make_unique<descriptors>();
        descriptors_.store(own_descriptors_.get(), base::memory_order_release);  // Pairs with ring().
    }
    return own_descriptors_->either.get();
}

void parking::set_descriptor(time_point deadline, bool ready) noexcept {
    own_descriptors_->timer.set(deadline);
    if (ready) own_descriptors_->event.signal();
}

void parking::drain_descriptor() noexcept {
    own_descriptors_->event.drain();
    own_descriptors_->timer.drain();
}

}  // namespace chime::inline v0::detail
