// SPDX-License-Identifier: MIT
#pragma once

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/thread_number.hpp"
#include "base/thread_safety.hpp"
#include "worker/counters.hpp"
#include "worker/giving_way.hpp"
#include "worker/inbox.hpp"
#include "worker/parking.hpp"
#include "worker/ready_ring.hpp"
#include "worker/units.hpp"

#include <chime/cancel.hpp>
#include <chime/clock_source.hpp>
#include <chime/detail/arming.hpp>
#include <chime/detail/suspension.hpp>
#include <chime/stats.hpp>
#include <chime/time.hpp>
#include <chime/timer_handle.hpp>
#include <chime/wheel.hpp>

#include <array>
#include <bit>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <limits>

namespace chime::inline v0::detail {

/// How the workers of a crew are built; fixed for their lives. Validated by whoever takes it from the user.
struct worker_settings {
    std::size_t max_timers = std::size_t{1} << 24U;
    std::size_t max_tasks = std::size_t{1} << 22U;
    unsigned tick_shift = 18;
    std::size_t stale_slack = 4096;
    std::size_t scrub_budget = 64;
    std::size_t fire_budget = 512;
    std::size_t ready_budget = 512;
    std::size_t inline_budget = std::numeric_limits<std::size_t>::max();
    std::size_t command_budget = 4096;
    std::size_t adoption_budget = 1024;
    std::chrono::nanoseconds slack{};
    std::chrono::nanoseconds crowd_slack{};
    bool resumes_inline = true;
    bool times_callbacks = false;
    bool records_locations = false;
    bool is_simulated = false;    ///< One thread drives all workers, and nothing may depend on which it is.
    bool looks_again = false;     ///< There are processors to spare for somebody who is called for little.
    bool shows_progress = false;  ///< Tell when a piece of user code has begun, for whoever looks for stuck workers.
    base::huge_pages huge_pages = base::huge_pages::no;
    clock_source* clock = nullptr;
    /// A unit that gets there is not used again; tests make it small.
    state_word life_limit = state_word{1} << life_bits;
};

/// What ends a turn: at the next gap between two pieces of user code, not only when it has done all that it may.
struct turn_limits {
    const base::atomic<bool>& is_leaving;  ///< Whoever drives it is told to leave.
    std::size_t most = std::numeric_limits<std::size_t>::max();
    time_point until = never;
    bool is_bounded = true;  ///< By the budgets; if not, it does all that is there to do when it begins.
};

/// What a turn leaves behind.
struct turn_answer {
    std::size_t ran = 0;            ///< Callbacks, resumptions and posted functions.
    bool is_busy = false;           ///< There is more to do at once.
    ordinal wake_at = end_of_time;  ///< Otherwise: when to come back at the latest.
};

class crew;

/// One loop: a wheel, a queue of ready tasks, an inbox, and a body that does a bounded amount of work.
///
/// Whoever drives it calls turn() and, when that answers that there is nothing to do, park(). One thread at a time
/// drives it [I5]; while it does, it is the *owner*. What any thread may ask for is asked of the crew.
class worker final : public clock_listener {
 public:
    /// `seat` is its place in the crew. Throws std::bad_alloc.
    worker(crew& home, std::uint32_t seat);
    worker(const worker&) = delete;
    worker& operator=(const worker&) = delete;
    ~worker();

    // --- Driving it: the owner, and only while it has the wheel.

    /// The calling thread is the owner from now on; false: another one is.
    [[nodiscard]] bool try_begin_drive() noexcept;
    void end_drive() noexcept;
    /// Nobody drives it any more; false: somebody does.
    [[nodiscard]] bool try_end_for_good() noexcept;
    [[nodiscard]] bool is_driven() const noexcept {
        // Acquire: pairs with the release of who ends; whoever takes the seat next has seen all that he has.
        return driver_.load(base::memory_order_acquire) == driver::somebody;
    }

    /// Like is_driven(), but also true while a thread tidies up in the place of an owner, and after the end.
    [[nodiscard]] bool is_held() const noexcept { return driver_.load(base::memory_order_acquire) != driver::nobody; }

    /// Obeys, fires, runs. Throws what user code throws; everything else stays in order.
    turn_answer turn(turn_limits limits) CHIME_REQUIRES(owner_);

