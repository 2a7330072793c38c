// SPDX-License-Identifier: MIT
#pragma once

#include "base/mutex.hpp"
#include "base/thread.hpp"
#include "worker/crew.hpp"

#include <chime/cpu_pool.hpp>

#include <vector>

namespace chime::inline v0 {

/// The queue and the threads. Jobs are linked through themselves.
struct cpu_pool::state {
    detail::crew* home;
    unsigned wanted_threads;

    mutable base::mutex mutex;
    base::condition something_to_do;
    detail::pool_job_base* first = nullptr;
    detail::pool_job_base* last = nullptr;
    bool is_closed = false;
    std::vector<base::thread> threads;

    void work() noexcept;
    void start_threads();
};

}  // namespace chime::inline v0
