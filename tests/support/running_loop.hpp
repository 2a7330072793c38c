// SPDX-License-Identifier: MIT
#pragma once

#include <chime/io_context.hpp>

#include <atomic>
#include <thread>

namespace chime::test {

/// A loop in real time on a thread of its own, which a guard keeps going until it is joined.
class running_loop {
 public:
    running_loop() : thread_([this] { context_.run(); }) {}
    running_loop(const running_loop&) = delete;
    running_loop& operator=(const running_loop&) = delete;
    ~running_loop() { join(); }

    /// Lets it come to its end.
    void join() {
        guard_.reset();
        if (thread_.joinable()) thread_.join();
    }

    [[nodiscard]] io_context& operator*() noexcept { return context_; }
    [[nodiscard]] io_context* operator->() noexcept { return &context_; }
    [[nodiscard]] std::thread::id thread_id() const noexcept { return thread_.get_id(); }

 private:
    io_context context_;
    io_context::work_guard guard_{context_};
    std::thread thread_;
};

inline void wait_for(const std::atomic<bool>& flag) {
    while (!flag) std::this_thread::yield();
}

}  // namespace chime::test
