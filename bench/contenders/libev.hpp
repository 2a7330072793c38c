// SPDX-License-Identifier: MIT
#pragma once

#include "support/contender.hpp"

// Without its old names, which are libevent's too.
#define EV_COMPAT3 0
#include <ev.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace chime_bench {

/// ev_timer in a loop of its own, one per slot; libev keeps them in a 4-heap with the deadlines beside the pointers.
class libev {
 public:
    static constexpr std::string_view name = "libev";
    static constexpr std::string_view clock_reads = "per turn";
    static constexpr precision keeps = precision::rounded;  // Times are doubles, in seconds.
    static std::string version() {
        return std::to_string(ev_version_major()) + '.' + std::to_string(ev_version_minor());
    }

    libev(std::size_t count, firing_log& log) : log_(log), loop_(ev_loop_new(EVFLAG_AUTO)), timers_(count) {
        ev_set_userdata(loop_, this);
        for (ev_timer& timer : timers_) ev_timer_init(&timer, &libev::on_due, 0., 0.);
    }

    ~libev() {
        for (ev_timer& timer : timers_) ev_timer_stop(loop_, &timer);
        ev_loop_destroy(loop_);
    }

    libev(const libev&) = delete;
    libev& operator=(const libev&) = delete;

    void arm(slot_index slot, std::chrono::nanoseconds delay) {
        ev_timer& timer = timers_[slot];
        ev_timer_set(&timer, seconds(delay), 0.);
        ev_timer_start(loop_, &timer);
    }

    bool cancel(slot_index slot) {
        ev_timer& timer = timers_[slot];
        if (!ev_is_active(&timer)) return false;
        ev_timer_stop(loop_, &timer);
        return true;
    }

    /// ev_timer_again() moves a timer inside the heap, which libev's manual recommends for idle timeouts.
    bool postpone(slot_index slot, std::chrono::nanoseconds delay) {
        ev_timer& timer = timers_[slot];
        if (!ev_is_active(&timer)) return false;
        timer.repeat = seconds(delay);
        ev_timer_again(loop_, &timer);
        timer.repeat = 0.;  // It is still to fire once.
        return true;
    }

    void prefetch_handle(slot_index slot) const { __builtin_prefetch(&timers_[slot]); }
    void prefetch_timer(slot_index) const {}  // Its place in the heap is not ours to see.

    void turn() { ev_run(loop_, EVRUN_NOWAIT); }
    void wait() { ev_run(loop_, EVRUN_ONCE); }

    template <class Beat>
    void run_beating(Beat beat) {
        do turn();
        while (beat());
    }

    [[nodiscard]] bool is_pending(slot_index slot) const { return ev_is_active(&timers_[slot]); }

    [[nodiscard]] std::string complaint() const { return {}; }

 private:
    static double seconds(std::chrono::nanoseconds delay) { return static_cast<double>(delay.count()) * 1e-9; }

    static void on_due(struct ev_loop* loop, ev_timer* timer, int) {
        auto& self = *static_cast<libev*>(ev_userdata(loop));
        self.log_.note(static_cast<slot_index>(timer - self.timers_.data()));
    }

    firing_log& log_;
    struct ev_loop* loop_;
    std::vector<ev_timer> timers_;
};

}  // namespace chime_bench
