// SPDX-License-Identifier: MIT
#include "clients.hpp"
#include "screen.hpp"
#include "sides.hpp"
#include "wording.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/timers.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <vector>

namespace chime_demo {
namespace {

using namespace std::chrono_literals;

chime::task<> sleep_once(witness& seen, std::chrono::nanoseconds time) {
    seen.started();
    const clock::time_point deadline = clock::now() + time;
    const chime::wake_reason why = co_await chime::sleep_until(deadline);
    if (why == chime::wake_reason::elapsed) {
        seen.woke(deadline);
    } else {
        seen.sent_home();
    }
}

/// Starts every `step`-th sleeper, from `first` on; a task per worker does.
chime::task<> start_sleepers(chime::runtime& rt, const work& work, witness& seen, std::size_t first, std::size_t step) {
    for (std::size_t which = first; which < work.sleepers && !interrupted; which += step) {
        chime::spawn_detached(rt, sleep_once(seen, work.sleep_of(which)));
        if (which / step % 64 == 0) co_await chime::yield();  // So that those who have begun can go to sleep.
    }
}

/// Timeouts of the clients.
class chime_timeouts {
 public:
    using batch = std::vector<chime::timer_handle>;

    chime_timeouts(chime::timers& timers, witness& seen) : timers_(timers), seen_(seen) {}

    static batch make_batch(std::size_t count) {
        batch made;
        made.reserve(count);
        return made;
    }
    void arm(batch& timeouts, clock::time_point deadline) {
        timeouts.push_back(timers_.at(deadline, [&seen = seen_, deadline] { seen.expired(deadline); }));
    }
    std::uint64_t cancel(batch& timeouts) {
        std::uint64_t cancelled = 0;
        for (const chime::timer_handle timeout : timeouts) {
            if (timers_.cancel(timeout) == chime::cancel_result::cancelled) ++cancelled;
        }
        return cancelled;
    }

 private:
    chime::timers& timers_;
    witness& seen_;
};

/// The oldest worker leaves, a new one has come before.
class shift_change {
 public:
    shift_change(chime::runtime& rt, const work& work) : rt_(rt), period_(work.longest_sleep / 4), next_(period_) {
        for (chime::worker_id which = 0; which < work.workers; ++which) workers_.push_back(which);
    }

    /// Three times in a run, a quarter of it apart.
    void take_place(std::chrono::nanoseconds since_start, screen& screen) {
        if (since_start < next_ || changes_ == 3) return;
        next_ += period_;
        ++changes_;
        const std::uint64_t moved_before = rt_.stats().timers.migrated;
        const clock::time_point begun = clock::now();
        workers_.push_back(rt_.add_worker());
        const chime::worker_id oldest = workers_.front();
        workers_.pop_front();
        rt_.retire_worker(oldest);
        const std::uint64_t moved = rt_.stats().timers.migrated - moved_before;
        screen.say("* worker " + std::to_string(workers_.back()) + " joins, worker " + std::to_string(oldest) +
                   " retires\n  and leaves " + grouped(moved) + " timers: " + readable(clock::now() - begun));
    }

 private:
    chime::runtime& rt_;
    std::chrono::nanoseconds period_;
    std::chrono::nanoseconds next_;
    int changes_ = 0;
    std::deque<chime::worker_id> workers_;
};

ledger ledger_of(const chime::runtime_stats& now) {
    return {.is_there = true,
            .armed = now.timers.armed,
            .fired = now.timers.fired,
            .cancelled = now.timers.cancelled,
            .pending = now.timers.pending,
            .tasks_left = now.timers.tasks,
            .workers_added = now.workers_added,
            .workers_retired = now.workers_retired,
            .moved = now.timers.migrated};
}

}  // namespace

results run_on_chime(const work& work) {
    witness seen;
    screen screen(work);
    results result;
    const clock::time_point start = clock::now();
    chime::runtime rt(
        {.workers = work.workers, .max_timers = 2 * work.sleepers + 100'000, .max_tasks = work.sleepers + 1'000});
    chime_timeouts timeouts(rt.timers(), seen);
    clients clients(timeouts, work, seen);
    const auto now = [&] {
        const chime::runtime_stats stats = rt.stats();
        return moment{clock::now() - start, seen.sum(), stats.timers.pending, stats.workers.size()};
    };

    std::vector<chime::join_handle<void>> starters;
    starters.reserve(work.workers);
    for (unsigned which = 0; which < work.workers; ++which) {
        starters.push_back(rt.spawn(start_sleepers(rt, work, seen, which, work.workers)));
    }
    for (auto& each : starters) each.wait();
    while (seen.sum().started < work.sleepers && !interrupted) std::this_thread::sleep_for(1ms);
    result.starting = clock::now() - start;
    if (!interrupted) screen.say("* " + grouped(work.sleepers) + " coroutines started in " + readable(result.starting));

    clients.start();
    shift_change change(rt, work);
    const auto is_over = [&] {
        return clients.are_done() && rt.stats().timers.pending == 0 && seen.sum().woken == work.sleepers;
    };
    while (!interrupted && !is_over()) {
        const moment shown = now();
        screen.show(shown);
        change.take_place(shown.since_start, screen);
        std::this_thread::sleep_for(20ms);
    }
    clients.wait();
    result.elapsed = clock::now() - start;
    result.is_complete = !interrupted;
    rt.shutdown();  // Whoever still sleeps is sent home.
    result.seen = seen.sum();
    result.ledger = ledger_of(rt.stats());
    screen.finish(now());
    return result;
}

}  // namespace chime_demo