    /// Sleeps until `wake_at`, `limit`, `is_stopped`, or something happens, whichever is first.
    void park(ordinal wake_at, time_point limit, const base::atomic<bool>& is_stopped) noexcept CHIME_REQUIRES(owner_);
    /// The two halves of it, for who drives several on one thread. False: there is something to do.
    [[nodiscard]] bool begin_park(ordinal until, const base::atomic<bool>& is_stopped) noexcept CHIME_REQUIRES(owner_);
    void end_park() noexcept CHIME_REQUIRES(owner_);

    [[nodiscard]] ordinal next_deadline() const noexcept CHIME_REQUIRES(owner_);

    /// Nothing ready, nothing pending, no task, no job, no guard. For a worker that is alone.
    [[nodiscard]] bool is_out_of_work() const noexcept CHIME_REQUIRES(owner_);

    /// The driver goes away; what happens from now on makes the descriptor readable.
    void hand_over_to_descriptor(ordinal wake_at, bool is_busy, bool is_stopped) noexcept CHIME_REQUIRES(owner_);
    void take_over_from_descriptor() noexcept CHIME_REQUIRES(owner_);
    [[nodiscard]] int descriptor();

    /// Leaves the crew: closes the inbox and gives away all that it has, whatever it is. Between turns.
    void retire() noexcept CHIME_REQUIRES(owner_);

    /// For the compiler, which cannot know: this thread is the owner of `driven`, if there is such a worker. Who says so
    /// has begun to drive it, or has found it to be the current one.
    static void assume_owner([[maybe_unused]] const worker* driven) noexcept CHIME_ASSUMES(driven->owner_) {}

    /// The time without a look at the clock: as of the beginning of this turn, or of what the metronome has shown since.
    [[nodiscard]] time_point coarse_now() const noexcept CHIME_REQUIRES(owner_) {
        return to_time_point(std::max(now_, shown_time_.load(base::memory_order_relaxed)));  // Nothing comes with it.
    }
    /// The metronome has looked at the clock. That thread alone.
    void show_time(time_point now) noexcept { shown_time_.store(to_ordinal(now), base::memory_order_relaxed); }
    /// It has reported that we are stuck. That thread alone.
    void count_stuck_report() noexcept { stuck_reports_.add(); }
    [[nodiscard]] std::uint64_t stuck_reports() const noexcept { return stuck_reports_.get(); }

    // --- For the task that is executing.

    bool sleep(wait_limit limit, std::coroutine_handle<> frame, promise_base* promise) CHIME_REQUIRES(owner_);
    wake_key begin_suspension(std::coroutine_handle<> frame, promise_base* promise) CHIME_REQUIRES(owner_);
    timer_handle limit_suspension(const wake_key& key, wait_limit limit) CHIME_REQUIRES(owner_);
    bool commit_suspension(const wake_key& key) noexcept CHIME_REQUIRES(owner_);
    void abandon_suspension(const wake_key& key) noexcept CHIME_REQUIRES(owner_);
    /// Has the current task begun this wait, and not ended it yet?
    [[nodiscard]] bool is_suspending(const wake_key& key) const noexcept CHIME_REQUIRES(owner_) {
        return current_slot_ == key.slot && waits_in_ == key.epoch && key.home == &crew_;
    }
    /// Is the current task the one that `joined` is about?
    [[nodiscard]] bool is_executing(const task_control& joined) const noexcept CHIME_REQUIRES(owner_) {
        return current_slot_ != no_unit && current_slot().control() == &joined;
    }
    void yield(std::coroutine_handle<> frame, promise_base* promise) CHIME_REQUIRES(owner_);
    /// The task goes to another crew. False, or an exception as if_refused says: it was refused, and the task stays.
    /// Throws std::system_error: errc::not_in_a_task; std::bad_alloc.
    bool depart_to(crew& other, std::coroutine_handle<> frame, promise_base* promise, if_refused then)
        CHIME_REQUIRES(owner_);
    void end_task(std::coroutine_handle<> frame, promise_base& promise) noexcept CHIME_REQUIRES(owner_);
    [[nodiscard]] wake_reason reason() const noexcept CHIME_REQUIRES(owner_) {
        return cause_ == wake_cause::cancelled || cause_ == wake_cause::shutdown ? wake_reason::cancelled
                                                                                 : wake_reason::elapsed;
    }
    [[nodiscard]] bool current_is_doomed() const noexcept CHIME_REQUIRES(owner_);
    /// Throws std::system_error: errc::not_in_a_task.
    [[noreturn]] static void refuse_wait();
    /// What is broken where a task goes on or ends and no loop has resumed it.
    static constexpr const char* resumed_by_its_loop =
        "a task is resumed by its loop alone, once for each wait: never call resume() on its handle, nor await what does; "
        "and tasks sleep only on a context that was made by the copy of chime that they were compiled with";

