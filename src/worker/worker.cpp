// SPDX-License-Identifier: MIT
#include "worker/worker.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/old_bug.hpp"
#include "base/thread.hpp"
#include "worker/crew.hpp"
#include "worker/hot_paths.hpp"
#include "worker/scopes.hpp"

#include <chime/detail/frame_memory.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace chime::inline v0::detail {

namespace {

/// How much of a debt can be paid by who has so many, and keeps a reserve.
std::size_t payable(std::size_t owed, std::size_t count) noexcept {
    return std::min(owed, count - std::min(count, kept_in_reserve));
}

/// So much later, and `never` at the latest.
ordinal later_by(std::chrono::nanoseconds slack, ordinal when) noexcept {
    const auto more = static_cast<ordinal>(slack.count());
    return when > end_of_time - more ? end_of_time : when + more;
}

constexpr std::uint64_t crowd = 8;  ///< So many timers in one turn are one.

constexpr std::size_t frames_ahead = 4;  ///< A frame that is not in the cache takes as long as so many sleepers.

/// What comes due together with the end of a limited time runs before it ends, if it is quick: no turn is cut shorter than this.
constexpr std::chrono::microseconds least_turn{100};

constexpr std::size_t most_shared = std::size_t{1} << 16U;  ///< Whoever needs more asks again.

}  // namespace

[[gnu::tls_model("initial-exec")]] thread_local constinit worker::turn_of_thread worker::turning{};

time_point worker::base_now() noexcept {
    return base::now();
}

time_point worker::followed_now() const noexcept {
    return crew_.followed_now();
}

worker::worker(crew& home, std::uint32_t seat)
    : crew_(home),
      callbacks_(home.callbacks_),
      slots_(home.slots_),
      units_(callbacks_, slots_, seat, !home.is_alone_),
      free_callbacks_(callbacks_),
      free_slots_(slots_),
      clock_(home.clock_),
      settings_(home.settings_),
      seat_(seat),
      names_(std::bit_cast<packed_handle>(home.name_of(0, 0, seat))),
      last_word_((settings_.life_limit << life_shift) - 1),
      is_alone_(home.is_alone_),
      wheel_(wheel_memory_, to_ordinal(now()), settings_.tick_shift, settings_.stale_slack, settings_.scrub_budget),
      next_number_(seat),
      quick_arms_(settings_.records_locations ? 0 : most_unstamped - 1) {
    wheel_.reserve(most_unstamped);
    if (clock_ != nullptr) clock_->attach(*this);
}

worker::~worker() {
    if (clock_ != nullptr) clock_->detach(*this);
}

bool worker::try_begin_drive() noexcept {
    // Acquire: pairs with the release in end_drive(); the wheel passes from one driver to the next [I5].
    driver before = driver::nobody;
    while (!driver_.compare_exchange_weak(before, driver::somebody, base::memory_order_acquire)) {
        if (before == driver::somebody || before == driver::never) return false;
        if (before == driver::tidier) base::yield_this_thread();
        before = driver::nobody;
    }
    assume_owner(this);  // From here on.
    follows_crowd_ = false;
    prepare_frames();
    if (clock_ != nullptr) clock_->begin_run(*this);
    return true;
}

void worker::end_drive() noexcept {
    if (clock_ != nullptr) clock_->end_run(*this);
    turning_thread_.store(nullptr, base::memory_order_relaxed);  // Or whoever drives next would seem to be us.
    driver_.store(driver::nobody, base::memory_order_release);   // See try_begin_drive().
}

bool worker::try_end_for_good() noexcept {
    for (;;) {
        driver before = driver::nobody;
        if (driver_.compare_exchange_strong(before, driver::never, base::memory_order_acquire)) return true;
        if (before != driver::tidier) return before == driver::never;
        base::yield_this_thread();
    }
}

/// The owner gives away what is free, up to so many.
void worker::share_callbacks(std::size_t most) noexcept {
    if (free_callbacks_.is_empty() || most == 0) return;
    settle_notes();
    free_callbacks_.donate(std::min(free_callbacks_.count(), most), [this](timed& its) { part_with(its); });
}

