// SPDX-License-Identifier: MIT
#pragma once

#include "base/atomic.hpp"
#include "base/futex.hpp"
#include "base/mutex.hpp"
#include "base/thread.hpp"
#include "runtime/metronome.hpp"
#include "worker/crew.hpp"

#include <chime/runtime.hpp>

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

namespace chime::inline v0 {

/// At the same time.
inline constexpr unsigned most_workers = 512;

/// Drives the workers of a runtime that has no threads.
class runtime::simulator {
 public:
    simulator(const simulator&) = delete;
    simulator& operator=(const simulator&) = delete;

    /// Lets the workers have their turns until `is_over`, or until nothing moves any more.
    virtual void drive_until(const std::function<bool()>& is_over) = 0;

    static state& state_of(runtime& simulated) noexcept { return *simulated.state_; }

 protected:
    simulator() = default;
    ~simulator() = default;
};

/// The threads of a runtime, and who of them stays.
///
/// In this order: frames and closures that are destroyed with the crew may still ask for timers.
struct runtime::state {
    state(const runtime_config& wanted, simulator* driver);
    state(const state&) = delete;
    state& operator=(const state&) = delete;

    /// A worker and the thread that drives it.
    struct member {
        worker_id id = 0;
        detail::worker* worker = nullptr;
        unsigned processor = 0;                ///< Where it is to stay, if workers are pinned.
        timer_stats before;                    ///< What was counted by whoever had the seat before.
        std::uint64_t stuck_before = 0;        ///< The same.
        bool is_retiring = false;              ///< Under the lock.
        base::atomic<bool> is_leaving{false};  ///< It shall end its thread,
        base::atomic<bool> gives_away{false};  ///< and give away what it has before.
        base::thread thread;
        bool is_asleep = false;  ///< In a simulation, which has no threads.
    };

    simulator* const simulated_by;  ///< Null: every worker has a thread.
    const runtime_config config;
    const std::vector<unsigned> processors;  ///< To pin workers to: those that whoever made the runtime might use.
    chime::timers timers;
    chime::scheduler scheduler;
    detail::crew crew;

    mutable base::mutex mutex;
    using members_iterator = std::list<member>::iterator;
    std::list<member> members CHIME_GUARDED_BY(mutex);  ///< Those that run, in the order of their numbers.
    base::condition changed;                            ///< One has left.
    worker_id next_id CHIME_GUARDED_BY(mutex) = 0;
    std::uint64_t retired CHIME_GUARDED_BY(mutex) = 0;
    bool is_closed CHIME_GUARDED_BY(mutex) = false;  ///< Nobody comes any more.

    base::mutex shutdown_mutex;  ///< One at a time; held while waiting.
    bool is_shut_down CHIME_GUARDED_BY(shutdown_mutex) = false;

    std::unique_ptr<detail::metronome> metronome;

    member& start_member(detail::worker& seated) CHIME_REQUIRES(mutex);
    void drive(member& mine) noexcept;
    void turn_until_left(member& mine) const;
    void report(std::exception_ptr thrown) noexcept;
    void tell_of_stuck(const detail::metronome::report& seen);
    void tell_metrics();
    /// Adds a worker and gives its number, or says why not; throws what the system says, std::bad_alloc.
    [[nodiscard]] std::variant<worker_id, errc> add_member();
    /// Sends a worker away, and returns when it has gone; or says why not.
    [[nodiscard]] std::optional<errc> retire_member(worker_id which);
    [[nodiscard]] std::variant<members_iterator, errc> begin_retirement(worker_id which);
    static void tell_to_leave(member& told) noexcept;
    void end_member(member& leaving) const noexcept;
    void end_members() noexcept CHIME_NOT_ANALYSED;  ///< See there for why.
    void wait_for_rest() noexcept;
    void shut_down() noexcept;
    [[nodiscard]] runtime_stats stats() const;
    void refuse_in_forked_child(const char* call) const;
    [[nodiscard]] bool is_own_thread(const runtime& its) const noexcept;
};

}  // namespace chime::inline v0