    // --- Any thread.

    bool wake_up() noexcept;
    void time_moved() noexcept override { wake_up(); }
    [[nodiscard]] bool was_woken() const noexcept override { return !parking_.is_parked(); }
    [[nodiscard]] bool is_parked() const noexcept { return parking_.is_parked(); }
    /// Relaxed: see sweep().
    [[nodiscard]] bool is_swept() const noexcept { return is_swept_.load(base::memory_order_relaxed); }
    /// When it sleeps for something: until when. Awake: the beginning of time.
    [[nodiscard]] ordinal parked_until() const noexcept { return parking_.parked_until(); }

    [[nodiscard]] crew& home() const noexcept { return crew_; }
    [[nodiscard]] std::uint32_t seat() const noexcept { return seat_; }
    [[nodiscard]] time_point now() const noexcept { return clock_ == nullptr ? base_now() : followed_now(); }
    [[nodiscard]] bool is_current() const noexcept { return current() == this; }
    /// Is whatever runs on this loop below us on the stack, perhaps with the turn of another loop in between?
    [[nodiscard]] bool is_below() const noexcept {
        return is_current() || (!settings_.is_simulated && is_driven() &&
                                turning_thread_.load(base::memory_order_relaxed) == base::this_thread_mark());
    }
    /// Adds what this worker has counted.
    void add_stats(timer_stats& sums) const noexcept;
    /// Counts up when a piece of user code begins, and when it ends: odd while one runs. See shows_progress.
    [[nodiscard]] std::uint64_t progress() const noexcept { return progress_.get(); }

    /// The worker whose turn runs on this thread.
    [[nodiscard]] static worker* current() noexcept { return turning.mine; }
    /// The same, if it is one of `home`. Every call begins with this look, so it is one comparison.
    [[nodiscard]] static worker* current_of(const crew& home) noexcept {
        if (turning.home != &home) return nullptr;
        if (turning.mine == nullptr) __builtin_unreachable();  // See exchange_current().
        return turning.mine;
    }
    /// From now on it is the turn of `next`, or of nobody; answers whose it was.
    static worker* exchange_current(worker* next) noexcept {
        worker* const before = turning.mine;
        turning = {next != nullptr ? &next->crew_ : nullptr, next};
        return before;
    }

 private:
    friend class crew;

    /// Whose turn it is. Sixteen bytes at a fixed distance from the thread's pointer, also in a shared library.
    struct turn_of_thread {
        const crew* home = nullptr;
        worker* mine = nullptr;
    };
    [[gnu::tls_model("initial-exec")]] static thread_local constinit turn_of_thread turning;

    /// What was armed or postponed by a delay and gets its deadline when the user's code returns: a callback, never a sleep.
    /// Two words, because each is a store that waits in the processor until what came before it is through. One has the record's
    /// word as it was, without its first bits: if that is still what it is, nothing else has to be looked at. Of the life the
    /// last bits are enough: a record that is noted stays ours, and between the note and the stamp there are no more lives than
    /// notes; see settle_notes().
    class unstamped {
     public:
        unstamped() noexcept = default;
        /// `word` is that of the record, if it says that this is armed and nobody else is at it; otherwise one of this life that no
        /// record has, see look_closely().
        unstamped(std::int64_t delay_ns, state_word word, unit_index index, bool is_new) noexcept
            : delay_ns_(delay_ns), what_(word << word_shift | std::uint64_t{is_new} << 32U | index) {}

        [[nodiscard]] static state_word look_closely(std::uint64_t life) noexcept {
            return life << life_shift | state_mask;
        }

        [[nodiscard]] std::int64_t delay_ns() const noexcept { return delay_ns_; }
        [[nodiscard]] unit_index index() const noexcept { return static_cast<unit_index>(what_); }
        [[nodiscard]] bool is_new() const noexcept { return (what_ >> 32U & 1U) != 0; }  ///< Armed, not postponed.
        [[nodiscard]] bool is_unchanged(state_word now) const noexcept {
            return (what_ ^ now << word_shift) >> word_shift == 0;
        }
        [[nodiscard]] bool is_of_life_in(state_word now) const noexcept {
            return (what_ ^ now << word_shift) >> (word_shift + life_shift) == 0;
        }

