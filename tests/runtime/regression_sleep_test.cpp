// SPDX-License-Identifier: MIT
//
// Bugs that other runtimes of this kind have had when a loop goes to sleep. Each keeps its number and its sentence.
#include "runtime/small_tasks.hpp"
#include "runtime/watchdog.hpp"
#include "support/ledger.hpp"
#include "support/random.hpp"

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
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

}  // namespace
}  // namespace chime::test
