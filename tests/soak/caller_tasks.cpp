// SPDX-License-Identifier: MIT
#include "soak/caller.hpp"
#include "soak/small_steps.hpp"

#include <chime/cpu_pool.hpp>
#include <chime/sleep.hpp>

#include <chrono>
#include <new>
#include <utility>

// The tasks of a caller: they sleep, go from home to home, have something computed, and end early where there is no memory to
// go on.

namespace chime::soak {

task<int> caller::nap(std::size_t home, int naps, cancel_token token, std::uint64_t seed) {
    const end_of_task at_the_end(tasks_);
    test::random_source random(seed);
    int cancelled = 0;
    for (int count = 0; count < naps && cancelled == 0; ++count) {
        const auto delay = std::chrono::microseconds{random.below(random.one_in(8) ? 5'000 : 200)};
        const time_point until = rig_.now(home) + delay;
        wake_reason reason = wake_reason::cancelled;  // If there is no memory to sleep, it ends.
        try {
            auto pause = random.one_in(2) ? rig_.timers_of(home).sleep_for(delay, token)
                                          : rig_.timers_of(home).sleep_until(until, token);
            reason = co_await pause;
        } catch (const std::bad_alloc&) {
            kept_.refused.fetch_add(1, std::memory_order_relaxed);
        }
        if (reason == wake_reason::cancelled) ++cancelled;
        if (reason == wake_reason::elapsed && rig_.now(home) < until) {
            kept_.early.fetch_add(1);
            kept_.broken("L3: a sleeper was woken before its time");
        }
        linger(random);
    }
    co_return naps;
}

/// Goes from home to home, sleeping in each; where there is no memory to arrive or to sleep, it does not.
task<> caller::hop(std::uint64_t seed) {
    const end_of_task at_the_end(tasks_);
    test::random_source random(seed);
    for (int hops = 0; hops < 6; ++hops) {
        const std::size_t home = random.below(rig::homes);
        scheduler& next = home + 1 == rig::homes ? rig_.workers().get_scheduler() : rig_.loop(home).get_scheduler();
        try {
            auto going = next.schedule();
            co_await going;
            auto pause = sleep_for(std::chrono::microseconds{random.below(1'000)});
            co_await pause;
        } catch (const std::bad_alloc&) {
            kept_.refused.fetch_add(1, std::memory_order_relaxed);
        }
    }
}

task<> caller::compute(std::size_t loop, int number) {
    const end_of_task at_the_end(tasks_);
    try {
        auto job = rig_.loop(loop).cpu_pool().submit([number] { return number * 2; });
        const int result = co_await job;
        kept_.require(result == number * 2, "a job gave the wrong result");
    } catch (const std::bad_alloc&) {
        kept_.refused.fetch_add(1, std::memory_order_relaxed);
    }
}

void caller::spawn_one() {
    if (tasks_ > 500) return;
    count_unless_refused(tasks_, [this] { spawn_something(); });
    if (random_.one_in(200)) {
        source_.request_cancel();
        source_ = {};
    }
}

void caller::spawn_something() {
    const std::size_t home = some_home();
    const std::uint64_t seed = random_.next();
    switch (random_.below(4)) {
    case 0:
        if (home + 1 == rig::homes) {
            spawn_detached(rig_.workers(), hop(seed));
        } else {
            spawn_detached(rig_.loop(home), hop(seed));
        }
        return;
    case 1: {
        const std::size_t loop = random_.below(rig::homes - 1);
        spawn_detached(rig_.loop(loop), compute(loop, static_cast<int>(random_.below(1'000))));
        return;
    }
    default: break;
    }
    const int naps = static_cast<int>(random_.below(8));
    const cancel_token token = random_.one_in(2) ? source_.token() : cancel_token{};
    auto joined = home + 1 == rig::homes ? spawn(rig_.workers(), nap(home, naps, token, seed))
                                         : spawn(rig_.loop(home), nap(home, naps, token, seed));
    if (joins_.size() < most_joins && random_.one_in(2)) joins_.push_back(std::move(joined));
}

void caller::end_one_join() {
    if (joins_.empty()) return;
    const auto position = static_cast<std::ptrdiff_t>(random_.below(joins_.size()));
    join_handle<int> joined = std::move(joins_[static_cast<std::size_t>(position)]);
    joins_.erase(joins_.begin() + position);
    if (random_.one_in(2)) joined.cancel();
    if (!joined.is_done() && !random_.one_in(16)) return;  // Dropped: it runs on its own.
    joined.wait();
    const int naps = joined.take();
    kept_.require(naps >= 0 && naps < 8, "a task gave the wrong result");
}

}  // namespace chime::soak