     private:
        static constexpr unsigned word_shift = 33;
        std::int64_t delay_ns_;
        std::uint64_t what_;
    };
    static constexpr std::size_t most_unstamped = 64;
    /// Who has the wheel.
    enum class driver : std::uint8_t {
        nobody,
        somebody,
        tidier,  ///< For a moment: a thread that needs what nobody is there to give back.
        never,   ///< Nobody can have it any more.
    };

    /// While it lives, user code runs; when it ends, what that armed gets its deadlines.
    class user_code;
    /// While it lives, this thread's turn is this worker's.
    class turn_scope;

    [[nodiscard]] static time_point base_now() noexcept;
    [[nodiscard]] time_point followed_now() const noexcept;

    // worker_commands.cpp
    /// A look at a timer that somebody has left, and the way into our wheel, take less than this.
    static constexpr ordinal adopted_within_ns = 200;
    static constexpr std::size_t unlimited_commands = std::numeric_limits<std::size_t>::max();
    void obey(std::size_t budget) CHIME_REQUIRES(owner_);
    [[nodiscard]] unit_index take_commands() noexcept CHIME_REQUIRES(owner_);
    void reserve_for_one() CHIME_REQUIRES(owner_);
    void obey_one(unit_index index) CHIME_REQUIRES(owner_);
    void adopt(unit_index index, timed& its) noexcept CHIME_REQUIRES(owner_);
    void adopt_some() noexcept CHIME_REQUIRES(owner_);
    [[nodiscard]] bool try_obey_one(unit_index index) noexcept CHIME_REQUIRES(owner_);

    // worker.cpp, and inline in hot_paths.hpp
    [[nodiscard]] bool has_to_end(const turn_limits& limits, const turn_answer& answer) const noexcept;
    void fire_due(std::uint64_t armed_from, const turn_limits& limits, turn_answer& answer) CHIME_REQUIRES(owner_);
    [[nodiscard]] bool fire_one(const due_entry& due, ordinal now) CHIME_REQUIRES(owner_);
    /// To begin a turn costs as much as a small task or two. So where one task spawns another and awaits it, or two talk to each
    /// other, a turn goes on for this many more; few, because timers and commands wait meanwhile.
    static constexpr std::size_t most_follow_ups = 8;
    void run_ready(const turn_limits& limits, turn_answer& answer) CHIME_REQUIRES(owner_);
    void sweep(std::size_t budget) noexcept CHIME_REQUIRES(owner_);
    void publish_wheel_counters() noexcept CHIME_REQUIRES(owner_);
    void ring_for(ordinal deadline, std::uint32_t undrained) noexcept;
    void share_slots(std::size_t most) noexcept CHIME_REQUIRES(owner_);
    void part_with(timed& its) const noexcept;
    [[nodiscard]] bool has_orders() const noexcept;
    [[nodiscard]] bool tidy_up_elsewhere();

    // worker_ready.cpp
    void push_ready(unit_index index) noexcept CHIME_REQUIRES(owner_);
    void offer_work() noexcept CHIME_REQUIRES(owner_);
    void make_ready(unit_index index) noexcept CHIME_REQUIRES(owner_);
    [[nodiscard]] std::size_t ready_count() const noexcept CHIME_REQUIRES(owner_);
    [[nodiscard]] unit_index pop_ready() noexcept CHIME_REQUIRES(owner_);
    [[nodiscard]] bool take_call() noexcept CHIME_REQUIRES(owner_);
    void find_work() noexcept CHIME_REQUIRES(owner_);
    void await_lasting_work() noexcept CHIME_REQUIRES(owner_);
    [[nodiscard]] std::size_t take_injected(std::array<unit_index, ready_ring::capacity / 2>& taken) noexcept
        CHIME_REQUIRES(owner_);
    void end_search() noexcept CHIME_REQUIRES(owner_);
    void pass_on_call() noexcept CHIME_REQUIRES(owner_);