/// Threads that are no workers arm with records that anybody may take, and we get them when the timers end: as many go
/// back, or there would be more of them for ever.
void worker::pay_callbacks() noexcept {
    const std::size_t paid = payable(owed_callbacks_, free_callbacks_.count());
    owed_callbacks_ -= paid;
    share_callbacks(paid);
}

/// The same for slots that such threads have taken for their tasks.
void worker::pay_slots() noexcept {
    const std::size_t paid = payable(owed_slots_, free_slots_.count());
    owed_slots_ -= paid;
    share_slots(paid);
}

void worker::share_slots(std::size_t most) noexcept {
    if (free_slots_.is_empty() || most == 0) return;
    free_slots_.donate(std::min(free_slots_.count(), most), [this](timed& its) { part_with(its); });
}

/// Nothing is free, or so it seems to a thread that is not the owner: what was given back may still be in the inbox, or
/// in the owner's reserve. If nobody drives the loop, this thread looks itself; true: it is worth to try again. If
/// somebody does, he is asked to, and whoever needs it now is refused. Throws std::bad_alloc.
bool worker::tidy_up_elsewhere() {
    driver before = driver::nobody;
    if (!driver_.compare_exchange_strong(before, driver::tidier, base::memory_order_acquire)) {
        is_wanted_.store(true, base::memory_order_seq_cst);  // Before the look at whether it sleeps.
        wake_up();
        return false;
    }
    struct end_of_tidying {
        ~end_of_tidying() {
            mine.turning_thread_.store(nullptr, base::memory_order_relaxed);  // As in end_drive().
            mine.driver_.store(driver::nobody, base::memory_order_release);   // Nobody else does.
        }
        worker& mine;
    } const at_the_end{*this};
    if (inbox_.is_closed()) return false;  // It has retired, and given away all that it had.
    const turn_scope scope(*this);
    assume_owner(this);  // Nobody else becomes it meanwhile.
    obey(unlimited_commands);
    share_callbacks(most_shared);
    share_slots(most_shared);
    return true;
}

turn_answer worker::turn(turn_limits limits) {
    const turn_scope scope(*this);
    turn_answer answer;
    const bool was_parked = std::exchange(was_parked_, false);
    const std::uint64_t obeyed_before = counters_.commands.get();
    const std::uint64_t fired_before = counters_.fired.get();
    counters_.turns.add_and_publish();  // After it has said that it is awake; see crew::is_at_rest().
    obey(limits.is_bounded ? settings_.command_budget : unlimited_commands);
    if (!is_alone_) adopt_some();
    if (owed_callbacks_ != 0) pay_callbacks();
    if (owed_slots_ != 0) pay_slots();
    if (is_wanted_.load(base::memory_order_relaxed)) [[unlikely]] {
        is_wanted_.store(false, base::memory_order_relaxed);
        share_callbacks(most_shared);
        share_slots(most_shared);
    }
    if (crew_.is_short_of_callbacks_.load(base::memory_order_relaxed)) [[unlikely]] {
        crew_.is_short_of_callbacks_.store(false, base::memory_order_relaxed);
        share_callbacks(most_shared);
    }
    if (crew_.is_short_of_slots_.load(base::memory_order_relaxed)) [[unlikely]] {
        crew_.is_short_of_slots_.store(false, base::memory_order_relaxed);
        share_slots(most_shared);
    }
    if (crew_.is_stopped() && !is_swept()) [[unlikely]]
        sweep(limits.is_bounded ? settings_.command_budget : unlimited_commands);
    if (!is_alone_) find_work();

    const time_point began = now();
    now_ = std::max(now_, to_ordinal(began));
    inline_left_ = settings_.inline_budget;
    if (limits.until != never) limits.until = std::max(limits.until, deadline_after(began, least_turn));
    // What runs before the timers may arm others: these wait for the next turn [G2].
    const std::uint64_t armed_from = next_number_;
    begins_with_ready_ = std::exchange(is_cut_short_, true) && !begins_with_ready_;
    // Where only one thing may run, timers and tasks take turns [G12].
    if (limits.most == 1) begins_with_ready_ = std::exchange(prefers_ready_, !prefers_ready_);
    if (begins_with_ready_) run_ready(limits, answer);
    const bool skips_timers = base::has(base::old_bug::runs_tasks_alone) && ready_count() != 0;
    if (!skips_timers) fire_due(armed_from, limits, answer);
    const bool skips_tasks = base::has(base::old_bug::runs_timers_alone) && answer.ran != 0;
    if (!begins_with_ready_ && !skips_tasks) run_ready(limits, answer);
    is_cut_short_ = has_to_end(limits, answer);
    // Whoever postpones what is due may have been interrupted, and needs a processor: ours, if we have nothing else to do.
    if (std::exchange(has_deferred_, false) && answer.ran == 0) [[unlikely]]
        base::yield_this_thread();

    if (was_parked && answer.ran == 0 && counters_.commands.get() == obeyed_before) counters_.idle_wakeups.add();
    // Other clocks do not sleep, so there is nothing to save.
    if (clock_ == nullptr && counters_.fired.get() - fired_before >= crowd) follows_crowd_ = true;
    publish_wheel_counters();
    answer.wake_at = next_deadline();
    answer.is_busy = answer.is_busy || ready_count() != 0 || ordered_ != no_unit || taken_ != no_unit ||
                     inherited_ != no_unit || !inbox_.is_empty() || answer.wake_at <= now_ ||
                     (crew_.is_stopped() && !is_swept()) || (!is_alone_ && crew_.has_ready_work());
    if (settings_.times_callbacks) {
        counters_.longest_turn_ns.raise_to(static_cast<std::uint64_t>((now() - began).count()));
    }
    // What is due and ready here has had its turn. Others may have to wait for this processor, and we are in no hurry.
    if (inherited_ != no_unit && answer.wake_at > now_) [[unlikely]]
        adopting_way_.give();
    return answer;
}

