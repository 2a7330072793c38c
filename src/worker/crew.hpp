// SPDX-License-Identifier: MIT
#pragma once

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/futex.hpp"
#include "base/mapping.hpp"
#include "base/mutex.hpp"
#include "base/striped_counters.hpp"
#include "base/thread.hpp"
#include "worker/inbox.hpp"
#include "worker/injection.hpp"
#include "worker/units.hpp"
#include "worker/worker.hpp"

#include <chime/detail/arming.hpp>
#include <chime/detail/frame_maker.hpp>
#include <chime/detail/suspension.hpp>
#include <chime/stats.hpp>
#include <chime/time.hpp>
#include <chime/timer_handle.hpp>

#include <coroutine>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace chime::inline v0::detail {

/// What is pending with a worker although its time has come.
struct overdue_timers {
    std::size_t count = 0;
    ordinal first = end_of_time;
};

/// What threads count that are no workers, or where it is none of a worker.
enum class outside_count : std::uint8_t { brief_visits, armed, spawned, cancelled, postponed, refused, migrated };
static_assert(static_cast<std::size_t>(outside_count::migrated) < base::striped_counters<outside_count>::most_counters,
              "all have room in one line");

/// The workers of one context or runtime, and what they have in common: all records and slots, and the queues of what is
/// nobody's. Everything here may be called from any thread, unless it says otherwise.
///
/// Every record and slot has an owner: the worker in whose wheel its ticket is. What concerns the owner is put into its
/// inbox. When that is closed, because the worker retires, it goes to the merge queue, and whoever looks there first
/// becomes the owner (models/retire.pml).
class crew {
 public:
    /// A thread that is no worker is in the middle of something: whoever destroys the crew waits for it. For all that may let
    /// a loop end before the call returns that has done so: the loop's thread is free to destroy everything then.
    class visit {
     public:
        explicit visit(const crew& visited) noexcept : visit(visited, one_visitor) {}
        visit(const visit&) = delete;
        visit& operator=(const visit&) = delete;
        ~visit() {
            if (visited_ == nullptr) return;
            innermost = before_;
            // Release: pairs with the acquire of who waits for it.
            visited_->visits_.fetch_sub(counts_as_, base::memory_order_release);
        }

        /// Is this thread in the middle of one, and would wait for itself?
        [[nodiscard]] static bool is_under_way(const crew& visited) noexcept {
            const visit* each = innermost;
            while (each != nullptr && each->visited_ != &visited) each = each->before_;
            return each != nullptr;
        }

     protected:
        visit(const crew& visited, std::uint64_t counts_as) noexcept
            : visited_(visited.here() == nullptr ? &visited : nullptr), counts_as_(counts_as) {
            if (visited_ == nullptr) return;
            before_ = std::exchange(innermost, this);
            // Acquire: pairs with the release in wait_for_visitors(), so that who comes too late to be waited for finds everything
            // stopped.
            visited_->visits_.fetch_add(counts_as_, base::memory_order_acquire);
        }

        /// In one step, so that nobody finds it to be neither. Relaxed: who waits for senders alone relies on nothing that one did
        /// who stays, because that one ends it himself.
        void change_to(std::uint64_t other) noexcept {
            if (visited_ == nullptr) return;
            visited_->visits_.fetch_add(other - std::exchange(counts_as_, other), base::memory_order_relaxed);
        }

     private:
        [[gnu::tls_model("initial-exec")]] static thread_local constinit const visit* innermost;

        const crew* visited_;
        std::uint64_t counts_as_;
        const visit* before_ = nullptr;
    };

    /// A visit that brings a task or a timer: whoever shuts down waits for it, too, so that what it brings is refused or is seen.
    /// Nobody waits there for other visits, because they may run destructors of users, which may wait for that very shutdown.
    class sending : public visit {
     public:
        explicit sending(const crew& visited) noexcept : visit(visited, one_sender) {}

        /// It has brought nothing, or is about to end it itself, and goes on as any other visit.
        void stay() noexcept { change_to(one_visitor); }
    };

    /// The same for a thread that claims a timer, releasing that it is here, and does nothing else: whoever destroys the crew has
    /// acquired the claim, or what came of it, before he waits. Nothing runs that could ask whether it is under way.
    class brief_visit {
     public:
        explicit brief_visit(crew& visited) noexcept : counts_(visited.outside_.mine()) {
            counts_.add(outside_count::brief_visits, 1);
        }
        brief_visit(const brief_visit&) = delete;
        brief_visit& operator=(const brief_visit&) = delete;
        // Release: pairs with the acquire of who waits for it.
        ~brief_visit() { counts_.add_releasing(outside_count::brief_visits, ~std::uint64_t{0}); }

