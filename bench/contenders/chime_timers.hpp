// SPDX-License-Identifier: MIT
#pragma once

#include "support/contender.hpp"

#include <chime/io_context.hpp>
#include <chime/version.hpp>

#include <boost/context/fiber.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chime_bench {

/// chime::timers, as code that runs on the loop uses them: callbacks, handles, and a deadline that counts from the call.
///
/// A workload calls the contender; user code of chime is called by the loop. So the loop gets a stack of its own: each
/// turn runs, among whatever is due, one posted function that switches to the workload and returns when that wants the
/// next turn. Between two turns the workload is user code like any other.
class chime_timers {
 public:
    static constexpr std::string_view name = "chime.timers";
    static constexpr std::string_view clock_reads = "per callback, or 64 arms";
    static constexpr precision keeps = precision::exact;
    static std::string version() {
        return std::to_string(CHIME_VERSION_MAJOR) + '.' + std::to_string(CHIME_VERSION_MINOR) + '.' +
               std::to_string(CHIME_VERSION_PATCH);
    }

    chime_timers(std::size_t count, firing_log& log)
        : log_(log), handles_(count), loop_([this](boost::context::fiber&& workload) {
              workload_ = std::move(workload);
              context_.post([this] { switch_to_workload(); });
              while (!is_over_) context_.poll();
              return std::move(workload_);
          }) {
        turn();
    }
    chime_timers(const chime_timers&) = delete;
    chime_timers& operator=(const chime_timers&) = delete;

    ~chime_timers() {
        is_over_ = true;
        turn();
    }

    void arm(slot_index slot, std::chrono::nanoseconds delay) {
        handles_[slot] = timers_.after(delay, [this, slot] { log_.note(slot); });
    }

    bool cancel(slot_index slot) { return timers_.cancel(handles_[slot]) == chime::cancel_result::cancelled; }

    bool postpone(slot_index slot, std::chrono::nanoseconds delay) { return timers_.postpone(handles_[slot], delay); }

    void prefetch_handle(slot_index slot) const { __builtin_prefetch(&handles_[slot]); }
    void prefetch_timer(slot_index slot) const { timers_.prefetch(handles_[slot]); }

    void turn() { loop_ = std::move(loop_).resume(); }

    [[nodiscard]] bool is_pending(slot_index slot) const {
        // There is no call for this; whoever needs to know cancels. A postponement by nothing would move the deadline.
        return const_cast<chime_timers*>(this)->cancel(slot);
    }

    [[nodiscard]] std::string complaint() const {
        const chime::timer_stats stats = timers_.stats();
        if (stats.armed == stats.fired + stats.cancelled + stats.pending) return {};
        return "the counters do not add up";
    }

 private:
    void switch_to_workload() {
        workload_ = std::move(workload_).resume();
        if (!is_over_) context_.post([this] { switch_to_workload(); });
    }

    firing_log& log_;
    chime::io_context context_;
    chime::timers& timers_ = context_.timers();
    std::vector<chime::timer_handle> handles_;
    bool is_over_ = false;
    boost::context::fiber workload_;
    boost::context::fiber loop_;
};

}  // namespace chime_bench
