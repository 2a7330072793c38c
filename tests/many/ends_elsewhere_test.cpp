// SPDX-License-Identifier: MIT
//
// What ends on another thread than the one that looks: closures that somebody else destroys, and loops that return because of
// a call that has not returned itself. Each was wrong once.

#include "runtime/small_tasks.hpp"
#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>
#include <chime/timer_cell.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

enum stage : int { before, ending, ended };

/// A closure that takes its time to end.
class lingering {
 public:
    explicit lingering(std::atomic<int>& where) noexcept : where_(&where) {}
    lingering(lingering&& other) noexcept : where_(std::exchange(other.where_, nullptr)) {}
    ~lingering() {
        if (where_ == nullptr) return;
        *where_ = ending;
        std::this_thread::sleep_for(50ms);
        *where_ = ended;
    }
    void operator()() const noexcept {}

 private:
    std::atomic<int>* where_;
};

void await_stage(const std::atomic<int>& where, stage wanted) {
    while (where != wanted) std::this_thread::yield();
}

template <class Home>
void end_while_a_token_is_cancelled(std::optional<Home>& home) {
    std::atomic<int> where{before};
    cancel_source source;
    home->timers().after(1h, lingering(where), source.token());
    std::thread elsewhere([&] { source.request_cancel(); });  // Knows nothing of the context.
    await_stage(where, ending);
    home.reset();
    EXPECT_EQ(where, ended);
    elsewhere.join();
}

TEST(the_end_of_a_context, waits_for_a_token_that_is_cancelled_elsewhere) {
    const watchdog guard("a token and the end of a context", 20s);
    std::optional<io_context> home(std::in_place);
    end_while_a_token_is_cancelled(home);
}

TEST(the_end_of_a_runtime, waits_for_a_token_that_is_cancelled_elsewhere) {
    const watchdog guard("a token and the end of a runtime", 20s);
    std::optional<runtime> home(std::in_place, runtime_config{.workers = 2});
    end_while_a_token_is_cancelled(home);
}

/// Lets run() return by a call on another thread, and destroys the context at once: whoever calls is still in there.
void end_by(const std::function<void(io_context&, io_context::work_guard&, timer_handle)>& call) {
    const watchdog guard("a call that lets a loop end", 60s);
    for (int round = 0; round < 300; ++round) {
        std::atomic<bool> may_call{false};
        std::optional<std::thread> elsewhere;
        {
            io_context home({.max_timers = 64, .max_tasks = 64});
            io_context::work_guard work(home);
            const timer_handle armed = home.timers().after(1h, [] {});
            elsewhere.emplace([&] {
                while (!may_call) std::this_thread::yield();
                call(home, work, armed);
            });
            home.post([&] { may_call = true; });
            home.run();
        }
        elsewhere->join();
    }
}

TEST(a_loop, may_be_destroyed_although_who_has_stopped_it_has_not_returned) {
    end_by([](io_context& home, io_context::work_guard&, timer_handle) { home.stop(); });
}

TEST(a_loop, may_be_destroyed_although_who_has_dropped_the_last_guard_has_not_returned) {
    end_by([](io_context& home, io_context::work_guard& work, timer_handle armed) {
        home.timers().cancel(armed);
        work.reset();
    });
}

TEST(a_loop, may_be_destroyed_although_who_has_cancelled_the_last_timer_has_not_returned) {
    end_by([](io_context& home, io_context::work_guard& work, timer_handle armed) {
        work.reset();
        home.timers().cancel(armed);
    });
}

TEST(a_loop, may_be_destroyed_although_who_has_posted_the_last_function_has_not_returned) {
    end_by([](io_context& home, io_context::work_guard&, timer_handle) { home.post([&home] { home.stop(); }); });
}

// --- Waiting for a closure that another thread destroys.

TEST(cancel_and_wait, on_the_loop_waits_for_a_closure_that_ends_elsewhere) {
    const watchdog guard("a closure that ends elsewhere", 20s);
    std::atomic<int> where{before};
    io_context home;
    const timer_handle armed = home.timers().after(1h, lingering(where));
    std::thread elsewhere([&] { EXPECT_EQ(home.timers().cancel(armed), cancel_result::cancelled); });
    await_stage(where, ending);
    home.post([&] {
        { const scoped_timer owned(home.timers(), armed); }
        EXPECT_EQ(where, ended);
    });
    home.poll();
    elsewhere.join();
    check_ledger_at_rest(home);
}

task<cancel_result> join(timers& home, timer_handle which) {
    auto end = home.cancel_and_join(which);
    co_return co_await end;
}

TEST(cancel_and_join, waits_for_a_closure_that_ends_elsewhere) {
    const watchdog guard("a closure that ends elsewhere is joined", 20s);
    for (const bool has_token : {false, true}) {  // One has an extra, which ends with the closure.
        std::atomic<int> where{before};
        io_context home;
        io_context other;
        cancel_source source;
        const timer_handle armed =
            home.timers().after(1h, lingering(where), has_token ? source.token() : cancel_token{});
        std::thread elsewhere([&] { EXPECT_EQ(home.timers().cancel(armed), cancel_result::cancelled); });
        await_stage(where, ending);
        EXPECT_EQ(block_on(other, join(home.timers(), armed)), cancel_result::gone);
        EXPECT_EQ(where, ended);
        elsewhere.join();
        home.poll();
        check_ledger_at_rest(home);
    }
}

