// SPDX-License-Identifier: MIT
//
// User code that runs at the very end: destructors of closures and of frames while a runtime is shut down, and those of
// a thread that exits. Whatever they call, there is an answer.

#include "runtime/small_tasks.hpp"
#include "runtime/watchdog.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/cancel.hpp>
#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

/// Calls something when it goes, unless it was moved from.
class last_words {
 public:
    explicit last_words(std::function<void()> said) : said_(std::move(said)) {}
    last_words(last_words&& other) noexcept : said_(std::exchange(other.said_, nullptr)) {}
    last_words& operator=(last_words&&) = delete;
    ~last_words() {
        if (said_) said_();
    }

 private:
    std::function<void()> said_;
};

// --- A runtime that is shut down.

template <class Call>
void expect_answer(errc expected, const char* name, const Call& call) {
    try {
        call();
        ADD_FAILURE() << name << " was not refused";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), make_error_code(expected)) << name << ": " << error.what();
    }
}

/// What everything calls that ends with a runtime, on a worker or on the thread that ends it.
struct questions {
    runtime& home;
    timer_handle pending_callback{};  ///< Armed for an hour; it may be gone by now.
    std::atomic<int> asked{0};
    std::atomic<int> ran{0};  ///< What was refused.

    void ask_all() {
        ask_timers();
        ask_tasks();
        ask_about_workers();
        ++asked;
    }

    void ask_timers() {
        timers& all = home.timers();
        const auto run = [this] { ++ran; };
        expect_answer(errc::stopped, "after", [&] { all.after(0s, run); });
        expect_answer(errc::stopped, "at", [&] { all.at(all.now(), run); });
        expect_answer(errc::stopped, "every", [&] { all.every(1ms, missed_ticks::skip, run); });
        cancel_source source;
        expect_answer(errc::stopped, "after with a token", [&] { all.after(0s, run, source.token()); });
        EXPECT_FALSE(all.try_after(0s, run).has_value());
        EXPECT_FALSE(all.try_at(all.now(), run).has_value());
        EXPECT_FALSE(all.try_every(1ms, missed_ticks::skip, run).has_value());
        // Whoever of them is first has cancelled it; or the runtime has.
        EXPECT_NE(all.cancel(pending_callback), cancel_result::running);
        EXPECT_EQ(all.cancel(pending_callback), cancel_result::gone);
        EXPECT_EQ(all.cancel_and_wait(pending_callback), cancel_result::gone);
        EXPECT_FALSE(all.postpone(pending_callback, 1h));
        EXPECT_FALSE(all.postpone_until(pending_callback, never));
        all.prefetch(pending_callback);
        static_cast<void>(all.stats());
        all.stop();
        static_cast<void>(all.sleep_for(1s));  // Made, and never awaited.
        static_cast<void>(all.cancel_and_join(pending_callback));
    }

    void ask_tasks() {
        expect_answer(errc::stopped, "spawn", [&] { auto joined = home.spawn(answer_after(0s, 1)); });
        expect_answer(errc::stopped, "spawn_detached", [&] { spawn_detached(home, fail_after(0s)); });
        EXPECT_FALSE(home.try_spawn(answer_after(0s, 1)).has_value());
        EXPECT_FALSE(try_spawn_detached(home, fail_after(0s)));
        expect_answer(errc::stopped, "post", [&] { home.post([this] { ++ran; }); });
        EXPECT_FALSE(home.try_post([this] { ++ran; }));
        expect_answer(errc::on_a_worker, "block_on", [&] { home.block_on(answer_after(0s, 1)); });
        static_cast<void>(home.get_scheduler().schedule());  // Made, and never awaited.
    }

    void ask_about_workers() {
        expect_answer(errc::stopped, "add_worker", [&] { home.add_worker(); });
        expect_answer(errc::stopped, "retire_worker", [&] { home.retire_worker(0); });
        EXPECT_FALSE(home.try_add_worker().has_value());
        EXPECT_FALSE(home.try_retire_worker(0));
        expect_answer(errc::on_a_worker, "shutdown", [&] { home.shutdown(); });
        EXPECT_TRUE(home.is_on_a_worker());
        EXPECT_EQ(home.stats().workers_added, 3U);
        std::ostringstream out;
        home.dump_pending(out);
        EXPECT_EQ(out.str().find("chime runtime"), 0U) << out.str();
    }
};

task<> end_when_cancelled(questions& its, std::atomic<int>& asleep) {
    const last_words local([&] { its.ask_all(); });
    ++asleep;
    co_await sleep_for(1h);
}

task<> sleep_again(questions& its, std::atomic<int>& asleep) {
    const last_words local([&] { its.ask_all(); });
    ++asleep;
    for (;;) co_await sleep_for(1h);
}

task<last_words> give_last_words(questions& its, std::atomic<int>& asleep) {
    ++asleep;
    co_await sleep_for(1h);
    co_return last_words([&] { its.ask_all(); });
}

task<> wait_for_another(questions& its, std::atomic<int>& asleep, join_handle<int> other) {
    const last_words local([&] { its.ask_all(); });
    ++asleep;
    co_await other;
}

