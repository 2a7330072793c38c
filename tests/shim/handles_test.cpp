// SPDX-License-Identifier: MIT
#include "base/atomic.hpp"
#include "shim/engine/explore.hpp"
#include "shim/small_crew.hpp"

#include <chime/sleep.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <utility>

// Handles are plain data: somebody may have one without having learned anything else from whoever has armed the timer. So
// whose it is, and what it runs, the word of the record alone can tell.

namespace {

using namespace chime;
using namespace std::chrono_literals;
using shim::require;
using test::crew_threads;
using test::gate;
using test::small_crew;

/// Two workers and one record, which was the first one's before the second one arms it. The first one gets its new name by a
/// number that carries nothing else along.
class hearsay {
 public:
    hearsay(std::int64_t pieces, bool resumes_inline) : both(2, pieces, settings(resumes_inline)) {}

    [[nodiscard]] time_point due() const noexcept { return due_; }
    void tell(const timer_handle& made) noexcept { life_.store(made.life, base::memory_order_relaxed); }
    /// A name of nothing, if it was not told yet.
    [[nodiscard]] timer_handle heard() const noexcept {
        return {.life = life_.load(base::memory_order_relaxed), .index = before_.index, .runtime = before_.runtime};
    }

    /// Each task sleeps until it is due, and then goes on where it is.
    void run(task<> first, task<> second) {
        both.spawn(use_record());
        both.settle(0);
        require(both->begin_arming().closure == nullptr, "the only record is in the reserve of the first one");
        both.turn(0);  // It has given it to all.
        both.spawn(std::move(first));
        both.turn(0);
        both.spawn(std::move(second));
        both.settle(1);
        crew_threads workers(both, {&small_crew::drive_on, &small_crew::drive_on});
        workers.finish();
    }

    small_crew both;

 private:
    [[nodiscard]] static detail::worker_settings settings(bool resumes_inline) {
        detail::worker_settings chosen = small_crew::small();
        chosen.max_timers = 1;
        chosen.resumes_inline = resumes_inline;
        return chosen;
    }
    task<> use_record() {
        before_ = both.arm(due_, [] {});
        require(both->cancel(before_) == cancel_result::cancelled, "it is pending");
        co_return;
    }

    const time_point due_ = shim::now() + 1ms;
    timer_handle before_;
    base::atomic<std::uint64_t> life_{0};
};

/// A closure that has something to destroy. Plain: who destroys it must know of who has made it.
class counted_end {
 public:
    explicit counted_end(shim::tally& ends) noexcept : ends_(&ends) {}
    counted_end(counted_end&& other) noexcept : ends_(std::exchange(other.ends_, nullptr)) {}
    counted_end& operator=(counted_end&&) = delete;
    ~counted_end() {
        if (ends_ != nullptr) ends_->add();
    }
    void operator()() const {}

 private:
    shim::tally* ends_;
};

struct cancelling {
    bool is_plain = false;  ///< Its closure has nothing to destroy.
    hearsay story{2, true};
    shim::tally ends;
    shim::tally cancelled;
    gate is_over;

    void cancel(timer_handle which) { cancelled.add(story.both->cancel(which) == cancel_result::cancelled); }
};

task<> cancel_what_was_heard(cancelling& all) {
    auto due = sleep_until(all.story.due());
    co_await due;
    all.cancel(all.story.heard());
    all.is_over.open();
    all.story.both.note_end();
}

task<> arm_and_tell(cancelling& all) {
    auto due = sleep_until(all.story.due());
    co_await due;
    const time_point later = all.story.due() + 1h;
    const timer_handle made =
        all.is_plain ? all.story.both.arm(later, [] {}) : all.story.both.arm(later, counted_end(all.ends));
    all.story.tell(made);
    all.is_over.pass();
    all.cancel(made);
    all.story.both.note_end();
}

CHIME_SCENARIO(handle, that_was_heard_of_cancels_a_timer_of_another_worker_once, .share = 4) {
    cancelling all;
    all.story.run(cancel_what_was_heard(all), arm_and_tell(all));
    shim::require_equal(static_cast<std::uint64_t>(all.cancelled.count()), 1, "who has cancelled it");
    shim::require_equal(static_cast<std::uint64_t>(all.ends.count()), 1, "closures that were destroyed");
}

CHIME_SCENARIO(handle, that_was_heard_of_cancels_a_plain_timer_of_another_worker_once, .share = 4) {
    cancelling all;
    all.is_plain = true;
    all.story.run(cancel_what_was_heard(all), arm_and_tell(all));
    shim::require_equal(static_cast<std::uint64_t>(all.cancelled.count()), 1, "who has cancelled it");
}

struct postponing {
    postponing(detail::wait_limit limit, bool resumes_inline) : earlier(limit), story(3, resumes_inline) {}

