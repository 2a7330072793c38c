// SPDX-License-Identifier: MIT
#pragma once

#include "support/contender.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace chime_bench {

/// The timer queue that most programs start with: a std::multimap from deadline to timer, under a mutex.
///
/// It is spared the clock: deadlines count from the time of the last turn, as for chime.wheel.
class std_multimap {
 public:
    static constexpr std::string_view name = "std.multimap";
    static constexpr std::string_view clock_reads = "per turn";
    static constexpr precision keeps = precision::exact;  // Equal keys keep the order of insertion.
    static std::string version() { return "libstdc++ " + std::to_string(__GNUC__); }

    std_multimap(std::size_t count, firing_log& log)
        : log_(log), places_(count, queue_.end()), now_(std::chrono::steady_clock::now()) {}

    void arm(slot_index slot, std::chrono::nanoseconds delay) {
        const std::lock_guard lock(mutex_);
        places_[slot] = queue_.emplace(now_ + delay, slot);
    }

    bool cancel(slot_index slot) {
        const std::lock_guard lock(mutex_);
        if (places_[slot] == queue_.end()) return false;
        queue_.erase(places_[slot]);
        places_[slot] = queue_.end();
        return true;
    }

    /// The node moves to its new place, without going through the allocator.
    bool postpone(slot_index slot, std::chrono::nanoseconds delay) {
        const std::lock_guard lock(mutex_);
        if (places_[slot] == queue_.end()) return false;
        auto node = queue_.extract(places_[slot]);
        node.key() = now_ + delay;
        places_[slot] = queue_.insert(std::move(node));
        return true;
    }

    void turn() {
        const auto now = std::chrono::steady_clock::now();
        const std::lock_guard lock(mutex_);
        now_ = std::max(now_, now);  // Another thread may have read the clock later and come first.
        while (!queue_.empty() && queue_.begin()->first <= now_) {
            const slot_index slot = queue_.begin()->second;
            queue_.erase(queue_.begin());
            places_[slot] = queue_.end();
            log_.note(slot);
        }
    }

    [[nodiscard]] bool is_pending(slot_index slot) const { return places_[slot] != queue_.end(); }

    [[nodiscard]] std::string complaint() const { return {}; }

 private:
    using queue = std::multimap<std::chrono::steady_clock::time_point, slot_index>;

    firing_log& log_;
    std::mutex mutex_;
    queue queue_;
    std::vector<queue::const_iterator> places_;
    std::chrono::steady_clock::time_point now_;
};

}  // namespace chime_bench
