// SPDX-License-Identifier: MIT
//
// Bugs that other runtimes of this kind have had. Each keeps its number and its sentence.

#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/random.hpp"

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/testing.hpp>
#include <chime/timer_cell.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

// --- Every window of a loop that goes to sleep.

/// A clock that stands still and, at the n-th moment at which the loop looks at it, lets another thread act. The last
/// such moment is when the loop has decided to sleep but does not sleep yet.
class window_clock final : public clock_source {
 public:
    window_clock(std::uint64_t window, std::function<void()> action) : window_(window), action_(std::move(action)) {}

    [[nodiscard]] time_point now() const noexcept override {
        pass();
        return time_point{} + 1h;
    }
    void attach(clock_listener&) override {}
    void detach(clock_listener&) noexcept override {}
    void begin_run(clock_listener&) noexcept override {
        owner_ = std::this_thread::get_id();
        pass();
    }
    void end_run(clock_listener&) noexcept override { owner_ = {}; }
    bool begin_idle(clock_listener&, time_point deadline, bool) noexcept override {
        pass();
        if (!has_acted_) {
            was_last_ = true;
            act();
        }
        return deadline <= now();
    }
    void end_idle(clock_listener&) noexcept override {}

    /// There are no more windows than these.
    [[nodiscard]] bool was_last() const noexcept { return was_last_; }

 private:
    void pass() const noexcept {
        if (std::this_thread::get_id() == owner_ && passed_++ == window_) act();
    }
    void act() const noexcept {
        if (!std::exchange(has_acted_, true)) std::thread(action_).join();
    }

    std::uint64_t window_;
    std::function<void()> action_;
    std::thread::id owner_;
    mutable std::uint64_t passed_ = 0;
    mutable bool has_acted_ = false;
    bool was_last_ = false;
};

/// Runs a scene once for each window: `prepare` sets a context up, `act` is what another thread does to it in the
/// window, and `check` looks at what became of it when run() has returned.
template <class Scene>
void in_every_window(const char* name, Scene make_scene) {
    const watchdog guard(name, 30s);
    std::uint64_t windows = 0;
    for (bool is_last = false; !is_last; ++windows) {
        SCOPED_TRACE("window " + std::to_string(windows));
        std::function<void()> act;
        window_clock clock(windows, [&] { act(); });
        io_context context({.clock = &clock});
        auto scene = make_scene(context);
        act = [&] { scene.act(); };
        context.run();
        scene.check();
        check_ledger(context);
        is_last = clock.was_last();
        ASSERT_LT(windows, 1000U);
    }
    EXPECT_GE(windows, 3U) << "there are more windows than that";
}

/// What all scenes know.
struct scene_base {
    explicit scene_base(io_context& on) : context(&on) {}
    io_context* context;
    std::shared_ptr<int> count = std::make_shared<int>(0);
};

TEST(regression, b01_a_timer_armed_in_any_window_of_going_to_sleep_wakes_the_loop) {
    struct scene : scene_base {
        explicit scene(io_context& on) : scene_base(on) {
            context->timers().after(1h, [] {});
        }
        void act() {
            context->timers().after(0s, [this] {
                ++*count;
                context->stop();
            });
        }
        void check() const { EXPECT_EQ(*count, 1); }
    };
    in_every_window("arm", [](io_context& on) { return scene(on); });
}

TEST(regression, b01_an_earlier_deadline_given_in_any_window_wakes_the_loop) {
    struct scene : scene_base {
        explicit scene(io_context& on) : scene_base(on) {
            which = context->timers().after(1h, [counted = count] { ++*counted; });
        }
        void act() const { EXPECT_TRUE(context->timers().postpone(which, 0s)); }
        void check() const { EXPECT_EQ(*count, 1); }
        timer_handle which;
    };
    in_every_window("postpone", [](io_context& on) { return scene(on); });
}

TEST(regression, b01_a_function_posted_in_any_window_runs) {
    struct scene : scene_base {
        explicit scene(io_context& on) : scene_base(on) {
            context->timers().after(1h, [] {});
        }
        void act() {
            context->post([this] {
                ++*count;
                context->stop();
            });
        }
        void check() const { EXPECT_EQ(*count, 1); }
    };
    in_every_window("post", [](io_context& on) { return scene(on); });
}

task<> count_and_stop(io_context& context, int& count) {
    ++count;
    context.stop();
    co_return;
}

TEST(regression, b01_a_task_spawned_in_any_window_runs) {
    struct scene : scene_base {
        explicit scene(io_context& on) : scene_base(on) {
            context->timers().after(1h, [] {});
        }
        void act() const { spawn_detached(*context, count_and_stop(*context, *count)); }
        void check() const { EXPECT_EQ(*count, 1); }
    };
    in_every_window("spawn", [](io_context& on) { return scene(on); });
}