    // worker_retire.cpp
    void load_what_is_due_meanwhile() noexcept CHIME_REQUIRES(owner_);
    void call_heir() noexcept CHIME_REQUIRES(owner_);
    void number_chain(unit_index chain) noexcept CHIME_REQUIRES(owner_);
    void adopt_until(ordinal horizon) noexcept CHIME_REQUIRES(owner_);
    void give_away_chain(unit_index chain, inbox& to) noexcept CHIME_REQUIRES(owner_);
    void give_away(unit_index index, inbox& to) noexcept CHIME_REQUIRES(owner_);
    void give_away_timer(unit_index index, inbox& to) noexcept CHIME_REQUIRES(owner_);

    // worker_timers.cpp, and inline in hot_paths.hpp
    [[nodiscard]] arming begin_arming() CHIME_REQUIRES(owner_);
    [[nodiscard]] arming begin_arming_slowly() CHIME_REQUIRES(owner_);
    [[nodiscard]] packed_handle try_arm_image(const closure_operations& operations, std::int64_t delay_ns,
                                              const closure_image& image) noexcept CHIME_REQUIRES(owner_);
    timer_handle arm(unit_index index, const closure_operations& operations, wait_limit limit) noexcept
        CHIME_REQUIRES(owner_);
    timer_handle set_first_deadline(timer_handle made, wait_limit limit) noexcept CHIME_REQUIRES(owner_);
    /// Is there room for the tickets of all that user code can arm before it gets its deadlines?
    [[nodiscard]] bool has_tickets() const noexcept CHIME_REQUIRES(owner_) {
        return wheel_.reserved() >= most_unstamped + 2;
    }
    void reserve_tickets() CHIME_REQUIRES(owner_);
    void free_callback(unit_index index) noexcept CHIME_REQUIRES(owner_);
    void free_callback(unit_index index, timed& its, std::uint64_t next_life) noexcept CHIME_REQUIRES(owner_);
    [[nodiscard]] bool try_free_callback(unit_index index, state_word vacant) noexcept CHIME_REQUIRES(owner_);
    [[nodiscard]] bool try_cancel_and_destroy(unit_index index, std::uint64_t life) noexcept CHIME_REQUIRES(owner_);
    cancel_result free_cancelled(unit_index index) noexcept CHIME_REQUIRES(owner_);
    void share_callbacks() noexcept CHIME_REQUIRES(owner_);
    void share_callbacks(std::size_t most) noexcept CHIME_REQUIRES(owner_);
    void pay_callbacks() noexcept CHIME_REQUIRES(owner_);
    void pay_slots() noexcept CHIME_REQUIRES(owner_);
    void run_callback(unit_index index, ordinal now) CHIME_REQUIRES(owner_);
    void end_run(unit_index index) noexcept CHIME_REQUIRES(owner_);
    void run_posted(unit_index index) CHIME_REQUIRES(owner_);
    void count_arm() noexcept CHIME_REQUIRES(owner_);
    void count_end(bool has_fired) noexcept CHIME_REQUIRES(owner_);
    [[nodiscard]] std::uint64_t take_number() noexcept CHIME_REQUIRES(owner_) {
        const std::uint64_t taken = next_number_;
        next_number_ += timed::next_number;
        return taken;
    }
    /// Our own, without a timer.
    [[nodiscard]] std::uint64_t unnumbered() const noexcept { return timed::unnumbered | seat_; }
    [[nodiscard]] timer_handle name_of(unit_index index, std::uint64_t life) const noexcept;
    /// The ticket of this one, if it has one, has nobody behind it any more.
    void leave_wheel(timed& its) noexcept CHIME_REQUIRES(owner_) {
        const std::uint32_t ticket = its.ticket_word();
        if ((ticket & timed::vacant_ticket) != 0) return;
        its.set_ticket_word(ticket | timed::vacant_ticket);
        wheel_.count_end();
    }
    /// What keeps the loop going, as far as the owner knows; may be negative, and is right together with foreign_work_.
    [[nodiscard]] std::int64_t local_work() const noexcept CHIME_REQUIRES(owner_) {
        return static_cast<std::int64_t>(counters_.pending.get() + counters_.tasks.get()) + posted_;
    }

