// SPDX-License-Identifier: MIT
#include <chime/io_context.hpp>

#include "base/atomic.hpp"
#include "base/check.hpp"
#include "base/clock.hpp"
#include "runtime/cpu_pool.hpp"
#include "worker/crew.hpp"

#include <bit>
#include <limits>
#include <optional>
#include <system_error>

namespace chime::inline v0 {

std::string io_context_config::validate() const {
    constexpr std::size_t most_timers = std::size_t{1} << 29U;
    constexpr std::size_t most_tasks = std::size_t{1} << 29U;
    const auto outside = [](const char* name, std::size_t value, std::size_t least, std::size_t most) {
        return std::string("io_context_config::") + name + " is " + std::to_string(value) + "; choose one from " +
               std::to_string(least) + " to " + std::to_string(most);
    };
    const auto late_on_purpose = [](const char* name, std::chrono::nanoseconds value) {
        return std::string("io_context_config::") + name + " is " + std::to_string(value.count()) +
               " ns; choose zero or how late a timer may be made on purpose";
    };
    if (max_timers < 1 || max_timers > most_timers) return outside("max_timers", max_timers, 1, most_timers);
    if (max_tasks < 1 || max_tasks > most_tasks) return outside("max_tasks", max_tasks, 1, most_tasks);
    if (resolution.count() < 1 || resolution.count() > std::int64_t{1} << 32U) {
        return "io_context_config::resolution is " + std::to_string(resolution.count()) +
               " ns; choose one from 1 to 4294967296 ns";
    }
    if (slack.count() < 0) return late_on_purpose("slack", slack);
    if (crowd_slack.count() < 0) return late_on_purpose("crowd_slack", crowd_slack);
    constexpr std::size_t most_budget = std::size_t{1} << 30U;
    if (timer_budget < 1 || timer_budget > most_budget) return outside("timer_budget", timer_budget, 1, most_budget);
    if (task_budget < 1 || task_budget > most_budget) return outside("task_budget", task_budget, 1, most_budget);
    if (stale_slack < 64 || stale_slack > most_timers) return outside("stale_slack", stale_slack, 64, most_timers);
    if (scrub_budget < 32 || scrub_budget > 65536) return outside("scrub_budget", scrub_budget, 32, 65536);
    if (pool_threads > 4096) return outside("pool_threads", pool_threads, 0, 4096);
    return {};
}

namespace {

detail::worker_settings settings_of(const io_context_config& config) {
    if (const std::string problem = config.validate(); !problem.empty()) {
        throw std::system_error(make_error_code(errc::bad_configuration), "chime::io_context: " + problem);
    }
    detail::worker_settings settings;
    settings.max_timers = config.max_timers;
    settings.max_tasks = config.max_tasks;
    settings.tick_shift =
        static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(config.resolution.count()))) - 1;
    settings.stale_slack = config.stale_slack;
    settings.scrub_budget = config.scrub_budget;
    settings.fire_budget = config.timer_budget;
    settings.ready_budget = config.task_budget;
    settings.slack = config.slack;
    settings.crowd_slack = config.crowd_slack;
    settings.resumes_inline = config.inline_resumption;
    settings.times_callbacks = config.time_callbacks;
    settings.records_locations = config.record_locations;
    settings.huge_pages = config.huge_pages ? base::huge_pages::when_large : base::huge_pages::no;
    settings.clock = config.clock;
    return settings;
}

/// The calling thread drives the loop while it lives.
class drive {
 public:
    drive(detail::worker& driven, const base::atomic<bool>& is_stopped) : driven_(driven), is_stopped_(is_stopped) {
        if (!driven_.try_begin_drive()) {
            detail::refuse(errc::already_running,
                           "chime::io_context: it is running already, on this thread or another one; one at a time");
        }
        driven_.take_over_from_descriptor();
        last_.wake_at = driven_.next_deadline();
    }
    drive(const drive&) = delete;
    drive& operator=(const drive&) = delete;
    ~drive() {
        if (old_slack_) base::set_timer_slack(*old_slack_);
        // Stopped, it has nothing to be polled for; restart() rings.
        const bool is_stopped = is_stopped_.load(base::memory_order_relaxed);  // Who leaves for it has acquired it.
        driven_.hand_over_to_descriptor(is_stopped ? detail::end_of_time : last_.wake_at,
                                        last_.is_busy || !is_finished_, is_stopped);
        driven_.end_drive();
    }

    /// Throws what user code throws.
    std::size_t turn(std::size_t most, time_point limit, bool is_bounded = true) {
        is_finished_ = false;
        detail::worker::assume_owner(&driven_);
        last_ = driven_.turn({.is_leaving = is_stopped_, .most = most, .until = limit, .is_bounded = is_bounded});
        is_finished_ = true;
        return last_.ran;
    }

    [[nodiscard]] bool is_busy() const noexcept { return last_.is_busy; }

    void park(time_point limit) noexcept {
        if (!old_slack_) {
            // The kernel's default makes every sleeper up to 50 µs late. The thread is the user's: he gets it back.
            old_slack_ = base::timer_slack();
            base::set_timer_slack(std::chrono::nanoseconds{1});
        }
        detail::worker::assume_owner(&driven_);
        driven_.park(last_.wake_at, limit, is_stopped_);
    }