ordinal worker::next_deadline() const noexcept {
    if (wheel_.live() == 0 && !base::has(base::old_bug::remembers_the_first)) return end_of_time;
    // Where timers crowd, each sleep would be shorter than what it takes to arrange it, and the processor would do nothing
    // else: those that come after a crowd share a wake-up.
    const auto slack = follows_crowd_ ? std::max(settings_.slack, settings_.crowd_slack) : settings_.slack;
    return later_by(slack, wheel_.next_deadline());
}

bool worker::is_out_of_work() const noexcept {
    // Seq_cst: comes after publishing in park(); pairs with the sum in drop_work() and with cancelling from elsewhere.
    return local_work() + foreign_work_.load(base::memory_order_seq_cst) == 0;
}

/// Publishes, and then looks at everything once more (models/park.pml; with others models/steal.pml, models/retire.pml).
bool worker::begin_park(ordinal until, const base::atomic<bool>& is_stopped) noexcept {
    parked_work_.store(local_work(), base::memory_order_relaxed);  // Published with the deadline [park: own work].
    // From here on whoever has something for us wakes us [steal: publish].
    parking_.publish(until);
    // Seq_cst, like all that is looked at after publishing: pairs with crew::call_somebody() [steal: count parked].
    if (!is_alone_) crew_.parked_.fetch_add(1, base::memory_order_seq_cst);
    // What came before we had published woke nobody [park: look again] [steal: look again] [retire: look again].
    const bool is_needed = !inbox_.is_empty() || (is_alone_ ? is_out_of_work() : crew_.has_ready_work()) ||
                           is_stopped.load(base::memory_order_seq_cst) || has_orders();
    if (is_needed) {
        end_park();
        return false;
    }
    counters_.parks.add();
    was_parked_ = true;
    return true;
}

/// Awake for all others, before it looks whether it was called (models/steal.pml) [steal: withdraw].
void worker::end_park() noexcept {
    parking_.withdraw();
    // Relaxed: who does not see it yet looks at who sleeps once more than he has to [steal: leave the parked].
    if (!is_alone_) crew_.parked_.fetch_sub(1, base::memory_order_relaxed);
}

void worker::park(ordinal wake_at, time_point limit, const base::atomic<bool>& is_stopped) noexcept {
    const ordinal until = std::min(wake_at, to_ordinal(limit));
    if (!begin_park(until, is_stopped)) return;
    if (!is_alone_) crew_.tell_of_rest();
    follows_crowd_ = false;
    if (clock_ == nullptr) {
        parking_.sleep(to_time_point(until));
    } else {
        // Seq_cst, like all that is looked at after publishing: pairs with drop_outside_work().
        const bool may_jump = crew_.first().outside_work_.load(base::memory_order_seq_cst) == 0;
        if (!clock_->begin_idle(*this, to_time_point(until), may_jump)) parking_.sleep(never);
        clock_->end_idle(*this);
    }
    end_park();
}

