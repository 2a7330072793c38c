// SPDX-License-Identifier: MIT
#pragma once

#include "worker/worker.hpp"

namespace chime::inline v0::detail {

class worker::turn_scope {
 public:
    explicit turn_scope(worker& mine) noexcept : before_(exchange_current(&mine)) {
        // Relaxed: only the thread that wrote it asks whether it is its own.
        mine.turning_thread_.store(base::this_thread_mark(), base::memory_order_relaxed);
    }
    turn_scope(const turn_scope&) = delete;
    turn_scope& operator=(const turn_scope&) = delete;
    ~turn_scope() { exchange_current(before_); }

 private:
    worker* before_;  ///< A callback of one context may drive another one.
};

class worker::user_code {
 public:
    explicit user_code(worker& mine) noexcept : mine_(mine) {
        if (mine_.settings_.shows_progress) mine_.progress_.add();
        if (mine_.settings_.times_callbacks) began_ = mine_.now();
    }
    user_code(const user_code&) = delete;
    user_code& operator=(const user_code&) = delete;
    ~user_code() {
        if (mine_.unstamped_count_ != 0) mine_.stamp();
        if (mine_.settings_.shows_progress) mine_.progress_.add();
        if (mine_.settings_.times_callbacks) {
            const auto took = mine_.now() - began_;
            mine_.counters_.longest_callback_ns.raise_to(static_cast<std::uint64_t>(took.count()));
        }
    }

 private:
    worker& mine_;
    time_point began_{};
};

}  // namespace chime::inline v0::detail
