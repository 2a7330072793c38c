// SPDX-License-Identifier: MIT
#pragma once

#include "support/contender.hpp"

#include <event2/event.h>
#include <event2/event_struct.h>

// libev declares enumerators of the same names; nothing here needs the macros.
#undef EV_TIMEOUT
#undef EV_READ
#undef EV_WRITE
#undef EV_SIGNAL
#undef EV_PERSIST

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace chime_bench {

/// struct event without a descriptor, one per slot; libevent keeps them in a binary heap of pointers.
///
/// Its lists for common timeouts (event_base_init_common_timeout) are not used: they are an extra interface for
/// programs whose timeouts are all alike, and few programs call it.
class libevent {
 public:
    static constexpr std::string_view name = "libevent";
    static constexpr std::string_view clock_reads = "coarse, per arm";
    static constexpr precision keeps = precision::rounded;
    static std::string version() { return event_get_version(); }

    libevent(std::size_t count, firing_log& log) : log_(log), base_(event_base_new()), slots_(count) {
        for (timer_slot& slot : slots_) {
            slot.self = this;
            event_assign(&slot.timer, base_, -1, 0, &libevent::on_due, &slot);
        }
    }

    ~libevent() {
        for (timer_slot& slot : slots_) event_del(&slot.timer);
        event_base_free(base_);
    }

    libevent(const libevent&) = delete;
    libevent& operator=(const libevent&) = delete;

    void arm(slot_index slot, std::chrono::nanoseconds delay) {
        slots_[slot].pending = true;
        add(slots_[slot].timer, delay);
    }

    bool cancel(slot_index slot) {
        timer_slot& it = slots_[slot];
        if (!it.pending) return false;
        it.pending = false;
        event_del(&it.timer);
        return true;
    }

    bool postpone(slot_index slot, std::chrono::nanoseconds delay) {
        if (!slots_[slot].pending) return false;
        add(slots_[slot].timer, delay);
        return true;
    }

    void turn() { event_base_loop(base_, EVLOOP_NONBLOCK); }
    void wait() { event_base_loop(base_, EVLOOP_ONCE); }

    template <class Beat>
    void run_beating(Beat beat) {
        do turn();
        while (beat());
    }

    [[nodiscard]] bool is_pending(slot_index slot) const { return slots_[slot].pending; }

    [[nodiscard]] std::string complaint() const { return {}; }

 private:
    struct timer_slot {
        event timer{};
        libevent* self = nullptr;
        bool pending = false;  // evtimer_pending() would ask the event under its lock; a program knows by itself.
    };

    static void add(event& timer, std::chrono::nanoseconds delay) {
        const auto delay_us = std::chrono::ceil<std::chrono::microseconds>(delay).count();
        timeval time{};
        time.tv_sec = delay_us / 1'000'000;
        time.tv_usec = delay_us % 1'000'000;
        event_add(&timer, &time);
    }

    static void on_due(evutil_socket_t, short, void* argument) {
        auto& it = *static_cast<timer_slot*>(argument);
        it.pending = false;
        it.self->log_.note(static_cast<slot_index>(&it - it.self->slots_.data()));
    }

    firing_log& log_;
    event_base* base_;
    std::vector<timer_slot> slots_;
};

}  // namespace chime_bench