/// What other threads ask for without a command. Seq_cst: looked at after publishing, and asked for before the look at
/// what is published. Whether we are called only saves us the way into the kernel: whoever calls us rings or takes it back.
bool worker::has_orders() const noexcept {
    return (crew_.is_stopped_.load(base::memory_order_seq_cst) && !is_swept()) ||
           is_wanted_.load(base::memory_order_seq_cst) || is_called_.load(base::memory_order_relaxed);
}

int worker::descriptor() {
    return parking_.descriptor();
}

void worker::take_over_from_descriptor() noexcept {
    if (!parking_.has_descriptor()) return;
    parking_.withdraw();
    parking_.drain_descriptor();
}

void worker::hand_over_to_descriptor(ordinal wake_at, bool is_busy, bool is_stopped) noexcept {
    if (!parking_.has_descriptor()) return;
    parked_work_.store(local_work(), base::memory_order_relaxed);
    parking_.publish(wake_at);
    // Under another clock than the system's, no descriptor can tell when the time has come; see poll_fd().
    parking_.set_descriptor(clock_ == nullptr ? to_time_point(wake_at) : never,
                            !is_stopped && (is_busy || !inbox_.is_empty() || has_orders()));
}

bool worker::wake_up() noexcept {
    const bool did = parking_.wake();
    if (did) wakeups_.fetch_add(1, base::memory_order_relaxed);
    return did;
}

/// Looked at before each piece of user code, so that none begins after the end.
bool worker::has_to_end(const turn_limits& limits, const turn_answer& answer) const noexcept {
    // Relaxed: who leaves for it acquires it.
    return answer.ran >= limits.most || limits.is_leaving.load(base::memory_order_relaxed) ||
           (limits.until != never && answer.ran != 0 && now() > limits.until);
}

/// Fires what is due, in order of (deadline, number), but for what has been armed since the turn began [G2].
void worker::fire_due(std::uint64_t armed_from, const turn_limits& limits, turn_answer& answer) {
    // A call that may not fire is none: the wheel would take it for one that has only loaded, and go on with an old advance.
    if (wheel_.live() == 0 || has_to_end(limits, answer)) return;
    std::size_t budget = limits.is_bounded ? std::min(settings_.fire_budget, limits.most) : limits.most;
    auto left = ticket_wheel::work::for_budget(budget);
    wheel_.begin_advance(armed_from, left);
    struct end_of_advance {
        ~end_of_advance() { wheel.end_advance(); }
        ticket_wheel& wheel;
    } const at_the_end{wheel_};
    while (budget != 0 && !has_to_end(limits, answer)) {
        // All timers were stopped: what is left of them is cancelled, a bounded number at a time.
        if (crew_.is_stopped() && !is_swept()) [[unlikely]]
            break;
        const due_entry* const due = wheel_.find_due(units_, now_, left);
        if (due == nullptr) break;
        const due_entry found = *due;
        if (const due_entry* const soon = wheel_.due_ahead(frames_ahead);
            soon != nullptr && (soon->index & slot_bit) != 0)
            slots_.at(soon->index).prefetch_frame();
        wheel_.reserve(2);  // For a ticket that is put back, and one for the next tick of a periodic timer.
        ++answer.ran;       // Before it runs, because it may throw.
        if (fire_one(found, now_)) {
            --budget;
        } else {
            --answer.ran;
        }
    }
}

