// SPDX-License-Identifier: MIT
#pragma once

#include "support/contender.hpp"
#include "support/plan.hpp"
#include "support/shared_contender.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace chime_bench {

/// A timer queue under one mutex, used by T threads: each runs a lane, and between two steps fires what is due.
template <class Queue>
class shared_queue {
 public:
    static constexpr std::string_view name = Queue::name;
    static constexpr std::string_view clock_reads = Queue::clock_reads;
    static std::string version() { return Queue::version(); }

    class lane_timers {
     public:
        lane_timers(Queue& queue, std::size_t first) : queue_(queue), first_(static_cast<slot_index>(first)) {}

        void arm(slot_index slot, std::chrono::nanoseconds delay) { queue_.arm(first_ + slot, delay); }
        bool cancel(slot_index slot) { return queue_.cancel(first_ + slot); }
        bool postpone(slot_index slot, std::chrono::nanoseconds delay) { return queue_.postpone(first_ + slot, delay); }

     private:
        Queue& queue_;
        slot_index first_;
    };

    shared_queue(unsigned lanes, std::size_t timers_per_lane) : queue_(lanes * timers_per_lane, log_) {
        for (unsigned which = 0; which < lanes; ++which) lanes_.emplace_back(queue_, which * timers_per_lane);
    }

    lane_timers& lane(unsigned which) { return lanes_[which]; }

    template <class Step>
    void run(Step step) {
        std::vector<std::thread> threads;
        for (unsigned which = 0; which < lanes_.size(); ++which) {
            threads.emplace_back([this, &step, which] {
                while (step(which)) queue_.turn();
            });
        }
        for (std::thread& each : threads) each.join();
    }

    [[nodiscard]] std::uint64_t fired() const { return log_.fired(); }
    [[nodiscard]] std::string complaint() const { return queue_.complaint(); }

 private:
    firing_log log_{1024};
    Queue queue_;
    std::vector<lane_timers> lanes_;
};

/// The same queue with two threads: one arms, another cancels. There is nothing left to do afterwards.
template <class Queue>
class remote_queue {
 public:
    static constexpr std::string_view name = Queue::name;
    static constexpr std::string_view clock_reads = Queue::clock_reads;
    static std::string version() { return Queue::version(); }

    explicit remote_queue(std::size_t timers) : queue_(timers, log_) {}

    void arm_all(const std::vector<std::chrono::nanoseconds>& delays) {
        std::thread([&] {
            queue_.turn();
            for (std::size_t slot = 0; slot < delays.size(); ++slot) {
                queue_.arm(static_cast<slot_index>(slot), delays[slot]);
            }
        }).join();
    }

    void cancel(slot_index slot) {
        if (queue_.cancel(slot)) ++cancelled_;
    }
    std::uint64_t settle() { return std::exchange(cancelled_, 0); }
    [[nodiscard]] std::string complaint() const { return queue_.complaint(); }

 private:
    firing_log log_{1024};
    Queue queue_;
    std::uint64_t cancelled_ = 0;
};

}  // namespace chime_bench
