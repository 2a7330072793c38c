// SPDX-License-Identifier: MIT
#include "base/atomic.hpp"
#include "shim/engine/execution.hpp"
#include "worker/crew.hpp"
#include "worker/worker.hpp"

#include <string>

// No worker sleeps over what it has to do [L8]. Without this, a wake-up that gets lost is seen only if nothing else comes to
// wake the sleeper in time.
//
// Two looks at every worker that sleeps, in whatever scenario. When its thread is really put to sleep: whatever was there
// before it has said that it will sleep, it must have seen. What comes then, the sender must tell it, and may be about to; so
// the other look is when nobody can go on, before time does. Then something may lie in the inbox only if it can wait until
// the worker wakes up by itself: what is given back, and timers that are due later.
//
// The compiler is told to let this file look at what is private.

namespace chime::shim {

namespace {

using namespace chime::detail;

/// Has it the value that it has now since before that one was written?
template <class T, class Other>
bool is_older(const base::atomic<T>& which, const base::atomic<Other>& than) {
    memory& words = execution::words();
    return words.changed_at(&which, sizeof which) < words.changed_at(&than, sizeof than);
}

[[noreturn]] void tell(execution& in, const fiber& who, const char* what) {
    in.fail("L8: " + who.name + " sleeps " + what);
}

bool is_on_its_bell(const worker& mine, const fiber& who) {
    return who.waits_for == &mine.parking_.bell_;
}

void look_at_who_falls_asleep(execution& in, const fiber& who) {
    const worker& mine = *static_cast<const worker*>(who.sleeps_as.worker);
    worker::assume_owner(&mine);
    const auto& published = mine.parking_.published_;
    // Who is not parked any more is about to be rung for.
    if (!is_on_its_bell(mine, who) || !mine.is_parked()) return;
    const auto& is_told = *static_cast<const base::atomic<bool>*>(who.sleeps_as.is_stopped);
    const auto& is_stopped = mine.home().is_stopped_;
    if (!mine.inbox_.is_empty() && is_older(mine.inbox_.top_, published)) {
        tell(in, who, "though something was in its inbox");
    }
    if (is_told.load(base::memory_order_relaxed) && is_older(is_told, published)) {
        tell(in, who, "though it was told to return");
    }
    if (mine.is_wanted_.load(base::memory_order_relaxed) && is_older(mine.is_wanted_, published)) {
        tell(in, who, "though somebody was in need of what it has");
    }
    if (is_stopped.load(base::memory_order_relaxed) && !mine.is_swept() && is_older(is_stopped, published)) {
        tell(in, who, "though everything was stopped");
    }
    if (mine.is_alone_ && mine.is_out_of_work() && is_older(mine.foreign_work_, published)) {
        tell(in, who, "though it was out of work");
    }
}

/// Can it wait until the worker wakes up by itself?
bool can_wait(unit_index index, const timed& its, ordinal until) {
    const state_word value = its.state.load(base::memory_order_relaxed);
    if ((index & slot_bit) != 0 ? phase_of(value) == task_phase::scheduled : state_of(value) == timer_state::posted) {
        return false;
    }
    const bool is_timed = (index & slot_bit) == 0 || its.is_numbered();
    return !crew::is_waiting(index, value) || !is_timed || its.deadline_now() >= until;
}

void look_at_who_sleeps_on(execution& in, const fiber& who) {
    const worker& mine = *static_cast<const worker*>(who.sleeps_as.worker);
    worker::assume_owner(&mine);
    const crew& home = mine.home();
    if (!is_on_its_bell(mine, who)) return;
    if (!mine.is_parked()) tell(in, who, "and is taken to be awake");
    if (static_cast<const base::atomic<bool>*>(who.sleeps_as.is_stopped)->load(base::memory_order_relaxed)) {
        tell(in, who, "on, and was told to return");
    }
    if (mine.has_orders()) tell(in, who, "on, and there are orders");
    if (mine.is_alone_ ? mine.is_out_of_work() : home.has_ready_work()) {
        tell(in, who, mine.is_alone_ ? "on, out of work" : "on, and there is work for anybody");
    }
    std::uint32_t count = 0;
    for (auto index = inbox::index_in(mine.inbox_.top_.load(base::memory_order_relaxed)); index != no_unit; ++count) {
        const timed& its = home.units_.at(index);
        if (home.is_stopped() || count + 1 >= home.most_undrained_.load(base::memory_order_relaxed) ||
            !can_wait(index, its, mine.parked_until())) {
            tell(in, who, "on, and what is in its inbox cannot wait");
        }
        index = its.link.load(base::memory_order_relaxed);
    }
}

[[maybe_unused]] const bool is_watching = [] {
    execution::watch = {look_at_who_falls_asleep, look_at_who_sleeps_on};
    return true;
}();

}  // namespace

}  // namespace chime::shim

#define CHIME_SHIM_JOIN(prefix, name) prefix##name
#define CHIME_SHIM_NAME(prefix, name) CHIME_SHIM_JOIN(prefix, name)
#define CHIME_SHIM_REAL_PARK CHIME_SHIM_NAME(__real_, CHIME_SHIM_PARK)

/// worker::park(): the linker lets all who call it come here first.
extern "C" void CHIME_SHIM_REAL_PARK(chime::detail::worker* parked, chime::detail::ordinal wake_at,
                                     chime::time_point limit, const chime::base::atomic<bool>& is_stopped) noexcept;
extern "C" void CHIME_SHIM_NAME(__wrap_, CHIME_SHIM_PARK)(chime::detail::worker* parked, chime::detail::ordinal wake_at,
                                                          chime::time_point limit,
                                                          const chime::base::atomic<bool>& is_stopped) noexcept {
    using chime::shim::execution;
    if (execution* const in = execution::current()) in->running().sleeps_as = {parked, &is_stopped};
    CHIME_SHIM_REAL_PARK(parked, wake_at, limit, is_stopped);
    if (execution* const in = execution::current()) in->running().sleeps_as = {};
}
