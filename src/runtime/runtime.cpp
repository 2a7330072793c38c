// SPDX-License-Identifier: MIT
#include "runtime/runtime.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace chime::inline v0 {

namespace {

detail::worker_settings settings_of(const runtime_config& config, bool is_simulated) {
    if (const std::string problem = config.validate(); !problem.empty()) {
        throw std::system_error(make_error_code(errc::bad_configuration), "chime::runtime: " + problem);
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
    settings.inline_budget = config.inline_budget;
    settings.slack = config.slack;
    settings.crowd_slack = config.crowd_slack;
    settings.resumes_inline = config.inline_resumption;
    settings.times_callbacks = config.time_callbacks;
    settings.records_locations = config.record_locations;
    settings.is_simulated = is_simulated;
    settings.looks_again = !is_simulated && config.clock == nullptr && base::usable_processors() > 1;
    settings.shows_progress = config.metronome;
    settings.huge_pages = config.huge_pages ? base::huge_pages::when_large : base::huge_pages::no;
    settings.clock = config.clock;
    return settings;
}

std::vector<unsigned> processors_of_this_thread() {
    std::vector<unsigned> all(base::usable_processors());
    for (unsigned position = 0; position < all.size(); ++position) all[position] = base::usable_processor(position);
    return all;
}

}  // namespace

// --- The threads.

runtime::state::state(const runtime_config& wanted, simulator* driver)
    : simulated_by(driver),
      config(wanted),
      processors(wanted.pin_workers ? processors_of_this_thread() : std::vector<unsigned>{}),
      timers(&crew),
      scheduler(&crew),
      crew(settings_of(config, driver != nullptr), detail::crew::most_seats) {
    if (!config.metronome) return;
    detail::metronome::settings wanted_beats{.period = config.metronome_period, .stuck_after = config.stuck_after};
    if (config.on_stuck) wanted_beats.on_stuck = [this](const detail::metronome::report& seen) { tell_of_stuck(seen); };
    if (config.on_metrics) wanted_beats.on_beat = [this] { tell_metrics(); };
    metronome = std::make_unique<detail::metronome>(crew, std::move(wanted_beats));
}

void runtime::state::tell_of_stuck(const detail::metronome::report& seen) {
    stuck_worker stuck{
        .worker = 0, .since = seen.since, .overdue = seen.overdue, .overdue_timers = seen.overdue_timers};
    {
        const base::lock_guard lock(mutex);
        for (const member& each : members) {
            if (each.worker->seat() == seen.seat) stuck.worker = each.id;
        }
    }
    config.on_stuck(stuck);
}

void runtime::state::tell_metrics() {
    std::optional<runtime_stats> seen;
    try {
        seen = stats();
    } catch (const std::bad_alloc&) {
        return;  // Nobody has asked for this one; there will be others.
    }
    config.on_metrics(*seen);
}

runtime::state::member& runtime::state::start_member(detail::worker& seated) {
    const std::size_t count = members.size();
    try {
        member& added = members.emplace_back();
        added.id = next_id;
        added.worker = &seated;
        seated.add_stats(added.before);
        added.stuck_before = seated.stuck_reports();
        if (config.pin_workers) added.processor = processors[next_id % processors.size()];
        if (simulated_by != nullptr) {
            CHIME_CHECK(seated.try_begin_drive(), "a simulated worker is driven by its simulation");
        } else {
            added.thread = base::thread([this, &added] { drive(added); });
        }
        ++next_id;
        return added;
    } catch (...) {
        if (members.size() != count) members.pop_back();
        if (seated.try_begin_drive()) {  // What it was sent meanwhile is somebody else's now.
            detail::worker::assume_owner(&seated);
            seated.retire();
            seated.end_drive();
        }
        throw;
    }
}

void runtime::state::drive(member& mine) noexcept {
    base::name_this_thread("chime-" + std::to_string(mine.id));
    if (config.pin_workers) {
        // Refused, it runs anywhere.
        [[maybe_unused]] const std::error_code refused = base::pin_this_thread(mine.processor);
    }
    base::set_timer_slack(std::chrono::nanoseconds{1});
    CHIME_CHECK(mine.worker->try_begin_drive(), "a worker is driven by its own thread alone");
    if (metronome) metronome->nudge();  // Now that it counts as awake.
    while (!mine.is_leaving.load(base::memory_order_acquire)) {
        try {
            turn_until_left(mine);
        } catch (...) {
            report(std::current_exception());
        }
    }
    detail::worker::assume_owner(mine.worker);
    // Relaxed: it is stored before is_leaving, which was acquired.
    if (mine.gives_away.load(base::memory_order_relaxed)) mine.worker->retire();
    mine.worker->end_drive();
}

void runtime::state::turn_until_left(member& mine) const {
    detail::worker& worker = *mine.worker;
    detail::worker::assume_owner(&worker);
    // Relaxed: who leaves for it acquires it in drive().
    while (!mine.is_leaving.load(base::memory_order_relaxed)) {
        const detail::turn_answer last = worker.turn({.is_leaving = mine.is_leaving});
        if (last.is_busy) continue;
        worker.park(last.wake_at, never, mine.is_leaving);
        if (metronome) metronome->nudge();
    }
}

/// What a callback or a detached task has thrown, or what a turn was short of.
void runtime::state::report(std::exception_ptr thrown) noexcept {
    if (!config.on_exception) {
        std::fputs("chime: an exception has reached a worker of a runtime, and runtime_config::on_exception is empty\n",
                   stderr);
        std::rethrow_exception(std::move(thrown));  // Nobody catches it: the program ends, and says what it was.
    }
    config.on_exception(std::move(thrown));
}

/// Waits until nothing is ready, everywhere.
void runtime::state::wait_for_rest() noexcept {
    if (simulated_by != nullptr) {
        simulated_by->drive_until([this] { return crew.is_at_rest(); });
    } else {
        crew.wait_for_rest();
    }
}

/// It was told to leave: waits until it has.
void runtime::state::end_member(member& leaving) const noexcept {
    if (simulated_by == nullptr) {
        leaving.thread.join();
        return;
    }
    detail::worker::assume_owner(leaving.worker);
    if (leaving.is_asleep) leaving.worker->end_park();
    if (leaving.gives_away.load(base::memory_order_relaxed)) leaving.worker->retire();
    leaving.worker->end_drive();
}

runtime_stats runtime::state::stats() const {
    runtime_stats result;
    result.timers = crew.stats();
    const base::lock_guard lock(mutex);
    result.workers.reserve(members.size());
    for (const member& each : members) {
        worker_stats& its = result.workers.emplace_back();
        its.worker = each.id;
        each.worker->add_stats(its.timers);
        its.timers -= each.before;
        its.stuck_reports = each.worker->stuck_reports() - each.stuck_before;
        its.timers.pending = its.timers.tasks = its.timers.waiting = 0;  // Shares of a sum, which mean nothing alone.
    }
    result.workers_added = next_id;
    result.workers_retired = retired;
    if (metronome) {
        result.stuck_reports = metronome->stuck_reports();
        result.metronome_beats = metronome->beats();
    }
    return result;
}

// --- What users call.

runtime::runtime(const runtime_config& config) : runtime(config, nullptr) {}

runtime::runtime(const runtime_config& config, simulator* driver)
    : state_(std::make_unique<state>(config, driver)), home_(&state_->crew), timers_(&state_->timers) {
    const unsigned count = config.workers != 0 ? config.workers : std::min(base::usable_processors(), most_workers);
    try {
        {
            const base::lock_guard lock(state_->mutex);
            state_->start_member(state_->crew.first());
        }
        for (unsigned started = 1; started < count; ++started) add_worker();
        if (state_->metronome && driver == nullptr) state_->metronome->start();
    } catch (...) {
        shutdown();
        throw;
    }
}

runtime::~runtime() {
    if (state_->crew.is_in_forked_child()) {
        // A forked child: the threads are in the parent, and whatever they were doing stays undone. All of it is left alone.
        [[maybe_unused]] const state* const left_alone = state_.release();
        return;
    }
    CHIME_CHECK_USE(!is_on_a_worker(),
                    "a runtime is not destroyed from inside one of its own callbacks or tasks: "
                    "destroy it on a thread that is none of its workers. std::exit() on a worker does "
                    "that to a static one: call shutdown() at the end of main() instead");
    shutdown();
}

bool runtime::is_on_a_worker() const noexcept {
    return home_->is_below_us();
}

/// In a forked child nobody would ever answer.
void runtime::state::refuse_in_forked_child(const char* call) const {
    if (!crew.is_in_forked_child()) return;
    throw std::system_error(
        make_error_code(errc::stopped),
        std::string(call) +
            ": this is a forked child, and the workers are in its parent; exec, or make a runtime here");
}

bool runtime::state::is_own_thread(const runtime& its) const noexcept {
    return its.is_on_a_worker() || (metronome && metronome->is_this_thread());
}

void runtime::refuse_to_wait(const char* call) const {
    state_->refuse_in_forked_child(call);
    if (!state_->is_own_thread(*this)) return;
    throw std::system_error(
        make_error_code(errc::on_a_worker),
        std::string(call) +
            ": this is one of its own threads, which would wait for itself; in a task co_await instead, "
            "otherwise call it on a thread outside");
}

void runtime::wait_for(detail::task_control& awaited) {
    if (state_->simulated_by == nullptr) {
        awaited.wait();
        return;
    }
    state_->simulated_by->drive_until([&] { return awaited.ended.is_complete(); });
    if (!awaited.ended.is_complete()) {
        detail::refuse(
            errc::cancelled,
            "chime::runtime::block_on: nothing moves any more in this simulation, and the task has not ended");
    }
}

void runtime::state::tell_to_leave(member& told) noexcept {
    told.is_leaving.store(true, base::memory_order_seq_cst);  // Before the look at whether it sleeps.
    told.worker->wake_up();
}

scheduler& runtime::get_scheduler() noexcept {
    return state_->scheduler;
}

runtime_stats runtime::stats() const {
    return state_->stats();
}

void runtime::shutdown() {
    if (state_->crew.is_in_forked_child()) return;
    if (state_->is_own_thread(*this)) {
        detail::refuse(
            errc::on_a_worker,
            "chime::runtime::shutdown: this is one of its own threads, which would wait for itself; tell a thread "
            "outside to call it, or destroy the runtime there");
    }
    state_->shut_down();
}

/// Without the lock, because nobody comes or goes any more, and they may need it before they end.
void runtime::state::end_members() noexcept {
    for (member& each : members) tell_to_leave(each);
    for (member& each : members) end_member(each);
}

void runtime::state::shut_down() noexcept {
    const base::lock_guard one_at_a_time(shutdown_mutex);
    if (is_shut_down) return;
    is_shut_down = true;
    base::unique_lock lock(mutex);
    is_closed = true;
    // Those who retire first give away what they have, so that whoever stays can tell it.
    changed.wait(lock, [this]() CHIME_REQUIRES(mutex) {
        return std::none_of(members.begin(), members.end(), [](const member& each) { return each.is_retiring; });
    });
    const bool is_running = !members.empty();
    lock.unlock();
    crew.stop_timers();
    crew.begin_closing();
    if (is_running) wait_for_rest();
    end_members();
    {
        const base::lock_guard still(mutex);
        members.clear();
    }
    if (metronome) metronome->stop();
    crew.destroy_pending();
}

void runtime::dump_pending(std::ostream& out) const {
    state_->crew.dump_pending(out);
}

}  // namespace chime::inline v0
