// SPDX-License-Identifier: MIT
//
// Cancelling by handle: three answers, whatever the handle is.
#include "support/ledger.hpp"
#include "support/random.hpp"
#include "support/witness.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

static_assert(std::is_trivially_copyable_v<timer_handle> && std::is_standard_layout_v<timer_handle>);

TEST(timer_handle, can_be_a_key) {
    io_context context;
    std::unordered_map<timer_handle, int> names;
    for (int number = 0; number < 1000; ++number) {
        names[context.timers().after(1h, [] {})] = number;
        names[timer_handle{.life = static_cast<std::uint64_t>(number) << 54U, .index = 1, .runtime = ~0U}] = number;
    }
    ASSERT_EQ(names.size(), 2000U);
    std::set<std::size_t> hashes;
    for (const auto& [handle, number] : names) hashes.insert(std::hash<timer_handle>{}(handle));
    EXPECT_GT(hashes.size(), 1990U) << "and is spread well";
}

// --- cancel

TEST(cancel, before_anything_has_happened_means_that_it_never_runs) {
    testing::virtual_context context;
    timers& timers = context->timers();
    witness_report report;
    const auto never_run = [&] { return [kept = witness(report)] { ADD_FAILURE() << "it was cancelled"; }; };
    // Still on its way to the loop, and in the wheel; once and periodic.
    const timer_handle on_its_way = timers.after(1s, never_run());
    EXPECT_EQ(timers.cancel(on_its_way), cancel_result::cancelled);
    EXPECT_EQ(report.ends, 1);
    const timer_handle in_the_wheel = timers.at(time_point{} + 1s, never_run());
    const timer_handle periodic = timers.every(1s, missed_ticks::delay, never_run());
    context.settle();
    EXPECT_EQ(timers.cancel(in_the_wheel), cancel_result::cancelled);
    EXPECT_EQ(timers.cancel(periodic), cancel_result::cancelled);
    EXPECT_EQ(report.ends, 3);
    EXPECT_EQ(context.run(), 0U);
    EXPECT_EQ(context.now(), time_point{}) << "nothing is left to wait for";
    for (const timer_handle which : {on_its_way, in_the_wheel, periodic}) {
        EXPECT_EQ(timers.cancel(which), cancel_result::gone) << "twice";
    }
    EXPECT_EQ(report.ends, 3);
    check_ledger_at_rest(*context);
}

TEST(cancel, in_its_own_callback_answers_running_as_often_as_it_is_asked) {
    testing::virtual_context context;
    timers& timers = context->timers();
    timer_handle own;
    int ran = 0;
    own = timers.after(1s, [&] {
        ++ran;
        EXPECT_EQ(timers.cancel(own), cancel_result::running);
        EXPECT_EQ(timers.cancel(own), cancel_result::running);
        EXPECT_EQ(timers.cancel_and_wait(own), cancel_result::running) << "at once, or it would wait for ever";
        EXPECT_FALSE(timers.postpone(own, 1s));
    });
    context.run();
    EXPECT_EQ(ran, 1);
    EXPECT_EQ(timers.cancel(own), cancel_result::gone);
    EXPECT_EQ(timers.stats().cancelled, 0U) << "it has run";
    check_ledger_at_rest(*context);
}

TEST(cancel, of_an_earlier_timer_in_a_later_callback_of_the_same_turn_is_too_late) {
    testing::virtual_context context;
    timers& timers = context->timers();
    const timer_handle first = timers.after(1s, [] {});
    timers.after(1s, [&] { EXPECT_EQ(timers.cancel(first), cancel_result::gone); });
    EXPECT_EQ(context.run(), 2U);
    check_ledger_at_rest(*context);
}

struct cancels_in_destructor {
    cancels_in_destructor(timers& where, const timer_handle& whom, std::vector<cancel_result>& told)
        : home(&where), which(&whom), answers(&told) {}
    cancels_in_destructor(cancels_in_destructor&& other) noexcept
        : home(std::exchange(other.home, nullptr)), which(other.which), answers(other.answers) {}
    ~cancels_in_destructor() {
        if (home != nullptr) answers->push_back(home->cancel(*which));
    }
    void operator()() const {}
    timers* home;
    const timer_handle* which;
    std::vector<cancel_result>* answers;
};

