// SPDX-License-Identifier: MIT
#pragma once

#include <chime/clock_source.hpp>
#include <chime/time.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace chime::soak {

/// The clock of the system, that jumps ahead when it is told to. For one loop, which it outlives; any thread.
class jumping_clock final : public clock_source {
 public:
    jumping_clock() : thread_([this] { watch(); }) {}
    jumping_clock(const jumping_clock&) = delete;
    jumping_clock& operator=(const jumping_clock&) = delete;
    ~jumping_clock() {
        is_over_ = true;
        thread_.join();
    }

    [[nodiscard]] time_point now() const noexcept override { return chime::clock::now() + ahead(); }
    [[nodiscard]] duration ahead() const noexcept { return duration{ahead_ns_.load()}; }

    void jump(duration by) noexcept {
        ahead_ns_.fetch_add(by.count());
        // Under the lock: the loop does not go away meanwhile, and being told does not block.
        const std::scoped_lock lock(mutex_);
        if (listener_ != nullptr) listener_->time_moved();
    }

    void attach(clock_listener& listener) override {
        const std::scoped_lock lock(mutex_);
        listener_ = &listener;
    }
    void detach(clock_listener&) noexcept override {
        const std::scoped_lock lock(mutex_);
        listener_ = nullptr;
    }
    void begin_run(clock_listener&) noexcept override {}
    void end_run(clock_listener&) noexcept override {}
    bool begin_idle(clock_listener&, time_point deadline, bool) noexcept override {
        idle_until_ns_ = deadline.time_since_epoch().count();
        return deadline <= now();
    }
    void end_idle(clock_listener&) noexcept override { idle_until_ns_ = never.time_since_epoch().count(); }

 private:
    /// Nobody else wakes a loop that follows another clock than the system's.
    void watch() noexcept {
        while (!is_over_) {
            std::this_thread::sleep_for(std::chrono::microseconds{200});
            if (idle_until_ns_.load() <= now().time_since_epoch().count()) jump(duration::zero());
        }
    }

    std::atomic<duration::rep> ahead_ns_{0};
    std::atomic<duration::rep> idle_until_ns_{never.time_since_epoch().count()};
    std::mutex mutex_;
    clock_listener* listener_ = nullptr;
    std::atomic<bool> is_over_{false};
    std::thread thread_;
};

}  // namespace chime::soak
