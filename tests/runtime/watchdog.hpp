// SPDX-License-Identifier: MIT
//
// For tests on real threads: something that ends a test which hangs, and a loop on a thread of its own.
#pragma once

#include "support/time_limit.hpp"

#include <chime/io_context.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace chime::test {

/// Tells where all threads stand, and ends the program, when what it watches shows no sign of life for too long: a lost wake-up is a hang.
class watchdog {
 public:
    explicit watchdog(std::string watched, std::chrono::seconds limit = std::chrono::seconds{60})
        : thread_([this, name = std::move(watched), limit] { watch(name, limit); }) {}
    watchdog(const watchdog&) = delete;
    watchdog& operator=(const watchdog&) = delete;
    ~watchdog() {
        {
            const std::lock_guard lock(mutex_);
            is_over_ = true;
        }
        over_.notify_one();
        thread_.join();
    }

    /// A sign of life. Without any, the limit is for all of it.
    void pat() noexcept { signs_.fetch_add(1, std::memory_order_relaxed); }

 private:
    void watch(const std::string& name, std::chrono::seconds limit) {
        std::unique_lock lock(mutex_);
        std::uint64_t seen = 0;
        for (auto quiet = std::chrono::seconds{0}; quiet < limit; ++quiet) {
            const auto look_again = std::chrono::system_clock::now() + std::chrono::seconds{1};
            if (over_.wait_until(lock, look_again, [this] { return is_over_; })) return;
            if (const std::uint64_t now = signs_.load(std::memory_order_relaxed); now != seen) {
                seen = now;
                quiet = std::chrono::seconds{0};
            }
        }
        const std::string why =
            "no sign of life for " + std::to_string(limit.count()) + " s, after " + std::to_string(seen);
        tell_where_threads_stand_and_end(name.c_str(), why.c_str());
    }

    std::mutex mutex_;
    std::condition_variable over_;
    std::atomic<std::uint64_t> signs_{0};
    bool is_over_ = false;
    std::thread thread_;
};

/// Runs a context on a thread of its own, until finish() and until it is out of work.
class loop_thread {
 public:
    explicit loop_thread(io_context& driven)
        : context_(driven), guard_(driven.make_work_guard()), thread_([this] { context_.run(); }) {}
    loop_thread(const loop_thread&) = delete;
    loop_thread& operator=(const loop_thread&) = delete;
    ~loop_thread() { finish(); }

    void finish() {
        guard_.reset();
        if (thread_.joinable()) thread_.join();
    }

    /// Returns when the loop has made no turn for a while, because it sleeps.
    void wait_until_parked() {
        std::uint64_t seen = 0;
        for (;;) {
            const timer_stats sums = context_.timers().stats();
            if (sums.parks != 0 && sums.turns == seen) return;
            seen = sums.turns;
            std::this_thread::sleep_for(std::chrono::milliseconds{2});
        }
    }

 private:
    io_context& context_;
    io_context::work_guard guard_;
    std::thread thread_;
};

/// Burns about `rounds` steps that no compiler removes.
inline void spin(std::uint64_t rounds) {
    for (std::uint64_t round = 0; round < rounds; ++round) {
        asm volatile("" ::: "memory");
    }
}

/// Waits until something becomes true: spins for a moment, and then leaves the processor to whoever is to make it true.
template <class Predicate>
void await_that(const Predicate& holds) {
    for (unsigned looks = 0; !holds(); ++looks) {
        if (looks > 4'000 && looks % 256 == 0) std::this_thread::sleep_for(std::chrono::microseconds{1});
    }
}

}  // namespace chime::test
