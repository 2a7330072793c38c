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
    unsigned wanted_threads CHIME_GUARDED_BY(mutex);

    mutable base::mutex mutex;
    base::condition something_to_do;
    detail::pool_job_base* first CHIME_GUARDED_BY(mutex) = nullptr;
    detail::pool_job_base* last CHIME_GUARDED_BY(mutex) = nullptr;
    bool is_closed CHIME_GUARDED_BY(mutex) = false;
    std::vector<base::thread> threads CHIME_GUARDED_BY(mutex);

    void work() noexcept;
    void start_threads() CHIME_REQUIRES(mutex);
};

}  // namespace chime::inline v0
