// SPDX-License-Identifier: MIT
#pragma once

#include "contenders/chime_timers.hpp"
#include "support/contender.hpp"

#include <chime/io_context.hpp>

#include <chrono>
#include <string>
#include <string_view>

namespace chime_bench {

/// chime::timers on a loop that really sleeps: the workload is outside of it and waits in run_one().
class chime_loop {
 public:
    static constexpr std::string_view name = chime_timers::name;
    static constexpr std::string_view clock_reads = chime_timers::clock_reads;
    static std::string version() { return chime_timers::version(); }

    chime_loop(std::size_t, firing_log& log) : log_(log) {}

    void arm(slot_index slot, std::chrono::nanoseconds delay) {
        context_.timers().after(delay, [this, slot] { log_.note(slot); });
    }

    void wait() { context_.run_one(); }

    template <class Beat>
    void run_beating(Beat beat) {
        context_.restart();
        post_beat(beat);
        context_.run();
    }

 private:
    template <class Beat>
    void post_beat(Beat& beat) {
        context_.post([this, &beat] {
            if (beat()) {
                post_beat(beat);
            } else {
                context_.stop();
            }
        });
    }

    firing_log& log_;
    chime::io_context context_;
};

}  // namespace chime_bench
