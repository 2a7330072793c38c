// SPDX-License-Identifier: MIT
#include "worker/crew.hpp"

#include <chime/detail/arming.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <ostream>
#include <source_location>
#include <string_view>
#include <utility>

// What a worker tells about itself, and a crew about what it holds.

namespace chime::inline v0 {

std::uint64_t lateness_histogram::count() const noexcept {
    std::uint64_t total = 0;
    for (const std::uint64_t bucket : buckets) total += bucket;
    return total;
}

std::chrono::nanoseconds lateness_histogram::quantile(double fraction) const noexcept {
    const std::uint64_t total = count();
    if (total == 0) return {};
    const double share = std::ceil(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(total));
    const auto wanted = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(share));
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket < bucket_count; ++bucket) {
        seen += buckets[bucket];
        if (seen < wanted) continue;
        const auto end =
            bucket >= 63 ? std::chrono::nanoseconds::max() : std::chrono::nanoseconds{std::int64_t{1} << bucket};
        return std::min(end, max);
    }
    return max;
}

timer_stats& timer_stats::operator-=(const timer_stats& before) noexcept {
    armed -= before.armed;
    fired -= before.fired;
    cancelled -= before.cancelled;
    postponed -= before.postponed;
    refused -= before.refused;
    suspensions -= before.suspensions;
    resumed_by_timer -= before.resumed_by_timer;
    resumed_by_cancel -= before.resumed_by_cancel;
    resumed_by_completion -= before.resumed_by_completion;
    resumed_by_shutdown -= before.resumed_by_shutdown;
    destroyed -= before.destroyed;
    resumed_inline -= before.resumed_inline;
    resumed_queued -= before.resumed_queued;
    stolen -= before.stolen;
    migrated -= before.migrated;
    adopted -= before.adopted;
    stale_dropped -= before.stale_dropped;
    stale_vacant -= before.stale_vacant;
    compactions -= before.compactions;
    stale_cancelled -= before.stale_cancelled;
    scrubbed -= before.scrubbed;
    cascaded -= before.cascaded;
    turns -= before.turns;
    parks -= before.parks;
    wakeups -= before.wakeups;
    idle_wakeups -= before.idle_wakeups;
    commands -= before.commands;
    for (std::size_t bucket = 0; bucket < lateness_histogram::bucket_count; ++bucket) {
        lateness.buckets[bucket] -= before.lateness.buckets[bucket];
    }
    return *this;
}

