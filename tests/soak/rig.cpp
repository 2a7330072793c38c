// SPDX-License-Identifier: MIT
#include "soak/rig.hpp"

#include "support/lateness.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <thread>

namespace chime::soak {

namespace {

using namespace std::chrono_literals;

runtime_config config_of(promises& kept) {
    runtime_config config;
    config.workers = 2;
    config.max_timers = 200'000;
    config.max_tasks = 100'000;
    config.metronome = true;
    config.metronome_period = 5ms;
    // A worker whose wheel has to grow while there is no memory says so, and tries again.
    config.on_exception = [&kept](const std::exception_ptr& thrown) {
        try {
            std::rethrow_exception(thrown);
        } catch (const std::bad_alloc&) {
        } catch (...) {
            kept.broken("an exception that nobody has thrown");
        }
    };
    return config;
}

}  // namespace

void tireless_loop::run(io_context& driven, promises& kept) noexcept {
    for (;;) {
        try {
            driven.run();
            return;
        } catch (const std::bad_alloc&) {
        } catch (...) {
            kept.broken("an exception that nobody has thrown leaves a loop");
        }
    }
}

rig::rig(promises& kept) : kept_(kept), workers_(config_of(kept)) {
    for (std::size_t which = 0; which < loops_.size(); ++which) {
        loops_[which] =
            std::make_unique<io_context>(io_context_config{.max_timers = 200'000,
                                                           .max_tasks = 100'000,
                                                           .pool_threads = 1,
                                                           .clock = which == jumping_home ? &jumping_ : nullptr});
        threads_[which] = std::make_unique<tireless_loop>(*loops_[which], kept);
    }
}

std::uint64_t rig::pending() const {
    std::uint64_t sum = workers_.stats().timers.pending;
    for (const auto& each : loops_) sum += each->timers().stats().pending;
    return sum;
}

bool rig::settle(std::chrono::seconds patience) {
    const auto is_quiet = [](const timer_stats& sums) {
        return sums.pending == 0 && sums.tasks == 0 && sums.waiting == 0 && sums.migrated == sums.adopted &&
               sums.armed == sums.fired + sums.cancelled && sums.suspensions == sums.resumed() + sums.destroyed;
    };
    const auto all_quiet = [&] {
        return is_quiet(workers_.stats().timers) && std::all_of(loops_.begin(), loops_.end(), [&](const auto& each) {
                   return is_quiet(each->timers().stats());
               });
    };
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!all_quiet() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
    const std::uint64_t broken_before = kept_.count();
    for (std::size_t which = 0; which < loops_.size(); ++which) check(loops_[which]->timers().stats(), 4'096, which);
    const runtime_stats all = workers_.stats();
    check(all.timers, 4'096 * (all.workers_added - all.workers_retired), homes - 1);
    kept_.require(all.timers.migrated == all.timers.adopted, "L7: given away, and taken by nobody");
    return kept_.count() == broken_before;
}

void rig::check(const timer_stats& sums, std::uint64_t most_stale, std::size_t home) {
    const std::string where = home + 1 == homes ? " (runtime)" : " (loop " + std::to_string(home) + ")";
    const auto require = [&](bool holds, const char* sentence) {
        if (!holds) kept_.broken(sentence + where);
    };
    require(sums.armed == sums.fired + sums.cancelled + sums.pending, "L1: a timer was lost or counted twice");
    require(sums.suspensions == sums.resumed() + sums.destroyed + sums.waiting, "L2: a resumption was lost or doubled");
    require(sums.lateness.count() == sums.fired, "L3: fired without a deadline that had passed");
    require(test::count_early(sums.lateness) == 0, "L3: fired before its deadline");
    require(test::is_max_sane(sums.lateness), "L3: the latest one is in no bucket");
    require(sums.pending == 0, "L5: a timer is still pending long after its deadline");
    require(sums.tasks == 0 && sums.waiting == 0, "L5: a task is still waiting long after its deadline");
    require(sums.stale_tickets <= std::max(most_stale, sums.pending), "L6: stale tickets pile up");
    require(sums.refused == 0, "refused, although there was room");
}

void rig::finish() {
    for (auto& each : threads_) each.reset();
    for (const auto& each : loops_) kept_.require(each->is_out_of_work(), "L9: a loop is not out of work at the end");
    workers_.shutdown();
    const runtime_stats all = workers_.stats();
    kept_.require(all.timers.pending == 0 && all.timers.tasks == 0 && all.timers.waiting == 0,
                  "L9: something is left after the shutdown");
    kept_.require(all.workers.empty(), "L9: a worker is left after the shutdown");
}

}  // namespace chime::soak
