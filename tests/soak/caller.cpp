// SPDX-License-Identifier: MIT
#include "soak/caller.hpp"

#include "soak/small_steps.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

namespace chime::soak {

using namespace std::chrono_literals;

gift exchange::swap(const gift& given) {
    constexpr std::size_t most = 256;
    const std::lock_guard lock(mutex_);
    if (given.timer != nullptr) gifts_.push_back(given);
    if (gifts_.size() < most / 2) return {};
    const gift got = gifts_.front();
    gifts_.pop_front();
    return got;
}

void exchange::clear() {
    const std::lock_guard lock(mutex_);
    gifts_.clear();
}

void caller::step() {
    try {
        step_or_throw();
    } catch (const std::bad_alloc&) {
        kept_.refused.fetch_add(1, std::memory_order_relaxed);
    }
}

void caller::step_or_throw() {
    kept_.operations.fetch_add(1, std::memory_order_relaxed);
    switch (random_.below(100)) {
    case 0: get_stuck(); break;
    case 1: change_workers(); break;
    case 2:
    case 3: rest(); break;
    case 4:
    case 5: repeat(); break;
    case 6:
    case 7:
    case 8: arm_with_token(); break;
    case 9:
    case 10:
    case 11:
    case 12: post_one(); break;
    default:
        switch (random_.below(12)) {
        case 0:
        case 1:
        case 2: cancel_one(); break;
        case 3:
        case 4: postpone_one(); break;
        case 5: trade(); break;
        case 6: use_foreign(); break;
        case 7: spawn_one(); break;
        case 8: end_one_join(); break;
        default: arm(); break;
        }
    }
    linger(random_);
}

std::chrono::nanoseconds caller::some_delay() {
    // Most are over soon, some take long enough to be cancelled or postponed; none longer than two seconds.
    if (random_.one_in(20)) return 0ns;
    if (random_.one_in(10)) return std::chrono::milliseconds{random_.below(2'000)};
    return std::chrono::microseconds{random_.below(20'000)};
}

// --- Timers.

void caller::arm() {
    own_timer& its = some_timer();
    if (its.tracked.is_pending()) return;
    its.home = some_home();
    const auto delay = some_delay();
    const time_point deadline = rig_.now(its.home) + delay;
    its.number = its.tracked.begin(its.home, deadline);
    if (random_.one_in(16)) {
        // More than any pool has at hand.
        const std::array<char, 2'000> large{};
        arm(its, delay, deadline, [this, &its, number = its.number, large] {
            fire(its.tracked, number + static_cast<std::uint64_t>(large[0]));
        });
    } else {
        arm(its, delay, deadline, [this, &its, number = its.number] { fire(its.tracked, number); });
    }
}

template <class Function>
void caller::arm(own_timer& its, std::chrono::nanoseconds delay, time_point deadline, const Function& function) {
    timers& all = rig_.timers_of(its.home);
    try {
        its.handle = random_.one_in(2) ? all.after(delay, function) : all.at(deadline, function);
    } catch (const std::bad_alloc&) {
        kept_.require(its.tracked.end(its.number), "a timer that was refused has fired");
        its.number = 0;
        throw;
    }
}

void caller::fire(tracked_timer& its, std::uint64_t number) {
    const std::size_t home = its.home();
    const auto late = rig_.now(home) - its.allowed_from();
    if (late < duration::zero()) {
        kept_.early.fetch_add(1);
        kept_.broken("L3: a timer fired before its deadline");
    }
    std::int64_t latest_ns = kept_.latest_ns.load(std::memory_order_relaxed);
    // Where the clock has jumped, it says nothing.
    while (home != rig::jumping_home && late.count() > latest_ns &&
           !kept_.latest_ns.compare_exchange_weak(latest_ns, late.count())) {}
    kept_.require(its.end(number), "L4: a timer fired twice, or after it was cancelled");
}

void caller::note_end(cancel_result answer, tracked_timer& its, std::uint64_t number) {
    if (answer != cancel_result::cancelled) return;
    kept_.require(its.end(number), "L4: a timer was cancelled twice, or after it had fired");
}

void caller::cancel_one() {
    own_timer& its = some_timer();
    if (its.number == 0) return;
    timers& all = rig_.timers_of(its.home);
    const bool waits = random_.one_in(8);
    const cancel_result answer = waits ? all.cancel_and_wait(its.handle) : all.cancel(its.handle);
    note_end(answer, its.tracked, its.number);
    // Gone: another thread may have cancelled it, and not have written that down yet.
    if (answer == cancel_result::cancelled || (waits && answer == cancel_result::running)) {
        kept_.require(!its.tracked.is_pending(), "G4: after cancel_and_wait it may still run");
        kept_.require(all.cancel(its.handle) == cancel_result::gone, "G4: a timer was cancelled a second time");
    }
}

void caller::postpone_one() {
    own_timer& its = some_timer();
    if (!its.tracked.is_pending()) return;
    const auto delay = some_delay();
    const time_point before = its.tracked.allowed_from();
    const time_point after = rig_.now(its.home) + delay;
    // While both may be in force, it may fire at the earlier one.
    its.tracked.allow_from(std::min(before, after));
    const bool is_postponed = rig_.timers_of(its.home).postpone(its.handle, delay);
    its.tracked.allow_from(is_postponed ? after : std::min(before, after));
}

/// Gives a timer away and does something with one that another thread has given.
void caller::trade() {
    own_timer& its = some_timer();
    gift offered;
    if (its.number != 0 && its.tracked.is_pending()) {
        offered = {.handle = its.handle, .home = its.home, .timer = &its.tracked, .number = its.number};
    }
    const gift got = shared_.swap(offered);
    if (got.timer == nullptr) return;
    timers& all = rig_.timers_of(got.home);
    note_end(random_.one_in(4) ? all.cancel_and_wait(got.handle) : all.cancel(got.handle), *got.timer, got.number);
}

/// A handle that is another home's, or made up, touches nobody.
void caller::use_foreign() {
    const own_timer& its = some_timer();
    if (its.number == 0) return;
    timers& other = rig_.timers_of((its.home + 1 + random_.below(rig::homes - 1)) % rig::homes);
    kept_.require(other.cancel(its.handle) == cancel_result::gone, "G5: a foreign handle was not gone");
    kept_.require(!other.postpone(its.handle, 1h), "G5: a foreign handle was postponed");
    timer_handle forged = its.handle;
    forged.life += 1 + random_.below(1'000) + (std::uint64_t{1} << 40U);  // A life that nobody has lived yet.
    kept_.require(rig_.timers_of(its.home).cancel(forged) == cancel_result::gone, "G5: a forged handle was not gone");
}

void caller::arm_with_token() {
    cancel_source source;
    for (int left = 8; left != 0; --left) {
        own_timer& its = some_timer();
        if (its.tracked.is_pending()) continue;
        its.home = some_home();
        its.number = 0;  // Not to be cancelled by hand: the closure would tell, too.
        const auto delay = some_delay();
        const std::uint64_t number = its.tracked.begin(its.home, rig_.now(its.home) + delay);
        // What the token ends is ended here: the closure tells.
        struct told {
            tracked_timer* timer;
            std::uint64_t number;
            told(tracked_timer* its_timer, std::uint64_t its_number) : timer(its_timer), number(its_number) {}
            told(told&& other) noexcept : timer(std::exchange(other.timer, nullptr)), number(other.number) {}
            told& operator=(told&&) = delete;
            ~told() {
                if (timer != nullptr) timer->end(number);
            }
        };
        its.handle = rig_.timers_of(its.home).after(
            delay,
            [this, end = told(&its.tracked, number)]() mutable {
                tracked_timer* const timer = std::exchange(end.timer, nullptr);
                fire(*timer, end.number);
            },
            source.token());
    }
    linger(random_);
    // Whoever is not cancelled comes to its end by itself.
    if (!random_.one_in(3)) source.request_cancel();
}

void caller::repeat() {
    const auto drop = [&](std::size_t position) {
        const auto [home, handle] = periodic_[position];
        rig_.timers_of(home).cancel_and_wait(handle);
        periodic_.erase(periodic_.begin() + static_cast<std::ptrdiff_t>(position));
    };
    if (periodic_.size() >= most_periodic || (!periodic_.empty() && random_.one_in(3))) {
        drop(random_.below(periodic_.size()));
        return;
    }
    constexpr std::array policies{missed_ticks::skip, missed_ticks::burst, missed_ticks::delay};
    const std::size_t home = some_home();
    const auto period = std::chrono::microseconds{500 + random_.below(20'000)};
    const time_point first = rig_.now(home) + period;
    const missed_ticks policy = policies[random_.below(3)];
    // Nobody makes up for all the ticks that a clock has jumped over.
    const bool would_burst = home == rig::jumping_home && policy == missed_ticks::burst;
    const auto tick = [this, first, home] {
        if (rig_.now(home) >= first) return;
        kept_.early.fetch_add(1);
        kept_.broken("L3: a periodic timer fired before its first deadline");
    };
    periodic_.emplace_back(home, rig_.timers_of(home).every(period, would_burst ? missed_ticks::skip : policy, tick));
}

void caller::post_one() {
    io_context& loop = rig_.loop(random_.below(rig::homes - 1));
    count_unless_refused(posted_, [&] { loop.post([this] { posted_.fetch_sub(1); }); });
}

// --- Trouble.

/// Somebody's callback takes its time.
void caller::get_stuck() {
    if (!random_.one_in(10)) return;
    const auto stuck_for = std::chrono::microseconds{random_.below(random_.one_in(20) ? 100'000 : 5'000)};
    timers& home = rig_.timers_of(some_home());
    count_unless_refused(posted_, [&] {
        home.after(0s, [this, stuck_for] {
            std::this_thread::sleep_for(stuck_for);
            posted_.fetch_sub(1);
        });
    });
}

void caller::change_workers() {
    if (added_.size() < most_added && random_.one_in(2)) {
        added_.push_back(rig_.workers().add_worker());
    } else if (!added_.empty()) {
        rig_.workers().retire_worker(added_.back());
        added_.pop_back();
    }
}

void caller::rest() {
    std::this_thread::sleep_for(std::chrono::microseconds{random_.below(300)});
}

void caller::let_go() {
    for (const auto& [home, handle] : periodic_) rig_.timers_of(home).cancel_and_wait(handle);
    periodic_.clear();
    joins_.clear();
    for (const worker_id each : added_) rig_.workers().retire_worker(each);
    added_.clear();
}

void caller::check_at_rest() {
    for (const own_timer& each : mine_) {
        kept_.require(!each.tracked.is_pending(), "G6: a timer neither fired nor was cancelled");
    }
    kept_.require(posted_ == 0, "G6: a posted function did not run");
    kept_.require(tasks_ == 0, "G6: a task did not come to its end");
}

}  // namespace chime::soak