/// The wheel only says who may be due; the word says who is (models/record_word.pml, models/slot_word.pml). False: not this
/// one, or not yet.
bool worker::fire_one(const due_entry& due, ordinal now) {
    const unit_index index = due.index;
    timed& its = units_.at(index);
    state_word value = its.state.load(base::memory_order_relaxed);  // Whoever claims it, or takes off a mark, acquires.
    for (;;) {
        if (!crew::is_waiting(index, value)) {  // Cancelled or woken a moment ago [I2].
            wheel_.pop_due();
            its.set_ticket_word(its.ticket_word() | timed::gone_ticket);
            counters_.stale_cancelled.add();
            return false;
        }
        // Somebody is postponing it. Nobody waits for him: it is looked at again [record_word: defer] [slot_word: defer].
        if ((value & locked_flag) != 0) {
            wheel_.defer_due(units_, due);
            has_deferred_ = true;
            return false;
        }
        // Somebody has: what the wheel has looked at may be the old deadline [record_word: look again]
        // [slot_word: look again].
        if ((value & moved_flag) != 0) {
            // Acquire: pairs with the release of who has moved it, so that its deadline is read next.
            if (its.state.compare_exchange_weak(value, value & ~moved_flag, base::memory_order_acquire)) return false;
            continue;
        }
        // Acquire, for either: pairs with the release of who has armed, moved or unlinked it. What others have to know of is
        // released when it waits again or ends.
        const bool is_slot = (index & slot_bit) != 0;
        if (is_slot) {
            const bool is_inline = settings_.resumes_inline && inline_left_ != 0;
            // Whoever else wakes it finds that it does not wait any more [slot_word: fire].
            const state_word claimed = with_cause(
                with_phase(value, is_inline ? task_phase::executing : task_phase::scheduled), wake_cause::timer);
            if (!its.state.compare_exchange_weak(value, claimed, base::memory_order_acquire)) continue;
            if (base::has(base::old_bug::forgets_the_doom))
                its.state.fetch_and(~doomed_flag, base::memory_order_relaxed);
            wheel_.pop_due();
            fire_sleeper(index, claimed, now);
        } else {
            // Whoever cancels it from here on is told that it runs [record_word: fire].
            const state_word claimed = with_state(value, timer_state::running);
            if (!its.state.compare_exchange_weak(value, claimed, base::memory_order_acquire)) continue;
            wheel_.pop_due();
            run_callback(index, now);
        }
        return true;
    }
}

/// Runs what is ready by now, each once, and, where the budgets count, behind it a few of what becomes ready meanwhile; the rest
/// waits for the next turn.
void worker::run_ready(const turn_limits& limits, turn_answer& answer) {
    std::size_t left =
        limits.is_bounded ? std::min(settings_.ready_budget, ready_count() + most_follow_ups) : ready_count();
    for (; left != 0 && !has_to_end(limits, answer); --left) {
        const unit_index index = pop_ready();
        if (index == no_unit) return;  // That was all, or others have taken the rest.
        ++answer.ran;
        if ((index & slot_bit) == 0) {
            run_posted(index);
        } else if (!run_scheduled(index)) {
            --answer.ran;
        }
    }
}

/// Everything stops: cancels every timer and tells every sleeper of ours, a bounded number at a time. Those of others are
/// theirs to tell, and whoever adopts one later knows. Relaxed: what is ours says so because we have written it; and whoever
/// cancels or wakes it acquires.
void worker::sweep(std::size_t budget) noexcept {
    for (; budget != 0 && swept_slots_ < slots_.size(); --budget, ++swept_slots_) {
        const unit_index index = slot_pool::index_of(swept_slots_);
        const task_slot& its = slots_.at(index);
        const state_word value = its.state.load(base::memory_order_relaxed);
        if (phase_of(value) != task_phase::idle || !its.is_numbered() || its.owner() != seat_) continue;
        // It is told once: if it sleeps again, it is destroyed [slot_word: tell].
        crew_.wake(index, life_of(value), wake_cause::shutdown);
    }
    for (; budget != 0 && swept_callbacks_ < callbacks_.size(); --budget, ++swept_callbacks_) {
        const unit_index index = callback_pool::index_of(swept_callbacks_);
        const callback& its = callbacks_.at(index);
        const state_word value = its.state.load(base::memory_order_relaxed);
        if (state_of(value) != timer_state::armed || its.owner() != seat_) continue;
        crew_.cancel(name_of(index, life_of(value)));
    }
    settle_notes();  // What closures have asked for when they were destroyed: nothing is noted for long.
    // Relaxed: who has stopped everything, and then waits in crew::is_at_rest(), has woken us in between. So if he sees us asleep, we
    // have published that after he has said so, and have looked at it afterwards; and then we only sleep if this was
    // done [park: sweep].
    if (budget != 0) is_swept_.store(true, base::memory_order_relaxed);
}

}  // namespace chime::inline v0::detail
