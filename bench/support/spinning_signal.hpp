// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <thread>

namespace chime_bench {

/// One thread tells another that it is through. Whoever waits does not go to sleep: to be woken up would take longer than
/// much of what is measured, and is no contender's doing.
class spinning_signal {
 public:
    void give() noexcept { is_given_.store(true, std::memory_order_release); }

    void wait() const noexcept {
        while (!is_given_.load(std::memory_order_acquire)) std::this_thread::yield();
    }

 private:
    std::atomic<bool> is_given_{false};
};

}  // namespace chime_bench
