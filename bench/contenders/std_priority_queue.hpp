// SPDX-License-Identifier: MIT
#pragma once

#include "support/contender.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

namespace chime_bench {

/// The other timer queue that programs start with: a std::priority_queue under a mutex, with lazy deletion.
///
/// A cancelled entry stays in the heap until it comes to the top; when more than half of the heap is such garbage
/// it is swept, since otherwise the queue of a program that cancels nearly everything grows without bound.
/// It is spared the clock: deadlines count from the time of the last turn, as for chime.wheel.
class std_priority_queue {
 public:
    static constexpr std::string_view name = "std.priority_queue";
    static constexpr std::string_view clock_reads = "per turn";
    static constexpr precision keeps = precision::exact;
    static std::string version() { return "libstdc++ " + std::to_string(__GNUC__); }

    std_priority_queue(std::size_t count, firing_log& log)
        : log_(log), armings_(count, not_pending), now_(std::chrono::steady_clock::now()) {}

    void arm(slot_index slot, std::chrono::nanoseconds delay) {
        const std::lock_guard lock(mutex_);
        ++live_;
        push(slot, delay);
    }

    bool cancel(slot_index slot) {
        const std::lock_guard lock(mutex_);
        if (armings_[slot] == not_pending) return false;
        armings_[slot] = not_pending;
        --live_;
        return true;
    }

    bool postpone(slot_index slot, std::chrono::nanoseconds delay) {
        const std::lock_guard lock(mutex_);
        if (armings_[slot] == not_pending) return false;
        push(slot, delay);
        return true;
    }

    void turn() {
        const auto now = std::chrono::steady_clock::now();
        const std::lock_guard lock(mutex_);
        now_ = std::max(now_, now);  // Another thread may have read the clock later and come first.
        while (!queue_.empty() && queue_.top().deadline <= now_) {
            const entry due = queue_.top();
            queue_.pop();
            if (armings_[due.slot] != due.arming) continue;
            armings_[due.slot] = not_pending;
            --live_;
            log_.note(due.slot);
        }
    }

    [[nodiscard]] bool is_pending(slot_index slot) const { return armings_[slot] != not_pending; }

    [[nodiscard]] std::string complaint() const { return {}; }

 private:
    static constexpr std::uint64_t not_pending = 0;
    static constexpr std::size_t garbage_allowed = 4096;

    struct entry {
        std::chrono::steady_clock::time_point deadline;
        std::uint64_t arming;
        slot_index slot;
    };

    struct fires_later {
        bool operator()(const entry& a, const entry& b) const noexcept {
            return a.deadline != b.deadline ? a.deadline > b.deadline : a.arming > b.arming;
        }
    };

    struct sweepable_queue : std::priority_queue<entry, std::vector<entry>, fires_later> {
        template <class Predicate>
        void sweep(Predicate is_garbage) {
            std::erase_if(c, is_garbage);
            std::make_heap(c.begin(), c.end(), comp);
        }
    };

    void push(slot_index slot, std::chrono::nanoseconds delay) {
        armings_[slot] = ++last_arming_;
        queue_.push({now_ + delay, last_arming_, slot});
        if (queue_.size() > 2 * live_ + garbage_allowed) {
            queue_.sweep([this](const entry& it) { return armings_[it.slot] != it.arming; });
        }
    }

    firing_log& log_;
    std::mutex mutex_;
    sweepable_queue queue_;
    std::vector<std::uint64_t> armings_;
    std::uint64_t last_arming_ = not_pending;
    std::size_t live_ = 0;
    std::chrono::steady_clock::time_point now_;
};

}  // namespace chime_bench