        void count(outside_count which) const noexcept { counts_.add(which, 1); }

     private:
        base::striped_counters<outside_count>::adder counts_;
    };

    /// With one worker, in seat 0, and room for `seats`. Throws std::bad_alloc.
    explicit crew(const worker_settings& settings, std::uint32_t seats = 1);
    crew(const crew&) = delete;
    crew& operator=(const crew&) = delete;
    /// Destroys what is suspended, innermost first, and what is pending. Nobody may be using it.
    ~crew();

    /// The same, to be done once more by the destructor for what comes late. Nobody may drive a worker, now or later.
    void destroy_pending() noexcept;

    static constexpr std::uint32_t most_seats = timed::nobody;

    // --- Workers.

    /// The worker whose turn runs on this thread, if it is one of ours.
    [[nodiscard]] worker* here() const noexcept { return worker::current_of(*this); }
    [[nodiscard]] worker& first() const noexcept { return at(0); }
    /// Relaxed: who asks knows that somebody was in the seat, from seat_count(), or because he has acquired a word that says
    /// so; see await().
    [[nodiscard]] worker& at(std::uint32_t seat) const noexcept {
        return *seats_[seat].load(base::memory_order_relaxed);
    }
    /// How many seats have ever been taken. Seq_cst: who has said that he sleeps, and then looks whether anybody has work
    /// for him, must see everybody who was there when somebody with work looked whether anybody sleeps.
    [[nodiscard]] std::uint32_t seat_count() const noexcept { return seat_count_.load(base::memory_order_seq_cst); }
    /// A worker in a seat that is free; null: there is none. One thread at a time. Throws std::bad_alloc.
    [[nodiscard]] worker* add_worker();

    // --- Timers. See timers.hpp for what they mean.

    /// A record to put a closure into; none: refused, because of the cap or because everything stops.
    /// Throws std::bad_alloc.
    [[nodiscard]] arming begin_arming();
    [[nodiscard]] packed_handle try_arm_image(const closure_operations& operations, std::int64_t delay_ns,
                                              const closure_image& image) const noexcept;
    /// The closure could not be made.
    void abandon_arming(const arming& begun) noexcept;
    /// Takes the closure.
    timer_handle arm(unit_index index, const closure_operations& operations, wait_limit limit) noexcept;
    /// The same, with a period or a token. Throws std::bad_alloc; the closure is destroyed then.
    timer_handle arm_with_extra(const arming& begun, const arming_details& details);
    /// For a crew of one.
    void post(const arming& begun, const closure_operations& operations) noexcept;

    cancel_result cancel(timer_handle which) noexcept;
    void prefetch(timer_handle which) const noexcept;
    cancel_result cancel_and_wait(timer_handle which) noexcept;
    /// True: the callback is running, and `who` is completed when it has ended. False: `result` is final.
    bool cancel_and_subscribe(timer_handle which, cancel_result& result, completion& who);
    void unsubscribe(const completion& who) noexcept;
    /// Throws std::bad_alloc; nothing has changed.
    bool postpone(timer_handle which, wait_limit limit);
    /// The same, counted from now.
    bool postpone_by(timer_handle which, duration delay);

    /// Threads that were here before the fork are in the parent.
    [[nodiscard]] bool is_in_forked_child() const noexcept { return base::fork_number() != fork_; }
    /// Somebody is in the middle of something here, or was when the process was forked.
    [[nodiscard]] bool is_visited() const noexcept {
        return visits_.load(base::memory_order_acquire) != 0 ||
               outside_.sum_acquiring(outside_count::brief_visits) != 0;
    }

    [[nodiscard]] time_point now() const noexcept { return clock_ == nullptr ? worker::base_now() : followed_now(); }
    [[nodiscard]] time_point followed_now() const noexcept;
    [[nodiscard]] timer_stats stats() const noexcept;
    /// What each worker should have fired by `now` and has not, what others have sent to it included; is added up.
    void find_overdue(ordinal now, std::span<overdue_timers> by_seat) const noexcept;
    void stop_timers() noexcept;
    [[nodiscard]] bool is_stopped() const noexcept { return is_stopped_.load(base::memory_order_relaxed); }
    void dump_pending(std::ostream& out) const;

    // --- Tasks.

    /// A task begins. False: refused. Throws std::bad_alloc; the frame is still the caller's.
    /// If it begins, the reference to `control` is the task's.
    [[nodiscard]] bool spawn(std::coroutine_handle<> root, task_control* control, const void* where);
    /// The same for a frame that is made only when there is a place for it. Throws what making it throws, too; then nothing
    /// has changed.
    [[nodiscard]] bool spawn(const frame_maker& maker, const void* where);
    bool wake(unit_index index, std::uint64_t epoch, wake_cause cause) noexcept;
    void doom(unit_index index) noexcept;  ///< Whoever knows the task to be alive.

