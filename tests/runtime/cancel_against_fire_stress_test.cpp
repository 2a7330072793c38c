// SPDX-License-Identifier: MIT
//
// Millions of rounds on real threads: who cancels and who fires never both win, and never neither.
#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/random.hpp"

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr std::size_t batch_size = 64;

/// What became of one closure.
struct fate {
    std::atomic<int> fired{0};
    std::atomic<int> destroyed{0};

    void forget() {
        fired = 0;
        destroyed = 0;
    }
};

/// A closure that keeps its own books.
class noting {
 public:
    explicit noting(fate& noted) : its_(&noted) {}
    noting(noting&& other) noexcept : its_(std::exchange(other.its_, nullptr)) {}
    ~noting() {
        if (its_ != nullptr) its_->destroyed.fetch_add(1);
    }
    void operator()() const { its_->fired.fetch_add(1); }

 private:
    fate* its_;
};

/// How often each side has won, so that a test can say that there was a race at all.
struct score {
    std::uint64_t cancelled = 0;
    std::uint64_t fired = 0;
};

/// A loop on a thread of its own, and timers that this thread cancels while they are due.
class cancel_against_fire : public ::testing::Test {
 protected:
    /// Cancels, and after cancel_and_wait() everything about the timer is settled.
    void cancel_and_settle(std::size_t number) {
        const timer_handle which = handles.at(number);
        const fate& its = fates.at(number);
        if (all.cancel(which) == cancel_result::cancelled) {
            ++sums.cancelled;
            ASSERT_EQ(its.fired.load(), 0) << "cancelled, and fired all the same; " << replay_hint();
            ASSERT_EQ(its.destroyed.load(), 1) << "cancelled, but the closure was not destroyed; " << replay_hint();
        } else {
            ++sums.fired;
            ASSERT_NE(all.cancel_and_wait(which), cancel_result::cancelled) << replay_hint();
            ASSERT_EQ(its.fired.load(), 1) << "neither cancelled nor fired, or fired twice; " << replay_hint();
            ASSERT_EQ(its.destroyed.load(), 1) << replay_hint();
        }
    }

    /// Is there another batch to come? A slow build has fewer of them, but as long as one side has always won it goes on: on
    /// a busy machine the loop may sleep through the first.
    [[nodiscard]] bool goes_on(std::uint64_t batch, std::uint64_t rounds) const {
        const bool is_one_sided = sums.cancelled == 0 || sums.fired == 0;
        return batch < (is_one_sided ? rounds : scaled(rounds)) / batch_size;
    }

    /// The loop has come to its end; both sides have won sometimes.
    void expect_a_race() {
        loop.finish();
        EXPECT_GT(sums.cancelled, 0U);
        EXPECT_GT(sums.fired, 0U);
        const timer_stats counted = all.stats();
        EXPECT_EQ(counted.cancelled, sums.cancelled);
        EXPECT_EQ(counted.fired, sums.fired);
        check_ledger_at_rest(context);
        std::cout << "seed " << process_seed() << ", cancelled " << sums.cancelled << ", fired " << sums.fired << '\n';
    }

    watchdog guard{"cancel against fire", 30s};
    random_source random{process_seed()};
    std::vector<fate> fates{batch_size};
    std::array<timer_handle, batch_size> handles;
    score sums;
    io_context context;
    timers& all = context.timers();
    loop_thread loop{context};
};

