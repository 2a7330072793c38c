// SPDX-License-Identifier: MIT
#pragma once

#include <chime/clock_source.hpp>
#include <chime/detail/export.hpp>
#include <chime/spawn.hpp>
#include <chime/stats.hpp>
#include <chime/task.hpp>
#include <chime/timers.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace chime {
inline namespace v0 {

namespace testing {
class simulation;
}

/// Names a worker of a runtime. The first ones are 0 .. workers-1; a number is not used again.
using worker_id = std::uint64_t;

/// A worker that has been in one piece of user code for too long.
struct stuck_worker {
    worker_id worker = 0;
    std::chrono::nanoseconds since{};    ///< How long by now.
    std::chrono::nanoseconds overdue{};  ///< How late the first of its timers is by now; zero: none is due.
    std::size_t overdue_timers = 0;      ///< How many are due and wait, callbacks and sleepers.
};

/// What one worker has done so far.
struct worker_stats {
    worker_id worker = 0;
    /// What this worker has armed, fired, run. What is pending, alive or waiting is known for all of them together only.
    timer_stats timers;
    std::uint64_t stuck_reports = 0;  ///< How often it was reported to be stuck.
};

/// What a runtime has done so far. Read it from any thread at any time; exact when nothing is going on.
struct runtime_stats {
    timer_stats timers;                 ///< All workers, and what other threads have armed and cancelled.
    std::vector<worker_stats> workers;  ///< Those that run now.
    std::uint64_t workers_added = 0;    ///< Since the beginning, the first ones included.
    std::uint64_t workers_retired = 0;
    std::uint64_t stuck_reports = 0;
    std::uint64_t metronome_beats = 0;  ///< How often the metronome has woken up.
};

/// How a runtime is built; fixed for its life. Times may be given in any unit, also `0.5ms`; they are rounded up.
struct runtime_config {
    unsigned workers = 0;      ///< How many to begin with; 0: one per processor that this process may use.
    bool pin_workers = false;  ///< Keep worker n on the n-th processor that this process may use.
    std::size_t max_timers = std::size_t{1} << 24U;  ///< Arming beyond this is refused with errc::too_many_timers.
    /// Spawning beyond this is refused with errc::too_many_tasks; somewhat earlier, too, if it is not well above 256 for each
    /// worker, because so many places each keeps at hand.
    std::size_t max_tasks = std::size_t{1} << 22U;
    /// How finely the wheels sort, rounded down to a power of two. Deadlines and order are exact whatever it is.
    detail::any_delay resolution = std::chrono::nanoseconds{std::int64_t{1} << 18U};
    /// How much later a timer may fire, so that neighbours share a wake-up.
    detail::any_delay slack{};
    /// The same where timers crowd: after a turn that has fired eight or more, until the loop has slept. The larger one
    /// counts. The default is what the kernel allows itself with any thread that does not object. Only with the clock of the
    /// system.
    detail::any_delay crowd_slack = std::chrono::microseconds{50};
    std::size_t timer_budget = 512;  ///< Timers that fire in a turn before ready tasks have theirs.
    std::size_t task_budget = 512;   ///< Ready tasks that run in a turn before timers have theirs.
    std::size_t inline_budget =
        64;  ///< Sleepers that a turn resumes on the spot; the others are queued, for all to help.
    std::size_t stale_slack =
        4096;  ///< Tickets of cancelled timers tolerated beyond the number of live ones, per worker.
    std::size_t scrub_budget = 64;  ///< How many tickets are looked at together when it is time to drop stale ones.
    bool inline_resumption = true;  ///< A sleeper whose time has come is resumed on the spot, not queued.
    bool time_callbacks = false;    ///< Measure the longest callback and turn: two looks at the clock for each.
    bool record_locations = false;  ///< For dump_pending(): note where each timer was armed and each task spawned.
    bool huge_pages = true;         ///< Ask for huge pages beyond the first 32'768 timers or tasks.
    /// A helper thread that looks after the workers while any of them is awake: needed for `on_stuck` and `on_metrics`.
    bool metronome = false;
    detail::any_delay metronome_period = std::chrono::milliseconds{10};  ///< How often it looks.
    /// A worker that has been in one piece of user code for so long is reported to `on_stuck`; once more when it has been
    /// there twice as long as it was then, and so on.
    detail::any_delay stuck_after = std::chrono::milliseconds{100};
    /// What a callback or a detached task has thrown, on the worker where it did. Empty: the program is terminated.
    std::function<void(std::exception_ptr)> on_exception{};
    /// Runs on the metronome's thread, for every piece of user code that takes too long: see stuck_after. Must not throw.
    std::function<void(const stuck_worker&)> on_stuck{};
    /// Runs on the metronome's thread with every look, for who exports numbers. Must not throw.
    std::function<void(const runtime_stats&)> on_metrics{};
    clock_source* clock = nullptr;  ///< Null: the monotonic clock of the system.

    /// Empty if usable; otherwise what to change.
    [[nodiscard]] CHIME_API std::string validate() const;
};

/// Many loops, each driven by a thread of its own: timers, sleeping tasks, and work that moves to whoever is free.
///
///     chime::runtime rt;
///     chime::spawn_detached(rt, serve());
///     rt.timers().after(1s, [] { std::puts("a second later, on one of the workers"); });
///     rt.block_on(serve_until_told());  // A task of yours; the guide's "Ending a server" has one.
///
/// Every worker has a wheel and a queue of its own. What a task or callback arms stays with the worker that it runs on;
/// what other threads arm is given to one of them. Ready tasks are taken over by workers that have nothing to do.
/// Callbacks of different workers run at the same time.
class runtime {
 public:
    /// Throws std::system_error: errc::bad_configuration with what to change, or what the system says when a thread cannot
    /// be started; std::bad_alloc.
    CHIME_API explicit runtime(const runtime_config& config = {});
    /// A number alone: the compiler says what to write.
    template <std::integral Number>
    explicit runtime(Number) : runtime() {
        static_assert(sizeof(Number) == 0, "say what the number is: chime::runtime rt({.workers = 4})");
    }
    runtime(const runtime&) = delete;
    runtime& operator=(const runtime&) = delete;
    /// Like shutdown(); then destroys suspended tasks, innermost frame first, and pending closures. From inside one of its
    /// own callbacks or tasks the program is aborted.
    CHIME_API ~runtime();

    /// Runs a task, or anything that can be awaited, on a worker, waits for its end, gives its result or throws what it
    /// has thrown. It takes one place of max_tasks.
    ///
    /// Not from one of its own workers: errc::on_a_worker; await it there. Throws like spawn(); errc::cancelled if the
    /// runtime is shut down before the task has ended; errc::stopped in a forked child, which has no workers.
    template <class Awaitable>
    decltype(auto) block_on(Awaitable&& awaitable,
                            const std::source_location& where = std::source_location::current()) {
        refuse_to_wait("chime::runtime::block_on");
        auto joined = chime::try_spawn(*this, std::forward<Awaitable>(awaitable), where);
        if (!joined) detail::refuse_spawn(*home_, "chime::runtime::block_on");
        wait_for(detail::join_access::control_of(*joined));
        return joined->take();
    }

    /// Starts a task, or anything that can be awaited. Any thread; see chime::spawn().
    template <class Awaitable>
    auto spawn(Awaitable&& awaitable, const std::source_location& where = std::source_location::current()) {
        return chime::spawn(*this, std::forward<Awaitable>(awaitable), where);
    }

    /// See chime::try_spawn().
    template <class Awaitable>
    [[nodiscard]] auto try_spawn(Awaitable&& awaitable,
                                 const std::source_location& where = std::source_location::current()) {
        return chime::try_spawn(*this, std::forward<Awaitable>(awaitable), where);
    }

    /// Runs `function` soon, on one of the workers, in no particular order, also where there is only one. It takes a place of
    /// max_tasks, and moves to whoever is free, like any task that is ready. An exception of it goes to on_exception.
    ///
    /// Throws std::system_error: errc::too_many_tasks, errc::stopped, errc::empty_function; std::bad_alloc; what moving the
    /// function throws.
    template <timer_function Function>
    void post(Function&& function, const std::source_location& where = std::source_location::current()) {
        detail::require_function(function, "chime::runtime::post");
        if (!spawn_call(std::forward<Function>(function), where)) detail::refuse_spawn(*home_, "chime::runtime::post");
    }

    /// Like post(), but when there are too many tasks, or the runtime was shut down, it gives false and has not touched
    /// `function`.
    template <timer_function Function>
    [[nodiscard]] bool try_post(Function&& function,
                                const std::source_location& where = std::source_location::current()) {
        detail::require_function(function, "chime::runtime::try_post");
        return spawn_call(std::forward<Function>(function), where);
    }

    /// What cannot be called or kept: the compiler says why.
    template <class Function>
    void post(Function&&, const std::source_location& = std::source_location::current()) {
        detail::explain_refusal<Function>();
    }
    template <class Function>
    bool try_post(Function&&, const std::source_location& = std::source_location::current()) {
        detail::explain_refusal<Function>();
    }

    [[nodiscard]] chime::timers& timers() noexcept { return *timers_; }

    /// `co_await rt.get_scheduler().schedule()` in a task of an io_context goes on here, on one of the workers.
    [[nodiscard]] CHIME_API scheduler& get_scheduler() noexcept;

    /// One worker more. Any thread, also a worker. Throws std::system_error: errc::too_many_workers, errc::stopped, or what
    /// the system says; std::bad_alloc.
    CHIME_API worker_id add_worker();

    /// Like add_worker(), but when there are too many, the runtime was shut down, or the system gives no thread, it gives
    /// nothing. Throws std::bad_alloc.
    [[nodiscard]] CHIME_API std::optional<worker_id> try_add_worker();

    /// Sends a worker away. Returns when its timers and ready tasks have moved on and its thread has ended: after the piece
    /// of user code that it is in. Nothing is lost, every deadline stays.
    ///
    /// Throws std::system_error: errc::no_such_worker for an unknown or retired one, errc::last_worker, errc::on_a_worker
    /// from that worker itself, errc::stopped.
    CHIME_API void retire_worker(worker_id which);

    /// Like retire_worker(), but whatever keeps the worker from going, it gives false at once: which worker a task runs on,
    /// and who of several retires the last one, nobody can know before. Throws no std::system_error.
    [[nodiscard]] CHIME_API bool try_retire_worker(worker_id which);

    /// Is this thread one of its workers, in a callback or a task?
    [[nodiscard]] CHIME_API bool is_on_a_worker() const noexcept;

    [[nodiscard]] CHIME_API runtime_stats stats() const;

    /// Refuses what is new, resumes every sleeper once with `cancelled` and cancels every timer, lets run what is ready until
    /// nothing is, and ends the threads. A task that sleeps again is destroyed where it stands; one that waits for something
    /// else is destroyed with the runtime. Waits for user code that runs. Any thread but a worker or
    /// the metronome: errc::on_a_worker. The second time it does nothing, nor in a forked child.
    CHIME_API void shutdown();

    /// What is pending: timers and tasks, with deadlines. A task that sleeps counts as a task. Any thread.
    CHIME_API void dump_pending(std::ostream& out) const;

 private:
    struct state;
    class simulator;
    friend struct detail::context_access;
    friend class testing::simulation;

    /// False: refused.
    template <class Function>
    bool spawn_call(Function&& function, const std::source_location& where) {
        auto make = [&] {
            auto body = detail::call_once<std::decay_t<Function>>(std::forward<Function>(function));
            return detail::made_frame{detail::task_access::release(body)};
        };
        return detail::try_spawn_frame(*home_, detail::frame_maker(make), detail::pack(where));
    }

    /// Without threads: somebody else drives the workers.
    CHIME_API runtime(const runtime_config& config, simulator* driver);

    CHIME_API void refuse_to_wait(const char* call) const;
    CHIME_API void wait_for(detail::task_control& awaited);

    std::unique_ptr<state> state_;
    detail::crew* home_;
    chime::timers* timers_;
};

}  // namespace v0
}  // namespace chime