namespace detail {

void worker::publish_wheel_counters() noexcept {
    const std::size_t tickets = wheel_.tickets();
    counters_.tickets.set(tickets);
    counters_.stale_tickets.set(wheel_.stale());
    counters_.stale_dropped.set(wheel_.stale_dropped());
    counters_.stale_vacant.set(wheel_.stale_vacant());
    counters_.compactions.set(wheel_.compactions());
    counters_.scrubbed.set(wheel_.scrubbed());
    counters_.cascaded.set(wheel_.cascaded());
}

void worker::add_stats(timer_stats& sums) const noexcept {
    const worker_counters& mine = counters_;
    sums.armed += mine.armed.get();
    sums.fired += mine.fired.get();
    sums.cancelled += mine.cancelled.get();
    sums.postponed += mine.postponed.get();
    sums.pending += mine.pending.get();
    sums.tasks += mine.tasks.get();
    sums.suspensions += mine.suspensions.get();
    sums.waiting += mine.waiting.get();
    sums.resumed_by_timer += mine.resumed_by[static_cast<std::size_t>(wake_cause::timer)].get();
    sums.resumed_by_cancel += mine.resumed_by[static_cast<std::size_t>(wake_cause::cancelled)].get();
    sums.resumed_by_completion += mine.resumed_by[static_cast<std::size_t>(wake_cause::completion)].get();
    sums.resumed_by_shutdown += mine.resumed_by[static_cast<std::size_t>(wake_cause::shutdown)].get();
    sums.destroyed += mine.destroyed.get();
    sums.resumed_inline += mine.resumed_inline.get();
    sums.resumed_queued += mine.resumed_queued.get();
    sums.stolen += mine.stolen.get();
    sums.migrated += mine.migrated.get();
    sums.adopted += mine.adopted.get();
    sums.tickets += mine.tickets.get();
    sums.stale_tickets += mine.stale_tickets.get();
    sums.stale_dropped += mine.stale_dropped.get();
    sums.stale_vacant += mine.stale_vacant.get();
    sums.compactions += mine.compactions.get();
    sums.stale_cancelled += mine.stale_cancelled.get();
    sums.scrubbed += mine.scrubbed.get();
    sums.cascaded += mine.cascaded.get();
    sums.turns += mine.turns.get();
    sums.parks += mine.parks.get();
    sums.wakeups += wakeups_.load(base::memory_order_relaxed);
    sums.idle_wakeups += mine.idle_wakeups.get();
    sums.commands += mine.commands.get();
    sums.longest_callback = std::max(sums.longest_callback, std::chrono::nanoseconds{mine.longest_callback_ns.get()});
    sums.longest_turn = std::max(sums.longest_turn, std::chrono::nanoseconds{mine.longest_turn_ns.get()});
    for (std::size_t bucket = 0; bucket < lateness_histogram::bucket_count; ++bucket) {
        sums.lateness.buckets[bucket] += mine.lateness[bucket].get();
    }
    sums.lateness.max = std::max(sums.lateness.max, std::chrono::nanoseconds{mine.latest_ns.get()});
}

timer_stats crew::stats() const noexcept {
    timer_stats sums;
    const std::uint32_t count = seat_count();
    for (std::uint32_t seat = 0; seat < count; ++seat) at(seat).add_stats(sums);
    const std::uint64_t spawned = outside_.sum(outside_count::spawned);
    // What is pending of that is the difference, so both are of the same moment, as far as that can be had: whoever is kept from
    // going on between the two would take all that was armed meanwhile for pending.
    std::uint64_t cancelled = outside_.sum(outside_count::cancelled);
    std::uint64_t armed = outside_.sum(outside_count::armed);
    for (unsigned looks = 0; looks < 8; ++looks) {
        const std::uint64_t before = std::exchange(cancelled, outside_.sum(outside_count::cancelled));
        if (cancelled - before <= 16) break;
        armed = outside_.sum(outside_count::armed);
    }
    sums.armed += armed;
    sums.cancelled += cancelled;
    sums.postponed += outside_.sum(outside_count::postponed);
    sums.pending += armed - cancelled;  // Each is counted once there, because that may be a step on a shared line.
    sums.refused = outside_.sum(outside_count::refused);
    sums.tasks += spawned;
    sums.suspensions += spawned;
    sums.waiting += spawned;
    sums.migrated += outside_.sum(outside_count::migrated);
    // Read one after the other while others count: an end may be seen, and its beginning not.
    for (std::uint64_t* const each : {&sums.pending, &sums.tasks, &sums.waiting}) {
        if (static_cast<std::int64_t>(*each) < 0) *each = 0;
    }
    return sums;
}

namespace {

bool is_listed(state_word value) noexcept {
    return state_of(value) == timer_state::armed || state_of(value) == timer_state::running;
}

void print_count(std::ostream& out, std::size_t count, const char* noun) {
    out << count << ' ' << noun << (count == 1 ? "" : "s");
}

void print_line_of(std::ostream& out, std::size_t count, const char* noun) {
    if (count == 0) return;
    out << "  ";
    print_count(out, count, noun);
    out << '\n';
}

void print_deadline(std::ostream& out, ordinal deadline, ordinal now) {
    if (deadline == end_of_time) {
        out << "never";
    } else if (deadline <= now) {
        out << "due";
    } else {
        out << "in " << static_cast<double>(deadline - now) / 1e9 << " s";
    }
}

/// What the compiler says of a function template in brackets at the end: the type that it was made for.
void print_name(std::ostream& out, std::string_view description) {
    const std::size_t begin = description.find("Function = ");
    if (begin == std::string_view::npos) return;
    const std::string_view rest = description.substr(begin + std::string_view("Function = ").size());
    out << ", " << rest.substr(0, rest.rfind(']'));
}

void print_where(std::ostream& out, const char* verb, const void* where) {
    if constexpr (sizeof(std::source_location) == sizeof(const void*)) {
        if (where == nullptr) return;
        const auto place = std::bit_cast<std::source_location>(where);
        out << ", " << verb << " at " << place.file_name() << ':' << place.line();
    }
}

}  // namespace

/// Looks at all records and slots. Whose word has changed when the rest was read was somebody else's by then.
void crew::find_overdue(ordinal now, std::span<overdue_timers> by_seat) const noexcept {
    const auto look_at = [&](const timed& its, state_word value) {
        // Acquire: comes before the second look at the word; each life of a record gives it another one.
        const ordinal deadline = its.deadline.load(base::memory_order_acquire);
        const std::uint32_t seat = its.owner();
        if (deadline > now || seat >= by_seat.size()) return;
        if (its.state.load(base::memory_order_relaxed) != value) return;
        ++by_seat[seat].count;
        by_seat[seat].first = std::min(by_seat[seat].first, deadline);
    };
    for (std::size_t position = 0; position < callbacks_.size(); ++position) {
        const callback& its = callbacks_.at(callback_pool::index_of(position));
        // Acquire: pairs with the release that armed it, so the deadline is none of an earlier life.
        const state_word value = its.state.load(base::memory_order_acquire);
        if (state_of(value) == timer_state::armed) look_at(its, value);
    }
    for (std::size_t position = 0; position < slots_.size(); ++position) {
        const task_slot& its = slots_.at(slot_pool::index_of(position));
        const state_word value = its.state.load(base::memory_order_acquire);  // The same, for a sleep.
        if (phase_of(value) == task_phase::idle && its.is_numbered()) look_at(its, value);
    }
}

const char* crew::reason_of_stop() const noexcept {
    if (is_alone_)
        return "the timers of this context were stopped for good, by stop() or because it is being destroyed; what may "
               "run then can call try_after() and the like, which answer instead of throwing";
    // Relaxed: it is only told. Both are the end, and who was shut down was stopped before.
    return is_closing_.load(base::memory_order_relaxed)
               ? "the runtime was shut down, for good; what may run then can call try_spawn() and the like, which answer "
                 "instead of throwing"
               : "the timers of this runtime were stopped, by stop() or by its shutdown, for good; what may run then can "
                 "call try_after() and the like, which answer instead of throwing";
}

/// One line: how many lines of each kind follow. A task that sleeps has a timer, too, and counts as a task alone.
void crew::dump_headline(std::ostream& out) const {
    std::size_t timers = 0;
    std::size_t functions = 0;
    for (std::size_t position = 0; position < callbacks_.size(); ++position) {
        // Relaxed: nothing else is read.
        const state_word value =
            callbacks_.at(callback_pool::index_of(position)).state.load(base::memory_order_relaxed);
        if (is_listed(value)) ++timers;
        if (state_of(value) == timer_state::posted) ++functions;
    }
    std::size_t tasks = 0;
    std::size_t sleepers = 0;
    for (std::size_t position = 0; position < slots_.size(); ++position) {
        const task_slot& its = slots_.at(slot_pool::index_of(position));
        const task_phase phase = phase_of(its.state.load(base::memory_order_relaxed));
        if (phase == task_phase::vacant) continue;
        ++tasks;
        if (phase == task_phase::idle && its.is_numbered()) ++sleepers;
    }
    out << "chime " << noun() << ' ' << identity_ << ": ";
    print_count(out, timers, "timer");
    out << ", ";
    print_count(out, tasks, "task");
    if (sleepers != 0) out << " (" << sleepers << " asleep)";
    out << '\n';
    print_line_of(out, functions, "posted function");
    print_line_of(out, guards_.load(base::memory_order_relaxed), "work guard");
    print_line_of(out, first().outside_work_.load(base::memory_order_relaxed), "pool job");
}

void crew::dump_pending(std::ostream& out) const {
    const ordinal at = to_ordinal(now());
    dump_headline(out);
    for (std::size_t position = 0; position < callbacks_.size(); ++position) {
        const callback& its = callbacks_.at(callback_pool::index_of(position));
        const state_word value = its.state.load(base::memory_order_acquire);
        if (!is_listed(value)) continue;
        out << "  timer " << position << '/' << life_of(value) << ": ";
        if (state_of(value) == timer_state::running) {
            out << "running";
        } else {
            print_deadline(out, its.deadline_now(), at);
        }
        if (settings_.records_locations) {
            print_where(out, "armed", location_of(callback_pool::index_of(position)).load(base::memory_order_relaxed));
        } else {
            print_name(out, its.its_operations().name());
        }
        out << '\n';
    }
    static constexpr const char* phase_names[] = {"vacant", "executing",   "suspending",
                                                  "idle",   "woken early", "scheduled"};
    for (std::size_t position = 0; position < slots_.size(); ++position) {
        const task_slot& its = slots_.at(slot_pool::index_of(position));
        const state_word value = its.state.load(base::memory_order_acquire);
        const task_phase phase = phase_of(value);
        if (phase == task_phase::vacant) continue;
        out << "  task " << position << ": ";
        if (phase != task_phase::idle) {
            out << phase_names[static_cast<std::size_t>(phase)];
        } else if (!its.is_numbered()) {
            out << "waits for a task, a job or a callback, not for a time";
        } else {
            out << "sleeps, ";
            print_deadline(out, its.deadline_now(), at);
        }
        // Never by way of its control: the task may end meanwhile.
        const void* const where = settings_.records_locations
                                      ? location_of(slot_pool::index_of(position)).load(base::memory_order_relaxed)
                                      : its.where();
        print_where(out, "spawned", where);
        out << '\n';
    }
}

}  // namespace detail
}  // namespace chime::inline v0