TEST_F(cancel_against_fire, three_million_rounds_have_one_winner_each) {
    for (std::uint64_t batch = 0; goes_on(batch, 3'000'000); ++batch) {
        guard.pat();
        for (std::size_t i = 0; i < batch_size; ++i) {
            fates[i].forget();
            handles[i] = all.after(nanoseconds{random.below(30'000)}, noting(fates[i]));
        }
        spin(random.below(20'000));
        for (std::size_t i = 0; i < batch_size; ++i) ASSERT_NO_FATAL_FAILURE(cancel_and_settle(i));
    }
    expect_a_race();
}

TEST_F(cancel_against_fire, what_the_loop_has_armed_itself_has_one_winner_too) {
    for (std::uint64_t batch = 0; goes_on(batch, 500'000); ++batch) {
        guard.pat();
        for (fate& each : fates) each.forget();
        std::atomic<std::size_t> armed{0};
        const std::uint64_t longest_ns = random.below(300'000);
        const std::uint64_t pause = random.below(400);
        context.post([&, pause, longest_ns] {
            for (std::size_t i = 0; i < batch_size; ++i) {
                handles[i] = all.after(nanoseconds{(i * longest_ns) / batch_size}, noting(fates[i]));
                armed.store(i + 1, std::memory_order_release);
                spin(pause);
            }
        });
        // The first ones are cancelled before the callback that has armed them has returned.
        for (std::size_t i = 0; i < batch_size; ++i) {
            await_that([&] { return armed.load(std::memory_order_acquire) > i; });
            ASSERT_NO_FATAL_FAILURE(cancel_and_settle(i));
            spin(random.below(300));
        }
    }
    expect_a_race();
}

TEST_F(cancel_against_fire, a_periodic_timer_is_cancelled_once_and_does_not_run_afterwards) {
    std::uint64_t runs = 0;
    for (std::uint64_t round = 0; round < scaled(200'000); ++round) {
        guard.pat();
        fate its;
        const timer_handle which = all.every(nanoseconds{1 + random.below(2'000)}, missed_ticks::skip, noting(its));
        spin(random.below(10'000));
        const cancel_result answer = all.cancel_and_wait(which);
        ASSERT_NE(answer, cancel_result::gone) << replay_hint();
        ASSERT_EQ(its.destroyed.load(), 1) << replay_hint();
        const int seen = its.fired.load();
        runs += static_cast<std::uint64_t>(seen);
        ASSERT_EQ(all.cancel(which), cancel_result::gone);
        ASSERT_EQ(its.fired.load(), seen);
    }
    loop.finish();
    EXPECT_EQ(all.stats().fired, runs);
    check_ledger_at_rest(context);
}

// --- Sleepers.

/// One sleep with a source of its own, and what became of it.
struct watched_sleeper {
    std::optional<cancel_source> source;
    std::atomic<int> resumed{0};
    wake_reason reason = wake_reason::elapsed;
};

task<> sleep_watched(watched_sleeper& its, duration delay) {
    its.reason = co_await sleep_for(delay, its.source->token());
    its.resumed.fetch_add(1, std::memory_order_release);
}

TEST_F(cancel_against_fire, a_sleeper_with_a_token_resumes_once_with_one_reason) {
    std::vector<watched_sleeper> sleepers(batch_size);
    for (std::uint64_t batch = 0; goes_on(batch, 400'000); ++batch) {
        guard.pat();
        for (watched_sleeper& each : sleepers) {
            each.source.emplace();
            each.resumed = 0;
            spawn_detached(context, sleep_watched(each, nanoseconds{random.below(60'000)}));
        }
        spin(random.below(40'000));
        for (watched_sleeper& each : sleepers) {
            each.source->request_cancel();
            spin(random.below(100));
        }
        for (const watched_sleeper& each : sleepers) {
            await_that([&] { return each.resumed.load(std::memory_order_acquire) != 0; });
            ASSERT_EQ(each.resumed.load(), 1) << replay_hint();
            ++(each.reason == wake_reason::cancelled ? sums.cancelled : sums.fired);
        }
    }
    expect_a_race();
    EXPECT_EQ(all.stats().resumed_by_cancel, sums.cancelled);
    EXPECT_EQ(all.stats().resumed_by_timer, sums.fired);
}

// --- Churn.

void arm_and_cancel_from_threads(io_context& context, unsigned threads, std::uint64_t rounds) {
    std::vector<std::thread> senders;
    for (unsigned number = 0; number < threads; ++number) {
        senders.emplace_back([&context, number, rounds] {
            random_source random(process_seed() + number);
            fate its;
            for (std::uint64_t round = 0; round < rounds; ++round) {
                its.forget();
                const timer_handle which = context.timers().after(1h + nanoseconds{random.below(1'000)}, noting(its));
                if (random.one_in(4)) context.timers().postpone(which, random.one_in(2) ? 30min : 2h);
                ASSERT_EQ(context.timers().cancel(which), cancel_result::cancelled) << replay_hint();
                ASSERT_EQ(its.destroyed.load(), 1);
                ASSERT_EQ(its.fired.load(), 0);
            }
        });
    }
    for (std::thread& each : senders) each.join();
}

TEST(foreign_churn, at_a_loop_that_sleeps_leaves_nothing_behind) {
    const watchdog guard("churn at a sleeping loop", 120s);
    io_context context;
    loop_thread loop(context);
    arm_and_cancel_from_threads(context, 2, scaled(500'000));
    EXPECT_EQ(context.timers().stats().pending, 0U);
    loop.finish();
    check_ledger_at_rest(context);
}

task<> yield_until(const std::atomic<bool>& is_over) {
    while (!is_over.load(std::memory_order_relaxed)) co_await yield();
}

TEST(foreign_churn, at_a_loop_that_is_busy_leaves_nothing_behind) {
    const watchdog guard("churn at a busy loop", 120s);
    io_context context;
    std::atomic<bool> is_over{false};
    spawn_detached(context, yield_until(is_over));
    loop_thread loop(context);
    arm_and_cancel_from_threads(context, 2, scaled(500'000));
    is_over = true;
    loop.finish();
    check_ledger_at_rest(context);
}

TEST(foreign_churn, a_handle_cancelled_by_three_threads_is_cancelled_by_one) {
    watchdog guard("three cancellers", 30s);
    io_context context;
    loop_thread loop(context);
    std::array<std::atomic<std::uint64_t>, 3> done{};
    std::array<std::atomic<int>, batch_size> cancelled{};
    std::array<timer_handle, batch_size> handles;
    std::atomic<std::uint64_t> begun{0};
    const std::uint64_t batches = scaled(300'000) / batch_size;
    std::vector<std::thread> cancellers;
    for (std::size_t number = 0; number < 3; ++number) {
        cancellers.emplace_back([&, number] {
            for (std::uint64_t batch = 1; batch <= batches; ++batch) {
                await_that([&] { return begun.load(std::memory_order_acquire) >= batch; });
                for (std::size_t i = 0; i < batch_size; ++i) {
                    if (context.timers().cancel(handles[i]) == cancel_result::cancelled) cancelled[i].fetch_add(1);
                }
                done[number].store(batch, std::memory_order_release);
            }
        });
    }
    std::vector<fate> fates(batch_size);
    random_source random(process_seed());
    for (std::uint64_t batch = 1; batch <= batches; ++batch) {
        guard.pat();
        for (std::size_t i = 0; i < batch_size; ++i) {
            fates[i].forget();
            cancelled[i] = 0;
            handles[i] = context.timers().after(nanoseconds{random.below(20'000)}, noting(fates[i]));
        }
        begun.store(batch, std::memory_order_release);
        for (const auto& each : done) {
            await_that([&] { return each.load(std::memory_order_acquire) == batch; });
        }
        for (std::size_t i = 0; i < batch_size; ++i) {
            context.timers().cancel_and_wait(handles[i]);
            ASSERT_EQ(cancelled[i].load() + fates[i].fired.load(), 1) << replay_hint();
            ASSERT_EQ(fates[i].destroyed.load(), 1) << replay_hint();
        }
    }
    for (std::thread& each : cancellers) each.join();
    loop.finish();
    check_ledger_at_rest(context);
}

}  // namespace
}  // namespace chime::test
