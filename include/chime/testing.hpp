// SPDX-License-Identifier: MIT
#pragma once

#include <chime/clock_source.hpp>
#include <chime/detail/export.hpp>
#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/spawn.hpp>
#include <chime/time.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <source_location>
#include <utility>

// Virtual time, for tests of hours that run in milliseconds.

namespace chime {
inline namespace v0 {
namespace testing {

/// What a virtual clock does when every loop that follows it is idle.
enum class when_idle {
    jump,        ///< Time jumps to the next deadline.
    stand_still  ///< Time stands until somebody moves it, and run() and block_on() wait for that, if need be for ever.
};

/// A clock that stands still until it is told to move, or jumps to the next deadline when all is idle.
///
///     chime::testing::virtual_clock clock;
///     chime::io_context ctx({.clock = &clock});
///     ctx.timers().after(24h, [] { std::puts("a day later"); });
///     ctx.run();                                       // Returns at once; the clock shows tomorrow.
///
/// Several contexts may follow one clock, each on a thread of its own: time jumps when all that are running are idle, to
/// the first of their deadlines. Time ends a nanosecond before `never`, which does not come. While a job runs in a context's cpu_pool, or a `hold` lives, it does not jump. Any
/// thread. Outlives the contexts.
class virtual_clock final : public clock_source {
 public:
    CHIME_API explicit virtual_clock(when_idle behaviour = when_idle::jump, time_point start = time_point{});
    virtual_clock(const virtual_clock&) = delete;
    virtual_clock& operator=(const virtual_clock&) = delete;
    CHIME_API ~virtual_clock();

    [[nodiscard]] CHIME_API time_point now() const noexcept override;

    /// Moves time on by `step`; a negative one is ignored, because time does not run back.
    template <class Rep, class Period>
    void advance(std::chrono::duration<Rep, Period> step) {
        advance_by(round_up(step));
    }
    template <detail::without_unit Number>
    void advance(Number) {
        detail::ask_for_unit<Number>();
    }
    template <class Clock, class Duration>
    void advance(std::chrono::time_point<Clock, Duration>) {
        detail::ask_for_delay<Clock>();
    }
    /// Moves time to `time`, unless it is there or beyond already.
    CHIME_API void advance_to(detail::any_deadline time);

    CHIME_API void set_when_idle(when_idle behaviour);

    /// While one lives, time does not jump: something outside is going on that the clock does not know of.
    class [[nodiscard("a hold that is dropped at once holds nothing")]] hold {
     public:
        hold(hold && other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
        hold& operator=(hold&& other) noexcept {
            std::swap(held_, other.held_);
            return *this;
        }
        ~hold() {
            if (held_ != nullptr) held_->release_hold();
        }

     private:
        friend virtual_clock;
        explicit hold(virtual_clock & held) noexcept : held_(&held) {}
        virtual_clock* held_;
    };
    CHIME_API hold hold_still();

    CHIME_API void attach(clock_listener& listener) override;
    CHIME_API void detach(clock_listener& listener) noexcept override;
    CHIME_API void begin_run(clock_listener& listener) noexcept override;
    CHIME_API void end_run(clock_listener& listener) noexcept override;
    CHIME_API bool begin_idle(clock_listener& listener, time_point deadline, bool may_jump) noexcept override;
    CHIME_API void end_idle(clock_listener& listener) noexcept override;

 private:
    struct state;

    CHIME_API void advance_by(duration step);
    CHIME_API void release_hold() noexcept;

    std::unique_ptr<state> state_;
};

/// An io_context on a virtual clock of its own, for tests on one thread.
///
///     chime::testing::virtual_context ctx;
///     int beats = 0;
///     ctx->timers().every(1s, chime::missed_ticks::skip, [&] { ++beats; });
///     ctx.advance(1h);                                 // beats == 3600, in no time.
///
/// The clock stands still but inside of advance(), run() and block_on() of this class. The functions of the same names
/// that take the io_context, ctx->run() and chime::block_on(*ctx, …), wait for a clock that nobody moves: they hang as
/// soon as somebody sleeps.
class virtual_context {
 public:
    /// Throws like io_context. The clock of `config` is replaced.
    CHIME_API explicit virtual_context(io_context_config config = {});

    /// Lets time go on by `step`, and runs all that comes due on the way, each at its own time; at the end it settles.
    /// Answers how many callbacks and resumptions that were. Throws what they throw.
    template <class Rep, class Period>
    std::size_t advance(std::chrono::duration<Rep, Period> step) {
        return advance_to(deadline_after(clock_.now(), step));
    }
    template <detail::without_unit Number>
    std::size_t advance(Number) {
        detail::ask_for_unit<Number>();
        return 0;
    }
    template <class Clock, class Duration>
    std::size_t advance(std::chrono::time_point<Clock, Duration>) {
        detail::ask_for_delay<Clock>();
        return 0;
    }
    CHIME_API std::size_t advance_to(detail::any_deadline time);

    /// Runs what is ready or due now, and what comes of it, until nothing is ready any more, without moving time. Never
    /// returns if that never is the case, as with a callback that posts itself.
    CHIME_API std::size_t settle();

    /// Runs until it is out of work, jumping from deadline to deadline.
    CHIME_API std::size_t run();

    /// Runs until a task, or anything that can be awaited, has come to its end, jumping from deadline to deadline; gives
    /// its result. Throws like chime::block_on().
    template <class Awaitable>
    decltype(auto) block_on(Awaitable&& awaitable,
                            const std::source_location& where = std::source_location::current()) {
        const jumping until_the_end(clock_);
        return chime::block_on(context_, std::forward<Awaitable>(awaitable), where);
    }

    [[nodiscard]] time_point now() const noexcept { return clock_.now(); }
    [[nodiscard]] virtual_clock& clock() noexcept { return clock_; }
    [[nodiscard]] io_context& context() noexcept { return context_; }
    [[nodiscard]] io_context* operator->() noexcept { return &context_; }
    [[nodiscard]] io_context& operator*() noexcept { return context_; }

 private:
    /// While it lives, the clock jumps.
    class jumping {
     public:
        explicit jumping(virtual_clock& clock) : clock_(clock) { clock_.set_when_idle(when_idle::jump); }
        jumping(const jumping&) = delete;
        jumping& operator=(const jumping&) = delete;
        ~jumping() { clock_.set_when_idle(when_idle::stand_still); }

     private:
        virtual_clock& clock_;
    };

    virtual_clock clock_{when_idle::stand_still};
    io_context context_;
};

/// A whole runtime on one thread: its workers, its metronome, what they send each other, under virtual time, in an order
/// that is drawn from a seed. The same seed gives the same run, so whatever a seed finds can be looked at again.
///
///     for (std::uint64_t seed = 0; seed < 1000; ++seed) {
///         chime::testing::simulation sim(seed, {.workers = 4});
///         chime::spawn_detached(*sim, what_is_tested(*sim));
///         sim.run();
///         ASSERT_TRUE(all_is_well()) << "seed " << seed;
///     }
///
/// Workers take turns of random length, are passed over at random, and wake up for no reason now and then. Time stands
/// while anybody has something to do and then jumps to the next deadline. block_on(), retire_worker() and shutdown() of
/// the runtime let the others go on, instead of waiting for them. Between steps, this thread is a thread outside. What
/// callbacks and detached tasks throw goes out of the call that let them run, unless there is an on_exception.
///
/// One thread: the one that made it.
class simulation {
 public:
    /// Throws like runtime. The clock of `config` is replaced; by default there are four workers.
    CHIME_API explicit simulation(std::uint64_t seed, const runtime_config& config = {});
    simulation(const simulation&) = delete;
    simulation& operator=(const simulation&) = delete;
    CHIME_API ~simulation();

    /// One turn of one worker, or one beat of the metronome. False: there is nothing to do before time moves on.
    CHIME_API bool step();

    /// Until nothing is to be done, without moving time. Answers how many steps that took.
    CHIME_API std::size_t settle();

    /// Lets time go on by `step`, and does all that comes due on the way, each at its own time.
    template <class Rep, class Period>
    std::size_t advance(std::chrono::duration<Rep, Period> step) {
        return advance_to(deadline_after(now(), step));
    }
    template <detail::without_unit Number>
    std::size_t advance(Number) {
        detail::ask_for_unit<Number>();
        return 0;
    }
    template <class Clock, class Duration>
    std::size_t advance(std::chrono::time_point<Clock, Duration>) {
        detail::ask_for_delay<Clock>();
        return 0;
    }
    CHIME_API std::size_t advance_to(detail::any_deadline time);

    /// Until nothing is to be done and no deadline is left. Does not end while something repeats for ever.
    CHIME_API std::size_t run();

    [[nodiscard]] CHIME_API time_point now() const noexcept;
    [[nodiscard]] CHIME_API std::uint64_t seed() const noexcept;
    /// Tells two runs apart: all that was drawn and done so far, in one number.
    [[nodiscard]] CHIME_API std::uint64_t trace() const noexcept;

    [[nodiscard]] CHIME_API runtime& get_runtime() noexcept;
    [[nodiscard]] runtime* operator->() noexcept { return &get_runtime(); }
    [[nodiscard]] runtime& operator*() noexcept { return get_runtime(); }

 private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace testing
}  // namespace v0
}  // namespace chime
