// SPDX-License-Identifier: MIT
#pragma once

#include <chime/clock_source.hpp>
#include <chime/cpu_pool.hpp>
#include <chime/detail/arming.hpp>
#include <chime/detail/closure.hpp>
#include <chime/detail/context_access.hpp>
#include <chime/detail/export.hpp>
#include <chime/sleep.hpp>
#include <chime/time.hpp>
#include <chime/timers.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <iosfwd>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace chime {
inline namespace v0 {

/// How a context is built; fixed for its life. Times may be given in any unit, also `0.5ms`; they are rounded up.
struct io_context_config {
    std::size_t max_timers = std::size_t{1} << 24U;  ///< Arming beyond this is refused with errc::too_many_timers.
    std::size_t max_tasks = std::size_t{1} << 22U;   ///< Spawning beyond this is refused with errc::too_many_tasks.
    /// How finely the wheel sorts, rounded down to a power of two. Deadlines and order are exact whatever it is.
    detail::any_delay resolution = std::chrono::nanoseconds{std::int64_t{1} << 18U};
    /// How much later a timer may fire, so that neighbours share a wake-up.
    detail::any_delay slack{};
    /// The same where timers crowd: after a turn that has fired eight or more, until the loop has slept. The larger one
    /// counts. The default is what the kernel allows itself with any thread that does not object. Only with the clock of the
    /// system.
    detail::any_delay crowd_slack = std::chrono::microseconds{50};
    std::size_t timer_budget = 512;  ///< Timers that fire before ready tasks have their turn.
    std::size_t task_budget = 512;   ///< Ready tasks that run before timers have their turn.
    std::size_t stale_slack = 4096;  ///< Tickets of cancelled timers tolerated beyond the number of live ones.
    std::size_t scrub_budget = 64;   ///< How many tickets are looked at together when it is time to drop stale ones.
    bool inline_resumption = true;   ///< A sleeper whose time has come is resumed on the spot, not queued.
    bool time_callbacks = false;     ///< Measure the longest callback and turn: two looks at the clock for each.
    bool record_locations = false;   ///< For dump_pending(): note where each timer was armed and each task spawned.
    bool huge_pages = true;          ///< Ask for huge pages beyond the first 32'768 timers or tasks.
    unsigned pool_threads = 0;       ///< Of the cpu_pool; 0: one per processor.
    clock_source* clock = nullptr;   ///< Null: the monotonic clock of the system.

    /// Empty if usable; otherwise what to change.
    [[nodiscard]] CHIME_API std::string validate() const;
};

/// Hops onto the thread that runs a context.
class scheduler {
 public:
    scheduler(const scheduler&) = delete;
    scheduler& operator=(const scheduler&) = delete;

    /// `co_await` it in a task: it continues on the thread that runs this context, behind what is ready there. A task
    /// of another context moves here for good.
    ///
    /// Awaiting throws std::system_error: errc::not_in_a_task, errc::too_many_tasks, errc::stopped.
    auto schedule() noexcept { return detail::yield_awaitable(home_); }

    /// Like schedule(), but when this context is stopped or has no place left, `co_await` gives false, and the task goes on
    /// where it is.
    auto try_schedule() noexcept { return detail::hop_awaitable(home_); }

 private:
    friend class io_context;
    friend class runtime;
    explicit scheduler(detail::crew* home) noexcept : home_(home) {}

    detail::crew* home_;
};

/// One loop, driven by the thread that calls run(): timers, sleeping tasks, posted functions, and no thread of its own.
///
///     chime::io_context ctx;
///     ctx.timers().after(1s, [] { std::puts("a second later"); });
///     ctx.run();
///
/// User code runs only inside run() and its siblings, on the thread that called them; one piece after the other. What
/// other threads arm, cancel, postpone, spawn or post is noticed at once, also while the loop sleeps.
class io_context {
 public:
    /// Throws std::system_error (errc::bad_configuration) with what to change; std::bad_alloc.
    CHIME_API explicit io_context(const io_context_config& config = {});
    /// A number of threads, as others take it: the compiler says what to write.
    template <std::integral Number>
    explicit io_context(Number) : io_context() {
        static_assert(sizeof(Number) == 0,
                      "an io_context is run by one thread and takes no number: write chime::io_context ctx, or, for "
                      "several threads, chime::runtime rt({.workers = 4})");
    }
    io_context(const io_context&) = delete;
    io_context& operator=(const io_context&) = delete;
    /// Waits for jobs that run in the pool, destroys suspended tasks (innermost frame first) and pending closures. Nobody
    /// may be using it: destroyed while it runs, or from inside one of its own callbacks, the program is aborted. In a
    /// forked child, if a thread of the parent was running it or its pool had threads, everything is left as it is.
    CHIME_API ~io_context();

    /// Runs until it is out of work: nothing ready, no pending timer, no live task, no pool job, no work guard. Or until
    /// stop(). Answers how many callbacks, resumptions and posted functions have run.
    ///
    /// Throws what a callback, a posted function or a detached task throws; everything else stays as it is, and run() may
    /// be called again. Throws std::system_error: errc::already_running, when this or another thread is running it.
    CHIME_API std::size_t run();

    /// The same for one piece of user code at most; waits for it.
    CHIME_API std::size_t run_one();

    /// The same for a limited time. A piece of user code that has begun is not interrupted; when the time is over, none
    /// begins any more. A timer that is due just at the end still runs, if the loop gets to it within a tenth of a millisecond.
    /// Throws std::system_error (std::errc::invalid_argument) for NaN, too.
    template <class Rep, class Period>
    std::size_t run_for(std::chrono::duration<Rep, Period> limit) {
        return run_until(deadline_after(timers().now(), limit));
    }
    template <detail::without_unit Number>
    std::size_t run_for(Number) {
        detail::ask_for_unit<Number>();
        return 0;
    }
    template <class Clock, class Duration>
    std::size_t run_for(std::chrono::time_point<Clock, Duration>) {
        detail::ask_for_delay<Clock>();
        return 0;
    }
    CHIME_API std::size_t run_until(detail::any_deadline limit);

    /// Runs what is ready or due now, and does not wait.
    CHIME_API std::size_t poll();

    /// Makes run() return when the piece of user code that it is in is through: no other begins. Touches no timer and no
    /// task. Stays in force until restart(). Any thread.
    CHIME_API void stop() noexcept;
    [[nodiscard]] CHIME_API bool is_stopped() const noexcept;
    CHIME_API void restart() noexcept;

    /// Would run() return at once? For loops that drive the context through poll(). On the thread that runs it.
    [[nodiscard]] CHIME_API bool is_out_of_work() const noexcept;

    /// Is somebody running it this moment? Any thread.
    [[nodiscard]] CHIME_API bool is_running() const noexcept;

    /// Runs `function` soon, on the thread that runs the context; in the order in which one thread posts. Any thread.
    ///
    /// Throws std::system_error: errc::too_many_timers, errc::stopped, errc::empty_function; std::bad_alloc; what moving
    /// the function throws.
    template <timer_function Function>
    void post(Function&& function) {
        detail::require_function(function, "chime::io_context::post");
        const detail::arming begun = detail::begin_arming(*home_);
        if (begun.closure == nullptr) detail::refuse_arming(*home_, "chime::io_context::post");
        fill_and_post(begun, std::forward<Function>(function));
    }

    /// Like post(), but when there are too many timers, or they were stopped, it gives false and has not touched
    /// `function`.
    template <timer_function Function>
    [[nodiscard]] bool try_post(Function&& function) {
        detail::require_function(function, "chime::io_context::try_post");
        const detail::arming begun = detail::begin_arming(*home_);
        if (begun.closure == nullptr) return false;
        fill_and_post(begun, std::forward<Function>(function));
        return true;
    }

    /// What cannot be called or kept: the compiler says why.
    template <class Function>
    void post(Function&&) {
        detail::explain_refusal<Function>();
    }
    template <class Function>
    bool try_post(Function&&) {
        detail::explain_refusal<Function>();
    }

    /// While one lives, run() does not return for lack of work. Move-only; any thread; must not outlive the context.
    class [[nodiscard("a guard that is dropped at once guards nothing")]] work_guard {
     public:
        [[nodiscard("a guard that is dropped at once guards nothing")]]  // Once more, for g++ 12.
        CHIME_API explicit work_guard(io_context & guarded) noexcept;
        work_guard(work_guard && other) noexcept : guarded_(std::exchange(other.guarded_, nullptr)) {}
        work_guard& operator=(work_guard&& other) noexcept {
            if (this != &other) {
                reset();
                guarded_ = std::exchange(other.guarded_, nullptr);
            }
            return *this;
        }
        ~work_guard() {
            reset();
        }

        CHIME_API void reset() noexcept;

     private:
        io_context* guarded_;
    };
    work_guard make_work_guard() noexcept { return work_guard(*this); }

    [[nodiscard]] chime::timers& timers() noexcept { return *timers_; }
    [[nodiscard]] CHIME_API scheduler& get_scheduler() noexcept;
    [[nodiscard]] CHIME_API chime::cpu_pool& cpu_pool() noexcept;

    /// A descriptor that becomes readable when there is work or a deadline has passed: watch it in another loop, and call
    /// poll() when it is readable. Do so once before you wait for the first time. The descriptor stays the context's.
    ///
    /// Not for virtual time: a descriptor cannot tell when a clock of yours has moved. Call it on the thread that polls.
    /// Throws std::system_error: errc::bad_configuration if the context has a clock of its own, or that the process has no
    /// descriptor left.
    [[nodiscard]] CHIME_API int poll_fd();

    /// Writes down what run() still waits for: how much of what, then timers and tasks, with their deadlines and where they
    /// were armed. A task that sleeps counts as a task, not as a timer. Any thread; while others run, it is a view of a
    /// moment.
    CHIME_API void dump_pending(std::ostream& out) const;

 private:
    friend detail::context_access;
    struct state;

    template <class Function>
    void fill_and_post(const detail::arming& begun, Function&& function) {
        using closure = detail::closure_in<std::decay_t<Function>, detail::closure_bytes>;
        try {
            closure::put(begun.closure, std::forward<Function>(function));
        } catch (...) {
            detail::abandon_arming(*home_, begun);
            throw;
        }
        detail::post(*home_, begun, closure::operations);
    }

    std::unique_ptr<state> state_;
    detail::crew* home_;
    chime::timers* timers_;
};

}  // namespace v0
}  // namespace chime
