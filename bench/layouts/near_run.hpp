// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace chime_bench::layouts {

/// The timers of the current tick, by (deadline, arming number): a sorted run of those that the wheel held, and
/// a heap of those that came later.
class near_run {
 public:
    struct entry {
        std::uint64_t deadline_ns;
        std::uint64_t number;
        std::uint32_t index;
        std::uint32_t stamp;
    };

    /// For the timers of a tick that is being loaded; sort() comes after the last.
    void load(const entry& it) { run_.push_back(it); }
    void sort() { std::sort(run_.begin(), run_.end(), fires_later); }

    /// For a timer that is armed into the current tick, or before it.
    void insert(const entry& it) {
        heap_.push_back(it);
        std::push_heap(heap_.begin(), heap_.end(), fires_later);
    }

    [[nodiscard]] bool empty() const noexcept { return run_.empty() && heap_.empty(); }
    [[nodiscard]] const entry& first() const { return heap_is_next() ? heap_.front() : run_.back(); }

    void pop() {
        if (heap_is_next()) {
            std::pop_heap(heap_.begin(), heap_.end(), fires_later);
            heap_.pop_back();
        } else {
            run_.pop_back();
        }
    }

 private:
    static bool fires_later(const entry& a, const entry& b) noexcept {
        return a.deadline_ns != b.deadline_ns ? a.deadline_ns > b.deadline_ns : a.number > b.number;
    }

    [[nodiscard]] bool heap_is_next() const {
        return run_.empty() || (!heap_.empty() && fires_later(run_.back(), heap_.front()));
    }

    std::vector<entry> run_;  // The next one is at the back.
    std::vector<entry> heap_;
};

}  // namespace chime_bench::layouts