    const detail::wait_limit earlier;
    hearsay story;
    shim::tally did;
};

task<> postpone_what_was_heard(postponing& all) {
    auto due = sleep_until(all.story.due());
    co_await due;
    all.did.add(all.story.both->postpone(all.story.heard(), all.earlier) ? 1 : 0);
    all.story.both.note_end();
}

task<> arm_for_later_and_tell(postponing& all) {
    auto due = sleep_until(all.story.due());
    co_await due;
    all.story.tell(all.story.both.arm(all.story.due() + 2ms, [&all] {
        // Who has only heard of it may have postponed it before it got its first deadline.
        const bool is_early = shim::now() == all.story.due() + 1ms;
        require(is_early ? all.did.count() == 1 : shim::now() == all.story.due() + 2ms, "it fires at one of the two");
        all.story.both.note_end();
    }));
    all.story.both.note_end();
}

void postpone_by_hearsay(detail::wait_limit earlier, bool resumes_inline) {
    postponing all(earlier, resumes_inline);
    all.story.run(postpone_what_was_heard(all), arm_for_later_and_tell(all));
}

CHIME_SCENARIO(handle, that_was_heard_of_postpones_a_timer_of_another_worker_by_a_delay, .share = 4) {
    postpone_by_hearsay(detail::wait_limit::after(1ms), true);
}

/// When no timers fire, which takes fewer steps.
CHIME_SCENARIO(handle, that_was_heard_of_postpones_a_timer_of_another_worker_by_a_delay_between_advances, .share = 4) {
    postpone_by_hearsay(detail::wait_limit::after(1ms), false);
}

CHIME_SCENARIO(handle, that_was_heard_of_postpones_a_timer_of_another_worker_to_a_time, .share = 4) {
    postpone_by_hearsay(detail::wait_limit::at(shim::now() + 2ms), true);
}

// --- Two who postpone it at once, one of them the loop that it is pending with.

struct last_word {
    small_crew one{1, 2};
    const time_point due = shim::now() + 1ms;
    detail::wait_limit here;  ///< What the loop asks for when it is due.
    time_point expected_here;
    time_point elsewhere;  ///< What another thread asks for.
    timer_handle which;
    base::atomic<bool> is_told{false};  ///< By the other thread.
    bool is_ours = false;               ///< The loop has asked after that. Plain: of the loop alone.

    void postpone_here() {
        is_ours = is_told.load(base::memory_order_acquire);
        require(one->postpone(which, here), "it is pending");
        one.note_end();
    }
    void fire() {
        const time_point now = shim::now();
        require(now == expected_here || (now == elsewhere && !is_ours), "the last word counts");
        one.note_end();
    }
    void run() {
        which = one.arm(due + 3ms, [this] { fire(); });
        one.arm(due, [this] { postpone_here(); });
        one.settle(0);
        crew_threads workers(one, {&small_crew::drive_on});
        shim::sleep_until(due);
        require(one->postpone(which, detail::wait_limit::at(elsewhere)), "it is pending");
        is_told.store(true, base::memory_order_release);
        workers.finish();
    }
};

CHIME_SCENARIO(handle, of_a_timer_that_another_thread_has_postponed_for_longer_postpones_it_by_a_delay, .share = 2) {
    last_word its;
    its.here = detail::wait_limit::after(2ms);
    its.expected_here = its.due + 2ms;
    its.elsewhere = its.due + 5ms;
    its.run();
}

CHIME_SCENARIO(handle, of_a_timer_that_another_thread_has_postponed_for_less_postpones_it_to_a_time, .share = 2) {
    last_word its;
    its.expected_here = its.due + 2ms;
    its.here = detail::wait_limit::at(its.expected_here);
    its.elsewhere = its.due + 1ms;
    its.run();
}

}  // namespace
