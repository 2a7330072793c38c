// SPDX-License-Identifier: MIT
#pragma once

#include "work.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace chime_demo {

/// Two threads that are no workers, with a timeout for every request. One arms it; the other, where the answer comes in,
/// cancels it a moment later, and the other way round.
///
/// Side is the timers of one side:
/// - batch: some timeouts, side by side; may be moved.
/// - make_batch(count): an empty one.
/// - arm(batch&, deadline): one more, which tells the witness when it expires.
/// - cancel(batch&): cancels all of them, from any thread; how many will never expire because of it.
template <class Side>
class clients {
 public:
    clients(Side& side, const work& work, witness& seen)
        : side_(side), work_(work), seen_(seen), ticks_(static_cast<std::size_t>(work.longest_sleep * 8 / 10 / tick)) {}
    clients(const clients&) = delete;
    clients& operator=(const clients&) = delete;
    ~clients() { wait(); }

    void start() {
        for (std::size_t which = 0; which < threads_.size(); ++which) {
            threads_[which] = std::thread([this, which] { run(which); });
        }
    }

    [[nodiscard]] bool are_done() const noexcept { return done_ == threads_.size(); }

    void wait() {
        for (std::thread& each : threads_) {
            if (each.joinable()) each.join();
        }
    }

 private:
    static constexpr std::chrono::milliseconds tick{1};
    static constexpr std::chrono::milliseconds time_to_answer{25};

    struct sent {
        clock::time_point answer_at;
        typename Side::batch timeouts;
    };

    /// From one thread to the other.
    struct channel {
        std::mutex mutex;
        std::deque<sent> queue;
        bool is_over = false;
    };

    void run(std::size_t which) {
        channel& out = channels_[which];
        channel& in = channels_[1 - which];
        clock::time_point next = clock::now();
        for (std::size_t now = 0; now < ticks_ && !interrupted; ++now) {
            send(out, which, now);
            answer(in);
            next += tick;
            std::this_thread::sleep_until(next);  // Who is late does not wait, until all is as it should be.
        }
        {
            const std::lock_guard lock(out.mutex);
            out.is_over = true;
        }
        while (answer(in)) std::this_thread::sleep_for(tick);
        ++done_;
    }

    /// The timeouts of this tick. Together the threads arm as many as there are sleepers, each every other one.
    void send(channel& out, std::size_t which, std::size_t now) {
        const std::size_t first = work_.sleepers * now / ticks_;
        const std::size_t last = work_.sleepers * (now + 1) / ticks_;
        auto timeouts = side_.make_batch((last - first) / 2 + 1);
        std::uint64_t count = 0;
        for (std::size_t number = first + (first + which) % 2; number < last; number += 2) {
            side_.arm(timeouts, clock::now() + work::timeout_of(number));
            ++count;
        }
        if (count == 0) return;
        seen_.armed(count);
        const std::lock_guard lock(out.mutex);
        out.queue.push_back({clock::now() + time_to_answer, std::move(timeouts)});
    }

    /// Cancels what is old enough. False: nothing will come any more.
    bool answer(channel& in) {
        for (;;) {
            std::optional<sent> oldest;
            {
                const std::lock_guard lock(in.mutex);
                if (in.queue.empty()) return !in.is_over;
                if (!interrupted && in.queue.front().answer_at > clock::now()) return true;
                oldest.emplace(std::move(in.queue.front()));
                in.queue.pop_front();
            }
            seen_.cancelled(side_.cancel(oldest->timeouts));
        }
    }

    Side& side_;
    const work& work_;
    witness& seen_;
    std::size_t ticks_;
    std::array<channel, 2> channels_;
    std::atomic<std::size_t> done_{0};
    std::array<std::thread, 2> threads_;
};

}  // namespace chime_demo