    // --- Work that only counts, of a crew of one: jobs elsewhere, guards.

    void add_work() const noexcept;
    void drop_work() const noexcept;
    void add_guard() noexcept;
    void drop_guard() noexcept;
    /// Work that does not follow the clock: while there is some, virtual time does not jump.
    void add_outside_work() const noexcept;
    void drop_outside_work() const noexcept;

    [[nodiscard]] std::uint32_t identity() const noexcept { return identity_; }
    /// What its user calls it, for messages. A runtime has room for others even while it has one worker.
    /// Is it a context, which has one worker and never another?
    [[nodiscard]] bool is_alone() const noexcept { return is_alone_; }
    [[nodiscard]] const char* noun() const noexcept { return is_alone_ ? "context" : "runtime"; }
    /// Why it takes nothing any more, for messages to follow the name of a call.
    [[nodiscard]] const char* reason_of_stop() const noexcept;
    [[nodiscard]] const worker_settings& settings() const noexcept { return settings_; }

    /// Nothing is ready anywhere, nothing is between two workers. A guess while anybody is awake.
    [[nodiscard]] bool is_at_rest() const noexcept;
    /// Is this thread one that drives a worker, whatever else it has begun since?
    [[nodiscard]] bool is_below_us() const noexcept;
    /// From now on a task that has been told that everything stops does not even yield any more.
    /// Seq_cst: comes before the look at who sleeps; pairs with tell_of_rest().
    void begin_closing() noexcept { is_closing_.store(true, base::memory_order_seq_cst); }
    /// After that: returns when nothing is ready anywhere, and all workers sleep.
    void wait_for_rest() noexcept;

 private:
    friend class worker;

    static constexpr std::uint64_t one_sender = 1;
    static constexpr std::uint64_t one_visitor = std::uint64_t{1} << 32U;
    static constexpr std::uint64_t all_senders = one_visitor - 1;

    struct waiter {
        unit_index index;
        std::uint64_t life;
        completion* who;
    };

    // crew_ends.cpp
    void tell_of_rest() noexcept;
    void end_workers() noexcept;
    void destroy_tasks() noexcept;
    void destroy_timers() noexcept;
    void wait_for_visitors() const noexcept;
    void wait_for_senders() const noexcept;

    // crew.cpp, and inline in hot_paths.hpp
    [[nodiscard]] worker& owner_of(const timed& its) const noexcept { return at(its.owner()); }
    [[nodiscard]] worker& await(std::uint32_t seat) const noexcept;
    /// Is it ours to touch, because this thread drives the worker that owns it?
    [[nodiscard]] worker* owner_here(const timed& its) const noexcept {
        worker* const mine = here();
        return mine != nullptr && its.owner() == mine->seat_ ? mine : nullptr;
    }
    /// Is this worker the owner of what it has acquired by a word that nobody has linked? If nobody has ever joined it, there is
    /// nothing to look at. Relaxed: what a second worker owns it has accepted in its seat, and who has acquired that counts two.
    [[nodiscard]] bool is_owner(const worker& mine, const timed& its) const noexcept {
        return seat_count_.load(base::memory_order_relaxed) == 1 || its.owner() == mine.seat_;
    }
    [[nodiscard]] worker& choose_worker() const noexcept;
    void send(unit_index index, timed& its, ordinal deadline) noexcept;
    void send_to_all(unit_index index, timed& its) noexcept;
    void ring_owner(const timed& its, ordinal deadline) noexcept;
    void raise_left_number(std::uint64_t least) noexcept;
    void call_somebody() noexcept;
    [[nodiscard]] bool has_unowned_work() const noexcept;
    [[nodiscard]] bool has_ready_work() const noexcept;
    [[nodiscard]] bool is_anybody_parked() const noexcept;
    void inject(unit_index index) noexcept;
    [[nodiscard]] bool tidy_up() const;
    void ask_for_free_units() const noexcept;
    [[nodiscard]] bool is_seat_clean(std::uint32_t seat) const noexcept;