    // worker_postpone.cpp, and inline in hot_paths.hpp
    void accept(unit_index index, timed& its) CHIME_REQUIRES(owner_);
    void place(unit_index index, timed& its, ordinal target) noexcept CHIME_REQUIRES(owner_);
    void place(unit_index index, timed& its, ordinal target, ticket_wheel::reach reach) noexcept CHIME_REQUIRES(owner_);
    void place_sleep(unit_index index, timed& its, ordinal target) noexcept CHIME_REQUIRES(owner_);
    void put_ticket(unit_index index, timed& its, ordinal target) noexcept CHIME_REQUIRES(owner_);
    void move_ticket(unit_index index, timed& its, ordinal target) noexcept CHIME_REQUIRES(owner_);
    void move_to(unit_index index, timed& its, state_word value, ordinal target) noexcept CHIME_REQUIRES(owner_);
    void stamp_later(unit_index index, std::uint64_t life, std::int64_t delay_ns, bool is_new) noexcept
        CHIME_REQUIRES(owner_);
    [[nodiscard]] bool try_stamp_later(unit_index index, state_word word, std::int64_t delay_ns, bool is_new) noexcept
        CHIME_REQUIRES(owner_);
    void stamp() noexcept CHIME_REQUIRES(owner_);
    void settle_notes() noexcept CHIME_REQUIRES(owner_);
    void stamp_at(ordinal now) noexcept CHIME_REQUIRES(owner_);
    void stamp_one(unstamped entry, ordinal now, ticket_wheel::reach reach) noexcept CHIME_REQUIRES(owner_);
    void stamp_changed(unstamped entry, timed& its, state_word value, ordinal now) noexcept CHIME_REQUIRES(owner_);
    void set_and_move(unit_index index, timed& its, ordinal target, ticket_wheel::reach reach) noexcept
        CHIME_REQUIRES(owner_);
    bool postpone_here(unit_index index, timed& its, state_word value, wait_limit limit) CHIME_REQUIRES(owner_);

    // worker_tasks.cpp
    [[nodiscard]] unit_index take_slot() CHIME_REQUIRES(owner_);
    void free_slot(unit_index index) noexcept CHIME_REQUIRES(owner_);
    void begin_wait(task_slot& its, std::coroutine_handle<> frame, promise_base* promise) CHIME_REQUIRES(owner_);
    void limit_wait(unit_index index, wait_limit limit) noexcept CHIME_REQUIRES(owner_);
    void fire_sleeper(unit_index index, state_word value, ordinal now) CHIME_REQUIRES(owner_);
    void end_timer(task_slot& its, wake_cause cause) noexcept CHIME_REQUIRES(owner_);
    void end_wait(task_slot& its, wake_cause cause) noexcept CHIME_REQUIRES(owner_);
    void resume(unit_index index, wake_cause cause) CHIME_REQUIRES(owner_);
    [[nodiscard]] bool is_uncommitted(unit_index index, std::uint64_t epoch) const noexcept CHIME_REQUIRES(owner_);
    void end_lent_wait(unit_index index, std::uint64_t epoch, bool is_condemned) noexcept CHIME_REQUIRES(owner_);
    void finish_task(unit_index index, std::coroutine_handle<> frame) noexcept CHIME_REQUIRES(owner_);
    void destroy_task(unit_index index) noexcept CHIME_REQUIRES(owner_);
    bool run_scheduled(unit_index index) CHIME_REQUIRES(owner_);
    [[nodiscard]] task_slot& current_slot() const noexcept CHIME_REQUIRES(owner_) { return slots_.at(current_slot_); }
    void require_wait() const CHIME_REQUIRES(owner_);

    [[no_unique_address]] base::role owner_;  ///< Who drives it. What it guards, nobody else may touch.

    crew& crew_;
    callback_pool& callbacks_;
    slot_pool& slots_;
    units units_;
    unit_magazine<callback_pool> free_callbacks_ CHIME_GUARDED_BY(owner_);
    unit_magazine<slot_pool> free_slots_ CHIME_GUARDED_BY(owner_);
    clock_source* clock_;
    const worker_settings& settings_;
    const std::uint32_t seat_;
    const packed_handle names_;   ///< What the handles of all our timers have in common.
    const state_word last_word_;  ///< Of the last life that a unit may have, and above all its words.
    const bool is_alone_;         ///< There will never be another worker in this crew.

    storage wheel_memory_{nullptr};
    ticket_wheel wheel_ CHIME_GUARDED_BY(owner_);
    std::uint64_t next_number_ CHIME_GUARDED_BY(owner_);
    ordinal now_ CHIME_GUARDED_BY(owner_) = 0;  ///< Of this turn.
    /// In this turn: something due that somebody else had locked.
    bool has_deferred_ CHIME_GUARDED_BY(owner_) = false;