TEST(cancel, by_the_destructor_of_the_closure_itself_is_harmless) {
    std::vector<cancel_result> answers;
    timer_handle own;
    {
        testing::virtual_context context;
        timers& timers = context->timers();
        // Cancelled; run; cancelled inside the loop; and destroyed with the context.
        own = timers.after(1s, cancels_in_destructor(timers, own, answers));
        EXPECT_EQ(timers.cancel(own), cancel_result::cancelled);
        ASSERT_EQ(answers.size(), 1U);
        EXPECT_EQ(answers.back(), cancel_result::gone);
        own = timers.after(1s, cancels_in_destructor(timers, own, answers));
        context.run();
        ASSERT_EQ(answers.size(), 2U);
        EXPECT_NE(answers.back(), cancel_result::cancelled) << "it has run";
        context->post([&] {
            own = timers.after(1s, cancels_in_destructor(timers, own, answers));
            EXPECT_EQ(timers.cancel(own), cancel_result::cancelled);
        });
        context.run();
        ASSERT_EQ(answers.size(), 3U);
        EXPECT_EQ(answers.back(), cancel_result::gone);
        own = timers.after(1s, cancels_in_destructor(timers, own, answers));
        context.settle();
        check_ledger(*context);
    }
    ASSERT_EQ(answers.size(), 4U);
    EXPECT_EQ(answers.back(), cancel_result::gone);
}

struct arms_in_destructor {
    explicit arms_in_destructor(timers& where, int& counted) : home(&where), ran(&counted) {}
    arms_in_destructor(arms_in_destructor&& other) noexcept
        : home(std::exchange(other.home, nullptr)), ran(other.ran) {}
    ~arms_in_destructor() {
        if (home == nullptr) return;
        static_cast<void>(home->try_after(1s, [&counted = *ran] { ++counted; }));
    }
    void operator()() const {}
    timers* home;
    int* ran;
};

TEST(cancel, of_a_closure_whose_destructor_arms_another_timer_is_fine) {
    testing::virtual_context context;
    timers& timers = context->timers();
    int ran = 0;
    const timer_handle outside = timers.after(1h, arms_in_destructor(timers, ran));
    EXPECT_EQ(timers.cancel(outside), cancel_result::cancelled);
    context->post([&] {
        const timer_handle inside = timers.after(1h, arms_in_destructor(timers, ran));
        EXPECT_EQ(timers.cancel(inside), cancel_result::cancelled);
    });
    timers.after(1ms, arms_in_destructor(timers, ran));
    context.run();
    EXPECT_EQ(ran, 3);
    timers.after(1h, arms_in_destructor(timers, ran));  // And refused when the context goes.
    context.settle();
    check_ledger(*context);
}

// --- Foreign, forged and stale handles.

TEST(cancel, with_a_handle_of_another_context_is_gone) {
    testing::virtual_context here;
    testing::virtual_context there;
    int ran_here = 0;
    int ran_there = 0;
    const timer_handle ours = here->timers().after(1s, [&] { ++ran_here; });
    const timer_handle theirs = there->timers().after(1s, [&] { ++ran_there; });
    EXPECT_NE(ours, theirs);
    EXPECT_EQ(here->timers().cancel(theirs), cancel_result::gone);
    EXPECT_EQ(there->timers().cancel_and_wait(ours), cancel_result::gone);
    EXPECT_FALSE(here->timers().postpone(theirs, 1h));
    EXPECT_FALSE(there->timers().postpone_until(ours, never));
    here.run();
    there.run();
    EXPECT_EQ(ran_here, 1);
    EXPECT_EQ(ran_there, 1);
    check_ledger_at_rest(*here);
    check_ledger_at_rest(*there);
}

TEST(cancel, with_a_handle_of_a_context_that_is_gone_is_gone) {
    std::vector<timer_handle> old;
    for (int count = 0; count < 10; ++count) {
        testing::virtual_context context;
        for (const timer_handle which : old) EXPECT_EQ(context->timers().cancel(which), cancel_result::gone);
        old.push_back(context->timers().after(1s, [] {}));
        context.settle();
        check_ledger(*context);
    }
}

task<> sleep_an_hour(int& woken) {
    co_await sleep_for(1h);
    ++woken;
}

TEST(cancel, with_random_bits_for_a_handle_is_gone) {
    random_source random(process_seed());
    testing::virtual_context context;
    timers& timers = context->timers();
    int ran = 0;
    int woken = 0;
    timer_handle known;
    for (int count = 0; count < 100; ++count) {
        known = timers.after(1h, [&] { ++ran; });
        spawn_detached(*context, sleep_an_hour(woken));
    }
    context.settle();
    for (std::uint64_t count = scaled(1'000'000); count != 0; --count) {
        timer_handle forged{.life = random.next(),
                            .index = static_cast<std::uint32_t>(random.next()),
                            .runtime = static_cast<std::uint32_t>(random.next())};
        if (!random.one_in(4)) forged.runtime = known.runtime;
        if (random.one_in(2)) forged.index %= 1024;
        if (random.one_in(4)) forged.index |= 1U << 31U;
        if (forged.life < 1'000'000) continue;  // Those have been given away, perhaps.
        timers.prefetch(forged);                // Must not even be noticed.
        ASSERT_EQ(timers.cancel(forged), cancel_result::gone) << replay_hint();
        ASSERT_EQ(timers.cancel_and_wait(forged), cancel_result::gone) << replay_hint();
        ASSERT_FALSE(timers.postpone(forged, 1ns)) << replay_hint();
    }
    context.advance(1h - 1ns);
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(woken, 0);
    context.advance(1ns);
    EXPECT_EQ(ran, 100);
    EXPECT_EQ(woken, 100);
    check_ledger_at_rest(*context);
}

