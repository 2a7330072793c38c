// SPDX-License-Identifier: MIT
#include "runtime/cpu_pool.hpp"

#include <system_error>
#include <utility>

namespace chime::inline v0 {

cpu_pool::cpu_pool(std::unique_ptr<state> made) noexcept : state_(std::move(made)) {}

cpu_pool::~cpu_pool() = default;

unsigned cpu_pool::thread_count() const noexcept {
    const base::lock_guard lock(state_->mutex);
    return static_cast<unsigned>(state_->threads.size());
}

/// Without the lock, which in a forked child nobody may ever give back: for whoever knows that nobody submits.
bool cpu_pool::has_threads() const noexcept CHIME_NOT_ANALYSED {
    return !state_->threads.empty();
}

void cpu_pool::state::work() noexcept {
    base::name_this_thread("chime-pool");
    base::unique_lock lock(mutex);
    for (;;) {
        something_to_do.wait(lock, [this]() CHIME_REQUIRES(mutex) { return first != nullptr || is_closed; });
        if (first == nullptr) return;
        detail::pool_job_base* const job = first;
        first = job->next;
        lock.unlock();
        job->run();
        job->drop_function();  // On this thread, before anybody is told.
        job->ended.complete();
        job->drop_reference();
        home->drop_outside_work();
        lock.lock();
    }
}

/// Throws std::system_error when not even one could be started.
void cpu_pool::state::start_threads() {
    const unsigned count = wanted_threads != 0 ? wanted_threads : base::usable_processors();
    threads.reserve(count);
    while (threads.size() < count) {
        try {
            threads.emplace_back([this] { work(); });
        } catch (const std::system_error&) {
            if (threads.empty()) throw;
            return;  // Fewer will do.
        }
    }
}

/// There are threads, and jobs are taken. Throws std::system_error.
void cpu_pool::open() {
    state& mine = *state_;
    const base::lock_guard lock(mine.mutex);
    if (mine.is_closed) detail::refuse(errc::stopped, "chime::cpu_pool::submit: the context is being destroyed");
    if (mine.threads.empty()) mine.start_threads();
}

bool cpu_pool::try_open() {
    state& mine = *state_;
    const base::lock_guard lock(mine.mutex);
    if (mine.is_closed) return false;
    try {
        if (mine.threads.empty()) mine.start_threads();
    } catch (const std::system_error&) {
        return false;
    }
    return true;
}

/// Also when the pool was closed since it was open: only a job that runs can come here then, and its thread takes this one
/// before it ends.
void cpu_pool::enqueue(detail::pool_job_base& job) noexcept {
    state& mine = *state_;
    const detail::crew::visit visiting(*mine.home);  // The job may let the loop end before we have rung.
    {
        const base::lock_guard lock(mine.mutex);
        job.add_reference();
        job.next = nullptr;
        if (mine.first == nullptr) {
            mine.first = &job;
        } else {
            mine.last->next = &job;
        }
        mine.last = &job;
        mine.home->add_outside_work();
    }
    mine.something_to_do.notify_one();
}

/// Waits for what runs, drops what waits; but for what a job that runs has submitted last, which its thread may still take.
void cpu_pool::close() noexcept {
    state& mine = *state_;
    detail::pool_job_base* dropped = nullptr;
    std::vector<base::thread> leaving;
    {
        const base::lock_guard lock(mine.mutex);
        mine.is_closed = true;
        dropped = std::exchange(mine.first, nullptr);
        leaving.swap(mine.threads);
    }
    mine.something_to_do.notify_all();
    while (dropped != nullptr) {
        detail::pool_job_base* const job = std::exchange(dropped, dropped->next);
        job->drop_function();
        job->ended.complete();
        job->drop_reference();
        mine.home->drop_outside_work();
    }
    for (base::thread& each : leaving) each.join();
}

}  // namespace chime::inline v0