TEST(regression, b25_stop_in_any_window_is_not_overwritten_by_the_sleeper) {
    struct scene : scene_base {
        explicit scene(io_context& on) : scene_base(on) {
            context->timers().after(1h, [counted = count] { ++*counted; });
        }
        void act() const { context->stop(); }
        void check() const {
            EXPECT_EQ(*count, 0);
            EXPECT_EQ(context->timers().stats().pending, 1U) << "stop() touches no timer";
        }
    };
    in_every_window("stop", [](io_context& on) { return scene(on); });
}

TEST(regression, b25_run_returns_when_the_last_timer_is_cancelled_from_outside_in_any_window) {
    struct scene : scene_base {
        explicit scene(io_context& on) : scene_base(on) {
            which = context->timers().after(1h, [counted = count] { ++*counted; });
        }
        void act() const { EXPECT_EQ(context->timers().cancel(which), cancel_result::cancelled); }
        void check() const {
            EXPECT_EQ(*count, 0);
            EXPECT_EQ(context->timers().stats().pending, 0U);
        }
        timer_handle which;
    };
    in_every_window("cancel the last one", [](io_context& on) { return scene(on); });
}

TEST(regression, b25_run_returns_when_the_last_guard_goes_in_any_window) {
    struct scene : scene_base {
        explicit scene(io_context& on) : scene_base(on), guard(on.make_work_guard()) {}
        void act() { guard.reset(); }
        static void check() {}
        io_context::work_guard guard;
    };
    in_every_window("guard", [](io_context& on) { return scene(on); });
}

task<> sleep_and_note(cancel_token token, std::vector<wake_reason>& reasons) {
    reasons.push_back(co_await sleep_for(1h, std::move(token)));
}

TEST(regression, b29_a_sleeper_cancelled_by_its_token_in_any_window_is_resumed_once) {
    struct scene : scene_base {
        explicit scene(io_context& on) : scene_base(on) {
            spawn_detached(*context, sleep_and_note(source.token(), *reasons));
        }
        void act() { source.request_cancel(); }
        void check() const { EXPECT_EQ(*reasons, std::vector{wake_reason::cancelled}); }
        cancel_source source;
        std::shared_ptr<std::vector<wake_reason>> reasons = std::make_shared<std::vector<wake_reason>>();
    };
    in_every_window("token", [](io_context& on) { return scene(on); });
}

TEST(regression, b29_a_sleeper_whose_task_is_cancelled_in_any_window_is_resumed_once) {
    struct scene : scene_base {
        explicit scene(io_context& on) : scene_base(on) { joined = spawn(*context, sleep_and_note({}, *reasons)); }
        void act() { EXPECT_TRUE(joined.cancel()); }
        void check() const { EXPECT_EQ(*reasons, std::vector{wake_reason::cancelled}); }
        std::shared_ptr<std::vector<wake_reason>> reasons = std::make_shared<std::vector<wake_reason>>();
        join_handle<void> joined;
    };
    in_every_window("join_handle", [](io_context& on) { return scene(on); });
}

TEST(regression, b29_stopping_the_timers_in_any_window_forgets_no_sleeper) {
    struct scene : scene_base {
        explicit scene(io_context& on) : scene_base(on) {
            spawn_detached(*context, sleep_and_note({}, *reasons));
            spawn_detached(*context, sleep_and_note({}, *reasons));
            context->timers().after(1h, [counted = count] { ++*counted; });
        }
        void act() const { context->timers().stop(); }
        void check() const {
            EXPECT_EQ(*reasons, (std::vector{wake_reason::cancelled, wake_reason::cancelled}));
            EXPECT_EQ(*count, 0);
            EXPECT_EQ(count.use_count(), 1) << "the closure is destroyed";
            check_ledger_at_rest(*context);
        }
        std::shared_ptr<std::vector<wake_reason>> reasons = std::make_shared<std::vector<wake_reason>>();
    };
    in_every_window("timers::stop", [](io_context& on) { return scene(on); });
}

// --- Parking, in pieces.