TEST(cancel, with_the_handle_of_every_record_that_there_might_be_is_gone_when_nothing_is_pending) {
    testing::virtual_context context;
    timers& timers = context->timers();
    timer_handle known = timers.after(1s, [] {});
    context.run();
    for (std::uint32_t index = 0; index < 1000; ++index) {
        for (std::uint64_t life = 0; life < 8; ++life) {
            for (const std::uint32_t kind : {0U, 1U << 31U}) {
                known.index = index | kind;
                known.life = life;
                ASSERT_EQ(timers.cancel(known), cancel_result::gone);
                ASSERT_FALSE(timers.postpone(known, 1s));
            }
        }
    }
    EXPECT_EQ(context.run(), 0U);
    check_ledger_at_rest(*context);
}

/// Tries every name that a wait in the first slots could have, with few lives behind it.
template <class Attempt>
void try_names_of_waits(timer_handle known, Attempt&& attempt) {
    for (std::uint32_t index = 0; index < 64; ++index) {
        for (std::uint64_t life = 0; life < 64; ++life) {
            known.index = index | 1U << 31U;
            known.life = life;
            attempt(known);
        }
    }
}

task<> join_and_note(join_handle<void> joined, int& ended) {
    co_await joined;
    ++ended;
}

TEST(cancel, with_the_forged_name_of_a_wait_that_has_no_timer_is_gone) {
    // A task that waits for another task waits for no timer: nobody was ever given a handle of it.
    testing::virtual_context context;
    timers& timers = context->timers();
    const timer_handle known = timers.after(1h, [] {});
    auto guard = context->make_work_guard();
    int woken = 0;
    int ended = 0;
    auto sleeper = spawn(*context, sleep_an_hour(woken));
    context.settle();
    spawn_detached(*context, join_and_note(std::move(sleeper), ended));
    context.settle();
    const timer_stats before = timers.stats();
    ASSERT_EQ(before.pending, 2U);
    ASSERT_EQ(before.waiting, 2U);
    int cancelled = 0;
    try_names_of_waits(known, [&](timer_handle forged) {
        if (timers.cancel(forged) == cancel_result::cancelled) ++cancelled;
    });
    EXPECT_EQ(cancelled, 1) << "the sleeper, whose name was guessed, and nobody else";
    EXPECT_NO_THROW(context.settle());
    EXPECT_EQ(woken, 1);
    EXPECT_EQ(ended, 1);
    check_ledger(*context);
}

TEST(postpone, with_the_forged_name_of_a_wait_that_has_no_timer_is_refused) {
    testing::virtual_context context;
    timers& timers = context->timers();
    const timer_handle known = timers.after(1h, [] {});
    int woken = 0;
    int ended = 0;
    auto sleeper = spawn(*context, sleep_an_hour(woken));
    context.settle();
    spawn_detached(*context, join_and_note(std::move(sleeper), ended));
    context.settle();
    int postponed = 0;
    try_names_of_waits(known, [&](timer_handle forged) {
        if (timers.postpone(forged, 2h)) ++postponed;
    });
    context->post([&] {  // The same inside the loop.
        try_names_of_waits(known, [&](timer_handle forged) {
            if (timers.postpone_until(forged, time_point{} + 2h)) ++postponed;
        });
    });
    context.settle();
    EXPECT_EQ(postponed, 2) << "the sleeper, twice, and nobody else";
    check_ledger(*context);
    EXPECT_NO_THROW(context.run());
    EXPECT_EQ(context.now(), time_point{} + 2h);
    EXPECT_EQ(woken, 1);
    EXPECT_EQ(ended, 1);
    check_ledger_at_rest(*context);
}

TEST(timer_handle, that_names_nothing_is_gone) {
    testing::virtual_context context;
    const timer_handle nothing{};
    EXPECT_FALSE(nothing);
    EXPECT_EQ(context->timers().cancel(nothing), cancel_result::gone);
    EXPECT_EQ(context->timers().cancel_and_wait(nothing), cancel_result::gone);
    EXPECT_FALSE(context->timers().postpone(nothing, 1s));
    const timer_handle something = context->timers().after(1s, [] {});
    EXPECT_TRUE(something);
    EXPECT_FALSE(something.is_sleep());
    EXPECT_EQ(something.task_id(), 0U);
    context.run();
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