    // crew_timers.cpp
    [[nodiscard]] unit_index take_callback();
    [[nodiscard]] arming begin_arming_elsewhere();
    timer_handle arm_elsewhere(unit_index index, const closure_operations& operations, wait_limit limit) noexcept;
    void count_arm_elsewhere(worker& target) noexcept;
    void end_if_stopped(timer_handle made, sending& bringing) noexcept;
    [[nodiscard]] base::atomic<const void*>& location_of(unit_index index) const noexcept;
    [[nodiscard]] ordinal deadline_of(wait_limit limit) const noexcept;
    /// Does it name a record of this crew, whoever made it up? In one comparison: if it is of another runtime, the difference is
    /// larger than any index.
    [[nodiscard]] bool is_own_callback(const worker& mine, timer_handle which) const noexcept {
        return (std::bit_cast<packed_handle>(which).place ^ mine.names_.place) < callbacks_.size();
    }
    [[nodiscard]] timer_handle name_of(unit_index index, std::uint64_t life, std::uint32_t seat) const noexcept {
        return {.life = life | std::uint64_t{seat} << life_bits, .index = index, .runtime = identity_};
    }
    static void destroy_closure(callback& its, bool has_extra) noexcept;
    [[nodiscard]] static bool is_waiting(unit_index index, state_word value) noexcept {
        return (index & slot_bit) != 0 ? phase_of(value) == task_phase::idle : state_of(value) == timer_state::armed;
    }

    // crew_cancel.cpp
    cancel_result cancel_elsewhere(timer_handle which) noexcept;
    cancel_result cancel_whatever(timer_handle which) noexcept;
    [[nodiscard]] bool is_below(const timed& its) const noexcept;
    [[nodiscard]] bool is_ending_elsewhere(timer_handle which) const noexcept;
    void destroy_claimed(unit_index index, state_word claimed) noexcept;
    void end_cancelled(unit_index index, state_word claimed) noexcept;
    void notify_waiters(unit_index index, std::uint64_t life) noexcept;

    // crew_postpone.cpp
    bool postpone_whatever(timer_handle which, wait_limit limit);
    [[nodiscard]] bool is_stamped_now(const timed& its) const noexcept;
    bool postpone_from_elsewhere(unit_index index, timed& its, std::uint64_t life, ordinal target) noexcept;

    void dump_headline(std::ostream& out) const;  // crew_stats.cpp

    // crew_tasks.cpp
    [[nodiscard]] unit_index take_slot();
    [[nodiscard]] unit_index take_slot_to_spawn();
    void untake_slot(unit_index index) noexcept;
    void begin_task(unit_index index, std::coroutine_handle<> root, task_control* control, const void* where) noexcept;
    [[noreturn]] void refuse_arrival() const;
    void count_spawn_elsewhere() noexcept;
    void send_scheduled(unit_index index, timed& its) noexcept;

    const worker_settings settings_;
    clock_source* const clock_;
    mutable base::atomic<duration::rep> latest_{time_point::min().time_since_epoch().count()};  ///< That it has shown.
    const std::uint32_t identity_;
    const int fork_;  ///< In a forked child nobody drives the workers.
    const bool is_alone_;
    callback_pool callbacks_;
    slot_pool slots_;
    units units_;
    base::mapping locations_;  ///< Where each timer was armed and each task spawned; only if asked for.

    std::vector<std::unique_ptr<worker>> owned_;
    std::unique_ptr<base::atomic<worker*>[]> seats_;
    base::atomic<std::uint32_t> seat_count_{0};

    // What is read often and written seldom.
    alignas(base::cache_line_bytes) base::atomic<bool> is_stopped_{false};
    base::atomic<bool> is_closing_{false};
    /// So many commands wait for an owner that sleeps; then it is woken to clean up.
    base::atomic<std::uint32_t> most_undrained_{1};
    /// A thread that is no worker has made new units for want of free ones.
    base::atomic<bool> is_short_of_callbacks_{false};
    base::atomic<bool> is_short_of_slots_{false};
    /// Above the numbers of all that was ever left behind.
    base::atomic<std::uint64_t> left_number_{0};

    // Who sleeps, who looks for work.
    alignas(base::cache_line_bytes) base::atomic<std::uint32_t> parked_{0};
    base::atomic<std::uint32_t> searching_{0};
    injection injection_;  ///< Ready tasks of nobody.
    inbox merged_;         ///< Timers and sleeping tasks of nobody.
    inbox merged_later_;   ///< Those that are not due for a while, in any order.

    base::atomic<std::uint32_t> guards_{0};  ///< Those who keep a loop from being out of work.
    /// Threads that are in the middle of something here; in the lower half, those who bring something.
    mutable base::atomic<std::uint64_t> visits_{0};
    base::futex_word ended_runs_{0};  ///< Changes when a run ends that somebody waits for.
    base::futex_word rest_bell_{0};   ///< While closing: rung by a worker that goes to sleep.
    base::mutex waiters_mutex_;
    std::vector<waiter> waiters_ CHIME_GUARDED_BY(waiters_mutex_);

    base::striped_counters<outside_count> outside_;
};

}  // namespace chime::inline v0::detail