TEST(regression, b04_whoever_is_told_that_something_was_pushed_finds_it) {
    const watchdog guard("push against drain");
    io_context context;
    loop_thread loop(context);
    std::atomic<std::uint64_t> ran{0};
    random_source random(process_seed());
    // Each round waits for the one before, so that every push meets a loop that is just falling asleep.
    for (std::uint64_t round = 1; round <= scaled(20'000); ++round) {
        context.post([&ran] { ran.fetch_add(1, std::memory_order_release); });
        await_that([&] { return ran.load(std::memory_order_acquire) == round; });
        spin(random.below(500));
    }
    loop.finish();
    check_ledger_at_rest(context);
}

TEST(regression, b01_a_timer_armed_while_the_loop_falls_asleep_fires) {
    const watchdog guard("arm against park");
    io_context context;
    const timer_handle far = context.timers().after(10h, [] {});
    loop_thread loop(context);
    std::atomic<std::uint64_t> ran{0};
    random_source random(process_seed());
    for (std::uint64_t round = 1; round <= scaled(20'000); ++round) {
        context.timers().after(std::chrono::microseconds{random.below(3)},
                               [&ran] { ran.fetch_add(1, std::memory_order_release); });
        await_that([&] { return ran.load(std::memory_order_acquire) == round; });
        spin(random.below(500));
    }
    EXPECT_EQ(context.timers().cancel(far), cancel_result::cancelled);
    loop.finish();
    check_ledger_at_rest(context);
}

// --- The cached next deadline.

TEST(regression, b07_a_periodic_timer_that_cancels_itself_does_not_hide_a_later_one) {
    for (const auto later : {1ms, 10ms, 11ms, 100ms, 3'600'000ms}) {
        testing::virtual_context context;
        int beats = 0;
        bool has_fired = false;
        timer_handle beat;
        beat = context->timers().every(10ms, missed_ticks::skip, [&] {
            ++beats;
            EXPECT_EQ(context->timers().cancel(beat), cancel_result::running);
            context->timers().after(later, [&] { has_fired = true; });
        });
        context.run();
        EXPECT_EQ(beats, 1);
        EXPECT_TRUE(has_fired);
        check_ledger_at_rest(*context);
    }
}

TEST(regression, b07_a_timer_that_was_there_before_survives_the_end_of_a_periodic_one) {
    testing::virtual_context context;
    bool has_fired = false;
    timer_handle beat;
    context->timers().after(35ms, [&] { has_fired = true; });
    beat = context->timers().every(10ms, missed_ticks::skip, [&] { context->timers().cancel(beat); });
    context.advance(34ms);
    EXPECT_FALSE(has_fired);
    context.advance(1ms);
    EXPECT_TRUE(has_fired);
    check_ledger_at_rest(*context);
}

TEST(regression, b08_a_loop_with_everything_cancelled_does_not_spin) {
    const watchdog guard("idle after cancelling");
    io_context context;
    loop_thread loop(context);
    std::vector<timer_handle> all;
    for (int i = 0; i < 1'000; ++i) all.push_back(context.timers().after(20ms + i * 1us, [] {}));
    for (const timer_handle each : all) context.timers().cancel(each);
    loop.wait_until_parked();
    const timer_stats before = context.timers().stats();
    std::this_thread::sleep_for(150ms);
    const timer_stats after = context.timers().stats();
    EXPECT_LE(after.turns - before.turns, 5U);
    EXPECT_LE(after.parks - before.parks, 5U);
    EXPECT_EQ(after.pending, 0U);
    loop.finish();
    check_ledger_at_rest(context);
}

TEST(regression, b08_a_virtual_day_with_everything_cancelled_takes_few_turns) {
    testing::virtual_context context;
    std::vector<timer_handle> all;
    for (int i = 0; i < 1'000; ++i) all.push_back(context->timers().after(i * 1min, [] {}));
    context.settle();
    for (const timer_handle each : all) context->timers().cancel(each);
    const std::uint64_t before = context->timers().stats().turns;
    context.advance(24h);
    EXPECT_LE(context->timers().stats().turns - before, 20U);
    check_ledger_at_rest(*context);
}

// --- Answers.

TEST(regression, b11_answers_in_the_middle_of_a_run_agree_with_each_other) {
    testing::virtual_context context;
    timers& all = context->timers();
    timer_handle once;
    int runs = 0;
    once = all.after(1ms, [&] {
        ++runs;
        EXPECT_FALSE(all.postpone(once, 1ms));
        EXPECT_EQ(all.cancel(once), cancel_result::running);
        EXPECT_EQ(all.cancel_and_wait(once), cancel_result::running);
        EXPECT_FALSE(all.postpone_until(once, never));
    });
    context.run();
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(all.cancel(once), cancel_result::gone);
    EXPECT_EQ(all.cancel_and_wait(once), cancel_result::gone);
    EXPECT_FALSE(all.postpone(once, 1ms));
    check_ledger_at_rest(*context);
}

TEST(regression, b11_another_thread_gets_the_same_answers_in_the_middle_of_a_run) {
    const watchdog guard("cancel during a run");
    io_context context;
    timers& all = context.timers();
    for (const bool repeats : {false, true}) {
        std::atomic<int> runs{0};
        std::atomic<bool> may_end{false};
        const auto body = [&] {
            ++runs;
            await_that([&] { return may_end.load(); });
        };
        const timer_handle which = repeats ? all.every(1ms, missed_ticks::skip, body) : all.after(1ms, body);
        loop_thread loop(context);
        await_that([&] { return runs.load() == 1; });
        EXPECT_FALSE(all.postpone(which, 1ms));
        EXPECT_EQ(all.cancel(which), cancel_result::running);
        EXPECT_EQ(all.cancel(which), cancel_result::running);
        EXPECT_FALSE(all.postpone(which, 1ms));
        may_end = true;
        EXPECT_NE(all.cancel_and_wait(which), cancel_result::cancelled);
        EXPECT_EQ(all.cancel(which), cancel_result::gone);
        loop.finish();
        EXPECT_EQ(runs.load(), 1);
    }
    check_ledger_at_rest(context);
}

TEST(regression, b12_cancelled_before_the_loop_has_accepted_it_it_never_enters_the_wheel) {
    testing::virtual_context context;
    timers& all = context->timers();
    auto kept = std::make_shared<int>(0);
    for (int round = 0; round < 100; ++round) {
        std::vector<timer_handle> armed;
        // Outside of run() this thread is a foreign one: what it arms waits in the inbox.
        for (int i = 0; i < 50; ++i) armed.push_back(all.after(1h + i * 1s, [kept] { ++*kept; }));
        for (const timer_handle each : armed) EXPECT_EQ(all.cancel(each), cancel_result::cancelled);
        EXPECT_EQ(kept.use_count(), 1) << "closures are destroyed by the canceller";
        for (const timer_handle each : armed) {
            EXPECT_EQ(all.cancel(each), cancel_result::gone);
            EXPECT_FALSE(all.postpone(each, 1s));
        }
        EXPECT_EQ(context.run(), 0U);
        EXPECT_EQ(all.stats().tickets, 0U);
    }
    EXPECT_EQ(context.now(), time_point{});
    check_ledger_at_rest(*context);
}

TEST(regression, b12_postponed_and_cancelled_before_the_loop_has_accepted_it_it_is_gone_too) {
    testing::virtual_context context;
    timers& all = context->timers();
    int fired = 0;
    for (int round = 0; round < 100; ++round) {
        const timer_handle which = all.after(2h, [&] { ++fired; });
        EXPECT_TRUE(all.postpone(which, round % 2 == 0 ? 1h : 3h));
        EXPECT_EQ(all.cancel(which), cancel_result::cancelled);
        const timer_handle next = all.after(1s, [&] { ++fired; });
        EXPECT_TRUE(all.postpone(next, 5s));
        const time_point asked = context.now();
        context.run();
        EXPECT_EQ(context.now() - asked, 5s);
    }
    EXPECT_EQ(fired, 100);
    check_ledger_at_rest(*context);
}

TEST(regression, b16_cancelled_at_its_very_deadline_it_does_not_run_wherever_it_is) {
    // The first of a tick cancels all others of that tick: some wait in the wheel, some are sorted already, the next one
    // has been found due.
    for (const auto step : {0ns, 1ns, 100ns, 200'000ns, 300'000ns, 1'000'000ns}) {
        for (int kind = 0; kind < 3; ++kind) {
            testing::virtual_context context;
            timers& all = context->timers();
            std::vector<timer_handle> others;
            int ran = 0;
            all.after(20ms, [&] {
                for (const timer_handle each : others) {
                    EXPECT_EQ(all.cancel(each), cancel_result::cancelled);
                    EXPECT_EQ(all.cancel(each), cancel_result::gone);
                }
            });
            for (int i = 0; i < 40; ++i) {
                others.push_back(kind == 1 ? all.every(20ms + i * step, missed_ticks::skip, [&] { ++ran; })
                                           : all.after(20ms + i * step, [&] { ++ran; }));
            }
            if (kind == 2) context.advance(19ms);
            // Time jumps beyond them all, so that all of them are due at once.
            context.clock().advance(1s);
            context.settle();
            EXPECT_EQ(ran, 0);
            check_ledger_at_rest(*context);
        }
    }
}

TEST(regression, b16_a_sleeper_cancelled_at_its_very_deadline_is_told_so) {
    testing::virtual_context context;
    cancel_source source;
    std::vector<wake_reason> reasons;
    context->timers().after(1h, [&] { source.request_cancel(); });
    spawn_detached(*context, sleep_and_note(source.token(), reasons));
    context.run();
    EXPECT_EQ(reasons, std::vector{wake_reason::cancelled});
    check_ledger_at_rest(*context);
}

TEST(regression, b31_due_but_not_run_yet_is_still_cancellable) {
    testing::virtual_context context;
    timers& all = context->timers();
    std::vector<int> ran;
    std::vector<timer_handle> handles(4);
    for (int i = 0; i < 4; ++i) {
        handles[static_cast<std::size_t>(i)] = all.after(5ms, [&, i] {
            ran.push_back(i);
            if (i == 0) {
                EXPECT_EQ(all.cancel(handles[1]), cancel_result::cancelled);
                EXPECT_EQ(all.cancel(handles[3]), cancel_result::cancelled);
            }
        });
    }
    context.run();
    EXPECT_EQ(ran, (std::vector{0, 2}));
    check_ledger_at_rest(*context);
}

TEST(regression, b31_due_but_not_run_yet_can_still_be_postponed) {
    testing::virtual_context context;
    timers& all = context->timers();
    std::vector<std::pair<char, duration>> ran;
    timer_handle second;
    all.after(5ms, [&] {
        ran.emplace_back('a', context.now().time_since_epoch());
        EXPECT_TRUE(all.postpone(second, 7ms));
    });
    second = all.after(5ms, [&] { ran.emplace_back('b', context.now().time_since_epoch()); });
    context.run();
    ASSERT_EQ(ran.size(), 2U);
    EXPECT_EQ(ran[1], (std::pair<char, duration>('b', 12ms)));
    check_ledger_at_rest(*context);
}

// --- Fairness.

/// Arms itself again with no delay, for as long as it may.
struct zero_delay_loop {
    void operator()() const {
        ++*rounds;
        if (!*may_end) context->timers().after(0ns, *this);
    }
    io_context* context;
    std::uint64_t* rounds;
    bool* may_end;
};

task<> yield_until(const bool& is_over, std::uint64_t& rounds) {
    while (!is_over) {
        ++rounds;
        co_await yield();
    }
}

TEST(regression, b24_a_timer_that_arms_itself_with_no_delay_leaves_room_for_the_others) {
    const watchdog guard("zero delay");
    io_context context;
    std::uint64_t rounds = 0;
    std::uint64_t yields = 0;
    bool is_over = false;
    bool was_posted = false;
    context.timers().after(0ns, zero_delay_loop{&context, &rounds, &is_over});
    spawn_detached(context, yield_until(is_over, yields));
    context.post([&] { was_posted = true; });
    context.timers().after(20ms, [&] { is_over = true; });
    context.run();
    EXPECT_TRUE(was_posted);
    EXPECT_GT(rounds, 1U);
    EXPECT_GT(yields, 1U);
    check_ledger_at_rest(context);
}

TEST(regression, b24_poll_ends_although_a_timer_arms_itself_with_no_delay) {
    testing::virtual_context context;
    std::uint64_t rounds = 0;
    bool is_over = false;
    context->timers().after(0ns, zero_delay_loop{&context.context(), &rounds, &is_over});
    for (std::uint64_t i = 1; i <= 10; ++i) {
        EXPECT_EQ(context->poll(), 1U);
        EXPECT_EQ(rounds, i) << "a turn fires what was armed before it";
    }
    is_over = true;
    context.run();
    check_ledger_at_rest(*context);
}

task<> sleep_nothing_until(const bool& is_over, std::uint64_t& rounds) {
    while (!is_over) {
        ++rounds;
        co_await sleep_for(0ns);
    }
}

TEST(regression, b34_sleeps_of_no_length_do_not_starve_queued_work) {
    for (const bool resumes_inline : {true, false}) {
        testing::virtual_context context({.timer_budget = 4, .task_budget = 4, .inline_resumption = resumes_inline});
        bool is_over = false;
        std::uint64_t sleeps = 0;
        std::uint64_t yields = 0;
        std::uint64_t posted = 0;
        for (int i = 0; i < 20; ++i) spawn_detached(*context, sleep_nothing_until(is_over, sleeps));
        for (int i = 0; i < 20; ++i) spawn_detached(*context, yield_until(is_over, yields));
        for (int i = 0; i < 20; ++i) context->post([&] { ++posted; });
        context->timers().after(0ns, [&] { ++posted; });
        for (int i = 0; i < 200; ++i) context->run_one();
        for (int i = 0; i < 50; ++i) context->poll();
        EXPECT_EQ(posted, 21U);
        EXPECT_GT(sleeps, 20U * 20);
        EXPECT_GT(yields, 20U * 20);
        is_over = true;
        context.run();
        check_ledger_at_rest(*context);
    }
}

// --- Ends.

/// Owns a timer in its frame and, when destroyed, looks at other timers.
struct frame_with_timers {
    explicit frame_with_timers(io_context& on, int& fires)
        : context(&on), owned(on.timers(), on.timers().after(1h, [&fires] { ++fires; })) {}
    ~frame_with_timers() {
        context->timers().cancel(owned.get());
        EXPECT_FALSE(context->timers().try_after(1s, [] {}).has_value()) << "nothing is armed in a context that ends";
    }
    io_context* context;
    scoped_timer owned;
};

task<> own_timers_and_sleep(io_context& context, int& fires) {
    const frame_with_timers mine(context, fires);
    co_await sleep_for(10h);
    ++fires;
}

TEST(regression, b27_frames_that_own_timers_are_destroyed_with_their_context) {
    int fires = 0;
    {
        testing::virtual_context context;
        for (int i = 0; i < 100; ++i) spawn_detached(*context, own_timers_and_sleep(*context, fires));
        context.advance(1s);
        EXPECT_EQ(context->timers().stats().pending, 200U);
        check_ledger(*context);
    }
    EXPECT_EQ(fires, 0);
}

struct counts_its_end {
    explicit counts_its_end(std::uint64_t& ends) : count(ends) {}
    counts_its_end(const counts_its_end&) = delete;
    counts_its_end& operator=(const counts_its_end&) = delete;
    ~counts_its_end() { ++count; }
    std::uint64_t& count;
};

task<> await_deeper(std::uint64_t depth, std::uint64_t& ends) {
    const counts_its_end mine(ends);
    if (depth == 0) {
        co_await sleep_for(1h);
    } else {
        co_await await_deeper(depth - 1, ends);
    }
}

TEST(regression, b27_a_chain_of_a_million_awaits_is_destroyed_without_recursion) {
    const std::uint64_t depth = scaled(1'000'000);
    std::uint64_t ends = 0;
    {
        testing::virtual_context context;
        spawn_detached(*context, await_deeper(depth, ends));
        context.settle();
        EXPECT_EQ(ends, 0U);
        check_ledger(*context);
    }
    EXPECT_EQ(ends, depth + 1);
}

TEST(regression, b27_three_hundred_thousand_sleepers_are_destroyed_with_their_context) {
    const std::uint64_t count = scaled(300'000);
    std::uint64_t ends = 0;
    {
        testing::virtual_context context;
        for (std::uint64_t i = 0; i < count; ++i) spawn_detached(*context, await_deeper(1, ends));
        context.settle();
        check_ledger(*context);
    }
    EXPECT_EQ(ends, 2 * count);
}

TEST(regression, b28_what_is_armed_while_everything_stops_is_refused_or_ended) {
    const watchdog guard("arm against stop");
    for (std::uint64_t round = 0; round < scaled(400); ++round) {
        io_context context;
        std::atomic<std::int64_t> alive{0};
        std::atomic<std::uint64_t> fired{0};
        struct counted {
            explicit counted(std::atomic<std::int64_t>& all) : count(&all) { ++*count; }
            counted(counted&& other) noexcept : count(std::exchange(other.count, nullptr)) {}
            ~counted() {
                if (count != nullptr) --*count;
            }
            std::atomic<std::int64_t>* count;
        };
        std::uint64_t accepted = 0;
        std::thread loop([&, guarded = context.make_work_guard()]() mutable {
            const auto mine = std::move(guarded);
            context.run();
        });
        std::thread sender([&] {
            for (int i = 0; i < 200; ++i) {
                const auto delay = i % 3 == 0 ? duration{0} : duration{1h};
                const auto armed = context.timers().try_after(delay, [mine = counted(alive), &fired] { ++fired; });
                if (!armed) break;
                ++accepted;
            }
        });
        spin(round * 37 % 5'000);
        context.timers().stop();
        sender.join();
        // The loop is still held by its guard, which lives in its thread: stop it, then let it finish what is left.
        context.stop();
        loop.join();
        context.restart();
        context.run();
        EXPECT_EQ(alive.load(), 0) << "every closure was destroyed";
        const timer_stats sums = context.timers().stats();
        EXPECT_EQ(sums.armed, accepted);
        EXPECT_EQ(sums.fired, fired.load());
        check_ledger_at_rest(context);
    }
}

task<> spawned_sleep(int& ends) {
    co_await sleep_for(1h);
    ++ends;
}

TEST(regression, b28_whoever_joins_a_task_of_a_stopped_context_is_told) {
    testing::virtual_context context;
    int ends = 0;
    auto joined = spawn(*context, spawned_sleep(ends));
    context.settle();
    context->timers().stop();
    context.run();
    EXPECT_TRUE(joined.is_done());
    EXPECT_EQ(ends, 1);
    EXPECT_THROW(spawn_detached(*context, spawned_sleep(ends)), std::system_error);
    EXPECT_THROW(context->timers().after(1s, [] {}), std::system_error);
    check_ledger_at_rest(*context);
}

// --- Cancelled sleeps.

/// A wait that lets the test in between its two steps.
struct opened_wait {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> frame) {
        const timer_handle handle = cell.prepare(frame, 1h);
        between(handle);
        return cell.commit();
    }
    wake_reason await_resume() noexcept { return cell.reason(); }

    opened_wait(timers& home, std::function<void(timer_handle)> step) : cell(home), between(std::move(step)) {}
    timer_cell cell;
    std::function<void(timer_handle)> between;
};

task<> wait_opened(io_context& context, const std::function<void(timer_handle)>& between,
                   std::vector<wake_reason>& reasons) {
    opened_wait wait(context.timers(), between);
    reasons.push_back(co_await wait);
}

TEST(regression, b29_a_wait_cancelled_in_each_of_its_phases_resumes_once) {
    for (const bool elsewhere : {false, true}) {
        for (int phase = 0; phase < 5; ++phase) {
            testing::virtual_context context;
            std::vector<wake_reason> reasons;
            timer_handle handle;
            int cancels = 0;
            const auto cancel = [&] {
                const auto once = [&] {
                    cancels += context->timers().cancel(handle) == cancel_result::cancelled ? 1 : 0;
                };
                if (elsewhere) {
                    std::thread(once).join();
                } else {
                    once();
                }
            };
            const std::function<void(timer_handle)> between = [&](timer_handle made) {
                handle = made;
                if (phase == 1) cancel();
            };
            spawn_detached(*context, wait_opened(*context, between, reasons));
            if (phase == 0) cancel();  // It names nothing yet.
            context.settle();
            if (phase == 2) cancel();
            if (phase == 3) {
                context.clock().advance(1h);  // Due, but not run.
                cancel();
            }
            context.run();
            if (phase == 4) cancel();
            const bool counts = phase >= 1 && phase <= 3;
            EXPECT_EQ(cancels, counts ? 1 : 0) << phase;
            EXPECT_EQ(reasons, std::vector{counts ? wake_reason::cancelled : wake_reason::elapsed}) << phase;
            EXPECT_EQ(context->timers().cancel(handle), cancel_result::gone);
            check_ledger_at_rest(*context);
        }
    }
}

TEST(regression, b29_a_later_armed_earlier_timer_wakes_a_sleeping_loop) {
    const watchdog guard("earlier timer", 30s);
    io_context context;
    const timer_handle far = context.timers().after(1h, [] {});
    loop_thread loop(context);
    for (int round = 0; round < 5; ++round) {
        loop.wait_until_parked();
        std::atomic<bool> has_fired{false};
        context.timers().after(1ms, [&] { has_fired = true; });
        await_that([&] { return has_fired.load(); });
    }
    context.timers().cancel(far);
    loop.finish();
    check_ledger_at_rest(context);
}

// --- Memory of others.

task<int> give(int value) {
    co_await yield();
    co_return value;
}

task<> ask_elsewhere(io_context& other, std::uint64_t rounds, std::uint64_t& sum) {
    for (std::uint64_t round = 0; round < rounds; ++round) {
        // The handle, and what it shares with the task, goes away as soon as the answer is there.
        auto joined = spawn(other, give(1));
        sum += static_cast<std::uint64_t>(co_await joined);
    }
}

TEST(regression, b30_whoever_tells_a_joiner_does_not_touch_what_that_frees) {
    const watchdog guard("join");
    io_context asking;
    io_context answering;
    loop_thread loop(answering);
    std::uint64_t sum = 0;
    const std::uint64_t rounds = scaled(20'000);
    spawn_detached(asking, ask_elsewhere(answering, rounds, sum));
    asking.run();
    loop.finish();
    EXPECT_EQ(sum, rounds);
    check_ledger_at_rest(asking);
    check_ledger_at_rest(answering);
}

task<> compute_elsewhere(io_context& context, std::uint64_t rounds, std::uint64_t& sum) {
    for (std::uint64_t round = 0; round < rounds; ++round) {
        auto job = context.cpu_pool().submit([] { return std::uint64_t{1}; });
        sum += co_await job;
    }
}

TEST(regression, b30_a_pool_that_ends_a_job_does_not_touch_what_the_waiter_frees) {
    const watchdog guard("job");
    io_context context({.pool_threads = 2});
    std::uint64_t sum = 0;
    const std::uint64_t rounds = scaled(10'000);
    spawn_detached(context, compute_elsewhere(context, rounds, sum));
    context.run();
    EXPECT_EQ(sum, rounds);
    check_ledger_at_rest(context);
}

task<> join_callback(io_context& context, timer_handle which, std::vector<cancel_result>& results) {
    auto wait = context.timers().cancel_and_join(which);
    results.push_back(co_await wait);
}

TEST(regression, b30_whoever_ends_a_callback_does_not_touch_what_its_joiner_frees) {
    const watchdog guard("cancel_and_join");
    io_context running;
    io_context joining;
    loop_thread loop(running);
    for (std::uint64_t round = 0; round < scaled(2'000); ++round) {
        std::atomic<int> stage{0};
        const timer_handle which = running.timers().after(0s, [&] {
            stage = 1;
            spin(round % 3'000);
            stage = 2;
        });
        await_that([&] { return stage.load() != 0; });
        std::vector<cancel_result> results;
        spawn_detached(joining, join_callback(running, which, results));
        joining.run();
        EXPECT_EQ(stage.load(), 2);
        ASSERT_EQ(results.size(), 1U);
        EXPECT_NE(results[0], cancel_result::cancelled);
    }
    loop.finish();
    check_ledger_at_rest(running);
    check_ledger_at_rest(joining);
}

// --- Durations.

TEST(regression, b32_fractions_of_a_nanosecond_are_rounded_up) {
    testing::virtual_context context;
    std::vector<std::int64_t> fired_ns;
    const auto note = [&] { fired_ns.push_back(context.now().time_since_epoch().count()); };
    using picoseconds = std::chrono::duration<std::int64_t, std::pico>;
    context->timers().after(picoseconds{1}, note);
    context->timers().after(picoseconds{1'001}, note);
    context->timers().after(std::chrono::duration<double, std::milli>{0.99}, note);
    context->timers().after(std::chrono::duration<double>{0.1}, note);
    context.run();
    EXPECT_EQ(fired_ns, (std::vector<std::int64_t>{1, 2, 990'000, 100'000'001}));
    check_ledger_at_rest(*context);
}

TEST(regression, b32_nothing_fires_before_its_deadline_wherever_the_tick_ends) {
    for (const auto resolution : {1ns, 1'000ns, 262'144ns, 1'000'000ns}) {
        testing::virtual_context context({.resolution = resolution});
        random_source random(process_seed());
        std::uint64_t early = 0;
        std::uint64_t fired = 0;
        for (int i = 0; i < 500; ++i) {
            const time_point deadline = context.now() + std::chrono::nanoseconds{random.below(5'000'000)};
            context->timers().at(deadline, [&context, &early, &fired, deadline] {
                early += context.now() < deadline ? 1U : 0U;
                ++fired;
            });
        }
        // One nanosecond before a tick ends, on it, and after it.
        while (fired != 500) context.advance(std::chrono::nanoseconds{random.below(3'000)});
        EXPECT_EQ(early, 0U) << replay_hint();
        check_ledger_at_rest(*context);
    }
}

TEST(regression, b33_no_time_and_less_than_none_are_due_now_and_not_never) {
    testing::virtual_context context;
    context.advance(1h);
    int fired = 0;
    timers& all = context->timers();
    all.after(0ns, [&] { ++fired; });
    all.after(-1ns, [&] { ++fired; });
    all.after(std::chrono::hours::min(), [&] { ++fired; });
    all.after(std::chrono::duration<double>{-0.0}, [&] { ++fired; });
    all.after(-std::chrono::duration<double>{1e300}, [&] { ++fired; });
    all.at(time_point::min(), [&] { ++fired; });
    all.at(time_point{}, [&] { ++fired; });
    const timer_handle far = all.after(std::chrono::hours::max(), [&] { ++fired; });
    EXPECT_EQ(context.settle(), 7U);
    EXPECT_EQ(fired, 7);
    EXPECT_TRUE(all.postpone(far, -1h));
    context.settle();
    EXPECT_EQ(fired, 8);
    EXPECT_THROW(all.every(0ns, missed_ticks::skip, [] {}), std::system_error);
    check_ledger_at_rest(*context);
}

// --- Ownership, as the compiler sees it.

template <class T>
inline constexpr bool is_plain_data =
    std::is_trivially_copyable_v<T>&& std::is_trivially_destructible_v<T>&& std::is_standard_layout_v<T>;
template <class T>
inline constexpr bool is_only_moved = std::is_nothrow_move_constructible_v<T> && !std::is_copy_constructible_v<T>;

TEST(regression, b35_handles_own_nothing_and_owners_are_only_moved) {
    static_assert(is_plain_data<timer_handle>);
    static_assert(is_only_moved<scoped_timer>);
    static_assert(is_only_moved<io_context::work_guard>);
    static_assert(is_only_moved<testing::virtual_clock::hold>);
    static_assert(is_only_moved<join_handle<int>>);
    static_assert(is_only_moved<task<int>>);
    static_assert(!std::is_copy_constructible_v<timer_delay>);
    testing::virtual_context context;
    int fired = 0;
    context->timers().after(1ms, [&] { ++fired; });  // The handle goes at once, and that means nothing.
    {
        const scoped_timer owner(context->timers(), context->timers().after(1ms, [&] { ++fired; }));
    }
    static_cast<void>(scoped_timer(context->timers(), context->timers().after(1ms, [&] { ++fired; })));
    static_cast<void>(spawn(*context, spawned_sleep(fired)));  // Dropping it detaches.
    context.run();
    EXPECT_EQ(fired, 2);
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