    unit_queue ready_ CHIME_GUARDED_BY(owner_);  ///< What is ready, if this worker is alone;
    ready_ring ring_;                            ///< if not, for all to take.
    bool is_searching_ CHIME_GUARDED_BY(owner_) = false;
    std::uint32_t victim_ CHIME_GUARDED_BY(owner_) = 0;  ///< Where to begin to look for work.
    std::size_t inline_left_ CHIME_GUARDED_BY(owner_) = 0;
    unit_index taken_ CHIME_GUARDED_BY(owner_) = no_unit;  ///< From the inbox, last first; being put in order.
    unit_index ordered_ CHIME_GUARDED_BY(owner_) = no_unit;
    bool is_ordering_ CHIME_GUARDED_BY(owner_) = false;
    unit_index inherited_ CHIME_GUARDED_BY(owner_) = no_unit;  ///< Taken, not looked at yet, and due some time.
    ordinal adopting_since_ CHIME_GUARDED_BY(owner_) = 0;      ///< When we were last through with some of those.
    giving_way adopting_way_ CHIME_GUARDED_BY(owner_);

    std::array<unstamped, most_unstamped> unstamped_ CHIME_GUARDED_BY(owner_);
    std::size_t unstamped_count_ CHIME_GUARDED_BY(owner_) = 0;
    const std::size_t quick_arms_;  ///< How many may be noted before it is time to stamp; none if places are recorded.

    unit_index current_slot_ CHIME_GUARDED_BY(owner_) = no_unit;
    static constexpr std::uint64_t no_epoch = ~std::uint64_t{0};
    /// The epoch of the wait that the current task has begun: from then on its slot may be anybody's. None: it executes.
    std::uint64_t waits_in_ CHIME_GUARDED_BY(owner_) = no_epoch;
    wake_cause cause_ CHIME_GUARDED_BY(owner_) = wake_cause::timer;
    /// The outermost frame of the current task, when it is through.
    std::coroutine_handle<> ended_ CHIME_GUARDED_BY(owner_);
    std::exception_ptr failure_ CHIME_GUARDED_BY(owner_);
    bool has_departed_ CHIME_GUARDED_BY(owner_) = false;
    bool is_condemned_ CHIME_GUARDED_BY(owner_) = false;
    bool prefers_ready_ CHIME_GUARDED_BY(owner_) = false;
    /// At the beginning of a turn: the last one was cut short, by an exception or because it had to end.
    bool is_cut_short_ CHIME_GUARDED_BY(owner_) = false;
    /// Then, what was kept from running comes first.
    bool begins_with_ready_ CHIME_GUARDED_BY(owner_) = false;
    bool was_parked_ CHIME_GUARDED_BY(owner_) = false;
    bool follows_crowd_ CHIME_GUARDED_BY(owner_) = false;  ///< Since it slept last, many have fired in one turn.

    std::size_t swept_callbacks_ CHIME_GUARDED_BY(owner_) = 0;
    std::size_t swept_slots_ CHIME_GUARDED_BY(owner_) = 0;

    /// Records that others have taken and we have got; see pay_callbacks().
    std::size_t owed_callbacks_ CHIME_GUARDED_BY(owner_) = 0;
    std::size_t owed_slots_ CHIME_GUARDED_BY(owner_) = 0;
    std::int64_t posted_ CHIME_GUARDED_BY(owner_) = 0;  ///< Functions that wait to be run.
    worker_counters counters_;

    // What other threads read.
    base::atomic<bool> is_swept_{false};  ///< Everything stops, and all that is ours was told.
    counter progress_;
    counter stuck_reports_;
    base::atomic<bool> is_stamping_{false};

    // What other threads write.
    inbox inbox_;
    base::atomic<std::int64_t> foreign_work_{0};  ///< Beside the inbox: who pushes has the line already.
    base::atomic<std::uint32_t> outside_work_{0};
    parking parking_;
    base::atomic<std::int64_t> parked_work_{0};  ///< local_work(), as of when the owner went to sleep.
    base::atomic<driver> driver_{driver::nobody};
    base::atomic<const void*> turning_thread_{nullptr};  ///< Whose turn it is, or was last in this drive.
    base::atomic<bool> is_called_{false};                ///< Somebody has work for it; see crew::call_somebody().
    base::atomic<bool> is_wanted_{false};                ///< Another thread has found nothing free.
    base::atomic<std::uint64_t> wakeups_{0};
    base::atomic<ordinal> shown_time_{0};
};

}  // namespace chime::inline v0::detail