/// Everything that ends with a runtime and has a destructor of a user's in it, some of each kind.
int populate(runtime& home, runtime& other, questions& its) {
    constexpr int each_kind = 20;
    std::atomic<int> asleep{0};
    its.pending_callback = home.timers().after(1h, [&its] { ++its.ran; });
    const auto arm = [&] {
        const auto words = [&its] { return last_words([&its] { its.ask_all(); }); };
        for (int count = 0; count < each_kind; ++count) {
            home.timers().after(1h, [said = words()] {});
            home.timers().every(1h, missed_ticks::skip,
                                [said = words(), padding = std::array<char, 100>{}] { static_cast<void>(padding); });
        }
    };
    std::array<std::thread, 3> threads;  // Those that are started together have different workers.
    for (std::thread& each : threads) each = std::thread(arm);
    for (std::thread& each : threads) each.join();
    for (int count = 0; count < each_kind; ++count) {
        spawn_detached(home, end_when_cancelled(its, asleep));
        spawn_detached(home, sleep_again(its, asleep));
        auto dropped = home.spawn(give_last_words(its, asleep));
        dropped.detach();
        spawn_detached(home, wait_for_another(its, asleep, other.spawn(answer_after(1h, 1))));
    }
    await_that([&] { return asleep == 4 * each_kind; });
    return (6 + 4) * each_kind;
}

TEST(destructors_of_closures_and_frames, may_ask_a_runtime_for_anything_while_it_is_shut_down) {
    watchdog guard("questions during a shutdown", 30s);
    for (int round = 0; round < 5; ++round) {
        guard.pat();
        runtime other({.workers = 1});
        runtime home({.workers = 3});
        questions its{.home = home};
        const int wanted = populate(home, other, its);
        check_ledger_after_shutdown(home);
        EXPECT_EQ(its.asked.load(), wanted);
        EXPECT_EQ(its.ran.load(), 0);
        check_ledger_after_shutdown(other);
    }
}

TEST(destructors_of_closures_and_frames, may_ask_a_runtime_for_anything_while_it_is_destroyed) {
    const watchdog guard("questions during a destruction", 30s);
    runtime other({.workers = 1});
    auto home = std::make_unique<runtime>(runtime_config{.workers = 3});
    questions its{.home = *home};
    const int wanted = populate(*home, other, its);
    check_ledger_at_rest(*home);
    home.reset();
    EXPECT_EQ(its.asked.load(), wanted);
    EXPECT_EQ(its.ran.load(), 0);
    check_ledger_after_shutdown(other);
}

// --- A thread that ends.

/// Constructed before its thread uses anything of chime's, and so destroyed after all that chime keeps for the thread; or
/// after, and so destroyed before.
thread_local std::optional<last_words> of_this_thread;

TEST(the_last_destructors_of_a_thread, may_arm_and_spawn_and_post_and_block) {
    watchdog guard("the last destructors of threads", 60s);
    runtime home({.workers = 2});
    std::atomic<int> ran{0};
    std::atomic<int> answers{0};
    const auto run_task = [](std::atomic<int>& counted) -> task<> {
        co_await sleep_for(10us);
        ++counted;
    };
    const auto use_all = [&] {
        home.timers().after(1ms, [&ran, padding = std::array<char, 200>{}] { ran += 1 + padding[0]; });
        const timer_handle cancelled = home.timers().after(1h, [&ran] { ran += 1'000'000; });
        EXPECT_EQ(home.timers().cancel(cancelled), cancel_result::cancelled);
        spawn_detached(home, run_task(ran));
        home.post([&ran] { ++ran; });
        auto joined = home.spawn(answer_after(10us, 5));
        answers += home.block_on(answer_after(10us, 2));
        joined.wait();
        answers += joined.take();
    };
    constexpr int threads = 100;
    for (int count = 0; count < threads; ++count) {
        guard.pat();
        // All at once, so that what one has left is what another one takes.
        std::array<std::thread, 3> ending;
        ending[0] = std::thread([&] {
            of_this_thread.emplace(use_all);
            use_all();
        });
        ending[1] = std::thread([&] {
            use_all();
            of_this_thread.emplace(use_all);
        });
        ending[2] = std::thread([&] { of_this_thread.emplace(use_all); });
        for (std::thread& each : ending) each.join();
    }
    await_that([&] { return ran == 5 * threads * 3; });
    EXPECT_EQ(answers.load(), 5 * threads * 7);
    check_ledger_after_shutdown(home);
    EXPECT_EQ(ran.load(), 5 * threads * 3);
}

TEST(the_last_destructors_of_a_thread, are_refused_by_a_runtime_that_was_shut_down) {
    const watchdog guard("the last destructors of a late thread", 30s);
    runtime home({.workers = 2});
    std::atomic<int> ran{0};
    std::atomic<int> asked{0};
    const auto ask = [&] {
        expect_answer(errc::stopped, "after", [&] { home.timers().after(0s, [&] { ++ran; }); });
        expect_answer(errc::stopped, "spawn_detached", [&] { spawn_detached(home, fail_after(0s)); });
        expect_answer(errc::stopped, "post", [&] { home.post([&] { ++ran; }); });
        expect_answer(errc::stopped, "block_on", [&] { home.block_on(answer_after(0s, 1)); });
        ++asked;
    };
    std::atomic<bool> is_over{false};
    std::thread late([&] {
        of_this_thread.emplace(ask);
        home.timers().after(1h, [&] { ++ran; });
        await_that([&] { return is_over.load(); });
    });
    await_that([&] { return home.stats().timers.pending == 1; });
    home.shutdown();
    is_over = true;
    late.join();
    EXPECT_EQ(asked.load(), 1);
    EXPECT_EQ(ran.load(), 0);
    check_ledger_after_shutdown(home);
}

}  // namespace
}  // namespace chime::test
