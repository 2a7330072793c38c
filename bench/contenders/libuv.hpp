// SPDX-License-Identifier: MIT
#pragma once

#include "support/contender.hpp"

#include <uv.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chime_bench {

/// uv_timer_t in a loop of its own, one per slot; libuv keeps them in a binary heap of pointers.
class libuv {
 public:
    static constexpr std::string_view name = "libuv";
    static constexpr std::string_view clock_reads = "per turn";
    static constexpr precision keeps = precision::rounded;
    static std::string version() { return uv_version_string(); }

    libuv(std::size_t count, firing_log& log) : log_(log), timers_(count) {
        uv_loop_init(&loop_);
        loop_.data = this;
        for (uv_timer_t& timer : timers_) uv_timer_init(&loop_, &timer);
    }

    ~libuv() {
        for (uv_timer_t& timer : timers_) uv_close(reinterpret_cast<uv_handle_t*>(&timer), nullptr);
        uv_run(&loop_, UV_RUN_DEFAULT);
        uv_loop_close(&loop_);
    }

    libuv(const libuv&) = delete;
    libuv& operator=(const libuv&) = delete;

    void arm(slot_index slot, std::chrono::nanoseconds delay) { start(timers_[slot], delay); }

    bool cancel(slot_index slot) {
        if (!is_pending(slot)) return false;
        uv_timer_stop(&timers_[slot]);
        return true;
    }

    bool postpone(slot_index slot, std::chrono::nanoseconds delay) {
        if (!is_pending(slot)) return false;
        start(timers_[slot], delay);
        return true;
    }

    void turn() { uv_run(&loop_, UV_RUN_NOWAIT); }
    void wait() { uv_run(&loop_, UV_RUN_ONCE); }

    template <class Beat>
    void run_beating(Beat beat) {
        do turn();
        while (beat());
    }

    [[nodiscard]] bool is_pending(slot_index slot) const {
        return uv_is_active(reinterpret_cast<const uv_handle_t*>(&timers_[slot])) != 0;
    }

    [[nodiscard]] std::string complaint() const { return {}; }

 private:
    static void start(uv_timer_t& timer, std::chrono::nanoseconds delay) {
        uv_timer_start(&timer, &libuv::on_due,
                       static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(delay).count()), 0);
    }

    static void on_due(uv_timer_t* timer) {
        auto& self = *static_cast<libuv*>(timer->loop->data);
        self.log_.note(static_cast<slot_index>(timer - self.timers_.data()));
    }

    firing_log& log_;
    uv_loop_t loop_{};
    std::vector<uv_timer_t> timers_;
};

}  // namespace chime_bench
