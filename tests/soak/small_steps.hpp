// SPDX-License-Identifier: MIT
#pragma once

#include "runtime/watchdog.hpp"
#include "support/random.hpp"

#include <atomic>
#include <cstdint>
#include <new>
#include <thread>

// What callers do on the way.

namespace chime::soak {

/// One more, that counts itself out in the end; none, if it is refused.
template <class Attempt>
void count_unless_refused(std::atomic<std::int64_t>& count, const Attempt& attempt) {
    count.fetch_add(1);
    try {
        attempt();
    } catch (const std::bad_alloc&) {
        count.fetch_sub(1);
        throw;
    }
}

/// Counts a task out when it comes to its end, in whatever way.
class end_of_task {
 public:
    explicit end_of_task(std::atomic<std::int64_t>& count) noexcept : count_(count) {}
    end_of_task(const end_of_task&) = delete;
    end_of_task& operator=(const end_of_task&) = delete;
    ~end_of_task() { count_.fetch_sub(1); }

 private:
    std::atomic<std::int64_t>& count_;
};

/// Random trouble for whoever runs it: mostly none.
inline void linger(test::random_source& random) {
    if (random.one_in(4)) std::this_thread::yield();
    if (random.one_in(200)) test::spin(random.below(20'000));
}

}  // namespace chime::soak