 private:
    detail::worker& driven_;
    const base::atomic<bool>& is_stopped_;
    detail::turn_answer last_;
    bool is_finished_ = true;  ///< False: user code has thrown, and there may be more to do.
    std::optional<std::chrono::nanoseconds> old_slack_;
};

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

}  // namespace

/// In this order: frames and closures that are destroyed with the worker may still ask for timers and pool.
struct io_context::state {
    explicit state(const io_context_config& config)
        : timers(&crew),
          scheduler(&crew),
          pool(std::make_unique<cpu_pool::state>()),
          crew(settings_of(config)),
          has_own_clock(config.clock != nullptr) {
        pool.state_->home = &crew;
        pool.state_->wanted_threads = config.pool_threads;
    }

    chime::timers timers;
    chime::scheduler scheduler;
    chime::cpu_pool pool;
    detail::crew crew;  ///< Of one worker.
    detail::worker& worker = crew.first();
    const bool has_own_clock;
    base::atomic<bool> is_stopped{false};

    std::size_t run(std::size_t most, time_point limit);
};

io_context::io_context(const io_context_config& config)
    : state_(std::make_unique<state>(config)), home_(&state_->crew), timers_(&state_->timers) {}

io_context::~io_context() {
    if (state_->crew.is_in_forked_child() &&
        (state_->worker.is_held() || state_->crew.is_visited() || state_->pool.has_threads())) {
        // The threads that were at it are in the parent, and whatever they were doing stays undone. All of it is left alone.
        [[maybe_unused]] const state* const left_alone = state_.release();
        return;
    }
    CHIME_CHECK_USE(!state_->worker.is_driven(),
                    "a context is not destroyed while it runs, nor from inside one of its own callbacks or tasks: "
                    "stop() it there, and destroy it when run() has returned. std::exit() in a callback does that to a "
                    "static one: stop() it, and leave main() instead");
    state_->pool.close();
}

std::size_t io_context::state::run(std::size_t most, time_point limit) {
    drive loop(worker, is_stopped);
    detail::worker::assume_owner(&worker);
    std::size_t ran = 0;
    for (;;) {
        // Acquire: pairs with the release in stop(); what was done before it is seen by who runs next.
        if (is_stopped.load(base::memory_order_acquire)) break;
        ran += loop.turn(most - ran, limit);
        if (ran >= most) break;
        if (limit != never && worker.now() >= limit) break;
        if (loop.is_busy()) continue;
        if (worker.is_out_of_work()) break;
        loop.park(limit);
    }
    return ran;
}

std::size_t io_context::run() {
    return state_->run(unlimited, never);
}

std::size_t io_context::run_one() {
    return state_->run(1, never);
}

std::size_t io_context::run_until(detail::any_deadline limit) {
    return state_->run(unlimited, limit.time());
}

std::size_t io_context::poll() {
    // One turn runs what is there when it begins, and nothing that comes of it: so it ends.
    drive loop(state_->worker, state_->is_stopped);
    return is_stopped() ? 0 : loop.turn(unlimited, never, false);
}

void io_context::stop() noexcept {
    const detail::crew::visit visiting(state_->crew);
    // Seq_cst: before we look whether the loop sleeps; pairs with the look at it after publishing, in
    // park() [park: stop loop].
    state_->is_stopped.store(true, base::memory_order_seq_cst);
    state_->worker.wake_up();
}

bool io_context::is_stopped() const noexcept {
    return state_->is_stopped.load(base::memory_order_acquire);
}

void io_context::restart() noexcept {
    const detail::crew::visit visiting(state_->crew);
    state_->is_stopped.store(false, base::memory_order_seq_cst);
    state_->worker.wake_up();  // Who waits for the descriptor shall look again.
}

bool io_context::is_out_of_work() const noexcept {
    const detail::worker& mine = state_->worker;
    detail::worker::assume_owner(&mine);  // It is for the thread that runs it.
    return mine.is_out_of_work();
}

bool io_context::is_running() const noexcept {
    return state_->worker.is_driven();
}

io_context::work_guard::work_guard(io_context& guarded) noexcept : guarded_(&guarded) {
    guarded_->home_->add_guard();
}

void io_context::work_guard::reset() noexcept {
    if (guarded_ != nullptr) std::exchange(guarded_, nullptr)->home_->drop_guard();
}

scheduler& io_context::get_scheduler() noexcept {
    return state_->scheduler;
}

chime::cpu_pool& io_context::cpu_pool() noexcept {
    return state_->pool;
}

int io_context::poll_fd() {
    if (state_->has_own_clock) {
        detail::refuse(
            errc::bad_configuration,
            "chime::io_context::poll_fd: this context has a clock of its own, and no descriptor can tell when "
            "that has moved; leave io_context_config::clock null, or call run() or poll() without waiting for "
            "a descriptor");
    }
    return state_->worker.descriptor();
}

void io_context::dump_pending(std::ostream& out) const {
    state_->crew.dump_pending(out);
}

}  // namespace chime::inline v0