TEST(cancel_and_join, waits_for_a_closure_that_ends_on_its_own_loop) {
    const watchdog guard("a closure that ends on its loop is joined", 20s);
    std::atomic<int> where{before};
    io_context home;
    io_context other;
    const timer_handle armed = home.timers().after(1h, lingering(where));
    home.post([&] { EXPECT_EQ(home.timers().cancel(armed), cancel_result::cancelled); });
    std::thread elsewhere([&] { home.run(); });
    await_stage(where, ending);
    EXPECT_EQ(block_on(other, join(home.timers(), armed)), cancel_result::gone);
    EXPECT_EQ(where, ended);
    elsewhere.join();
    check_ledger_at_rest(home);
}

TEST(cancel_and_join, may_outlive_the_context_when_it_has_answered) {
    const watchdog guard("an answer that outlives its context", 20s);
    auto home = std::make_unique<io_context>();
    io_context other;
    std::atomic<int> where{before};
    const timer_handle armed = home->timers().after(0s, [&] {
        where = ending;
        std::this_thread::sleep_for(20ms);
    });
    std::thread elsewhere([&] { home->run(); });
    await_stage(where, ending);
    const auto outlive = [&]() -> task<> {
        auto end = home->timers().cancel_and_join(armed);
        EXPECT_EQ(co_await end, cancel_result::running);
        elsewhere.join();
        home.reset();
    };
    block_on(other, outlive());
    EXPECT_EQ(home, nullptr);
}

/// A closure that is moved into its timer while a runtime shuts down.
class slow_to_arm {
 public:
    slow_to_arm(std::atomic<bool>& is_armed, const std::atomic<bool>& may_go) noexcept
        : is_armed_(is_armed), may_go_(may_go) {}
    slow_to_arm(slow_to_arm&& other) noexcept : is_armed_(other.is_armed_), may_go_(other.may_go_) {
        is_armed_ = true;
        while (!may_go_) {}
    }
    ~slow_to_arm() = default;
    void operator()() const noexcept {}

 private:
    std::atomic<bool>& is_armed_;
    const std::atomic<bool>& may_go_;
};

task<> sleep_long() {
    co_await sleep_for(1h);
}

TEST(cancel_and_wait, returns_when_a_shutdown_has_ended_what_was_armed_too_late) {
    const watchdog guard("armed too late", 60s);
    for (int round = 0; round < 60; ++round) {
        std::atomic<bool> is_armed{false};
        std::atomic<bool> may_go{false};
        struct at_the_end {
            std::atomic<bool>& may_go;
            int delay;
            ~at_the_end() {
                may_go = true;
                for (std::atomic<int> i = 0; i < delay; ++i) {}
            }
        };
        const auto wait_for = [&](join_handle<> other) -> task<> {
            const at_the_end last{may_go, round * 7};
            co_await other;
        };
        io_context never_run;
        runtime home({.workers = 1, .max_timers = 1000, .max_tasks = 1000});
        home.spawn(wait_for(spawn(never_run, sleep_long()))).detach();
        std::thread elsewhere([&] {
            if (auto made = home.timers().try_after(1h, slow_to_arm(is_armed, may_go)))
                scoped_timer(home.timers(), *made).cancel();
        });
        while (!is_armed || home.stats().timers.resumed_by_completion == 0) std::this_thread::yield();
        home.shutdown();  // Destroys the frame, which lets the other thread go on.
        elsewhere.join();
    }
}

// --- Others.

TEST(a_cap, is_not_reached_by_what_eight_workers_have_to_clean_up) {
    const watchdog guard("cancelled records of eight workers", 60s);
    constexpr unsigned worker_count = 8;
    runtime home({.workers = worker_count, .max_timers = 20'000});
    for (unsigned each = 0; each < worker_count; ++each) {
        std::thread([&] {  // Another thread, another worker.
            for (int i = 0; i < 4000; ++i) {
                const auto made = home.timers().try_after(1h, [] {});
                ASSERT_TRUE(made.has_value()) << home.timers().stats().pending << " are pending";
                if (i != 0) home.timers().cancel(*made);
            }
        })
            .join();
    }
    check_ledger_after_shutdown(home);
}

TEST(join_handle, is_waited_for_by_who_has_run_the_context_before) {
    const watchdog guard("a thread that has run the context before", 60s);
    const auto nap = []() -> task<> { co_await sleep_for(100us); };
    for (int round = 0; round < 300; ++round) {
        io_context home({.max_timers = 64, .max_tasks = 64});
        home.poll();
        auto joined = spawn(home, nap());
        std::thread other([&] { home.run(); });
        while (!home.is_running() && !joined.is_done()) {}
        EXPECT_NO_THROW(joined.wait());
        other.join();
    }
}

/// Awaits a cell: the first time at the beginning of time, then at the next multiple of its interval.
struct tick {
    timer_cell& cell;
    bool is_first;

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> frame) const {
        if (is_first) {
            cell.prepare(frame, time_point::min());
        } else {
            cell.prepare_next(frame);
        }
        return cell.commit();
    }
    void await_resume() const noexcept { cell.reason(); }
};

TEST(timer_cell, counts_intervals_from_the_beginning_of_time) {
    testing::virtual_context context;
    const auto tick_twice = [&]() -> task<> {
        timer_cell cell(context->timers());
        cell.set_interval(100ms);
        const tick first{cell, true};
        co_await first;
        const time_point then = context->timers().now();
        const tick second{cell, false};
        co_await second;
        const time_point now = context->timers().now();
        EXPECT_GT(now, then);
        EXPECT_LE(now, then + 100ms);
        const auto since_the_beginning = static_cast<std::uint64_t>(now.time_since_epoch().count()) ^ (1ULL << 63U);
        EXPECT_EQ(since_the_beginning % 100'000'000U, 0U);
    };
    spawn_detached(*context, tick_twice());
    context.run();
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
