// SPDX-License-Identifier: MIT
#pragma once

#include "soak/promises.hpp"
#include "soak/rig.hpp"
#include "support/random.hpp"

#include <chime/cancel.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

namespace chime::soak {

/// A timer that one thread has armed, for another one to do with it as it likes.
struct gift {
    timer_handle handle;
    std::size_t home = 0;
    tracked_timer* timer = nullptr;
    std::uint64_t number = 0;
};

/// Where callers leave timers for each other.
class exchange {
 public:
    /// Leaves one and gets another; an empty one if there is none.
    gift swap(const gift& given);
    void clear();

 private:
    std::mutex mutex_;
    std::deque<gift> gifts_;
};

/// One thread that does everything a user can do, in an order drawn from a seed, and checks every answer. Used by that thread
/// alone; what it arms and spawns refers to it, so it outlives that.
class caller {
 public:
    caller(rig& used, promises& kept, exchange& shared, std::uint64_t seed)
        : rig_(used), kept_(kept), shared_(shared), random_(seed) {
        // What was armed, spawned or added is written down without memory.
        periodic_.reserve(most_periodic);
        joins_.reserve(most_joins);
        added_.reserve(most_added);
    }
    caller(const caller&) = delete;
    caller& operator=(const caller&) = delete;

    /// Refused for want of memory, it has done nothing, and the next one is tried.
    void step();

    /// Before everything comes to rest: lets go of what would go on for ever.
    void let_go();

    /// At rest: nothing that was armed here is pending.
    void check_at_rest();

 private:
    static constexpr std::size_t most_timers = 2'048;
    static constexpr std::size_t most_periodic = 16;
    static constexpr std::size_t most_joins = 64;
    static constexpr std::size_t most_added = 2;

    struct own_timer {
        tracked_timer tracked;
        timer_handle handle;
        std::size_t home = 0;
        std::uint64_t number = 0;
    };

    void step_or_throw();

    // Timers.
    void arm();
    template <class Function>
    void arm(own_timer& its, std::chrono::nanoseconds delay, time_point deadline, const Function& function);
    void fire(tracked_timer& its, std::uint64_t number);
    void cancel_one();
    void postpone_one();
    void trade();
    void use_foreign();
    void arm_with_token();
    void repeat();
    void post_one();

    // Tasks.
    void spawn_one();
    void spawn_something();
    void end_one_join();
    task<int> nap(std::size_t home, int naps, cancel_token token, std::uint64_t seed);
    task<> hop(std::uint64_t seed);
    task<> compute(std::size_t loop, int number);

    // Trouble.
    void get_stuck();
    void change_workers();
    void rest();

    [[nodiscard]] std::size_t some_home() { return random_.below(rig::homes); }
    [[nodiscard]] std::chrono::nanoseconds some_delay();
    [[nodiscard]] own_timer& some_timer() { return mine_[random_.below(most_timers)]; }
    void note_end(cancel_result answer, tracked_timer& its, std::uint64_t number);

    rig& rig_;
    promises& kept_;
    exchange& shared_;
    test::random_source random_;
    std::array<own_timer, most_timers> mine_;
    std::vector<std::pair<std::size_t, timer_handle>> periodic_;
    std::vector<join_handle<int>> joins_;
    std::vector<worker_id> added_;
    cancel_source source_;
    std::atomic<std::int64_t> posted_{0};
    std::atomic<std::int64_t> tasks_{0};
};

}  // namespace chime::soak
