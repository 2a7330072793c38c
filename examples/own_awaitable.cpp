// SPDX-License-Identifier: MIT

// An awaitable of one's own: an event that another thread sets and a task waits for, but not for ever. All it takes is a
// timer_cell. It gives a handle that names the wait, and whoever cancels that handle ends the wait.

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/timer_cell.hpp>
#include <chime/timers.hpp>

#include <chrono>
#include <coroutine>
#include <cstdio>
#include <mutex>
#include <thread>

using namespace std::chrono_literals;

namespace {

/// Happens once. One task at a time waits for it; any thread sets it.
class event {
 public:
    explicit event(chime::timers& timers) : timers_(timers) {}

    void set() {
        chime::timer_handle waiting;
        {
            const std::lock_guard lock(mutex_);
            is_set_ = true;
            waiting = waiting_;
        }
        timers_.cancel(waiting);  // Makes the task ready. Nobody waits any more, or never did: harmless.
    }

    class wait;
    /// `co_await` it: true if the event has happened, false if the time is up.
    [[nodiscard]] wait wait_for(chime::duration limit);

 private:
    /// Remembers whom to wake; false: there is nothing to wait for.
    bool remember(chime::timer_handle waiting) {
        const std::lock_guard lock(mutex_);
        waiting_ = waiting;
        return !is_set_;
    }

    bool is_set() {
        const std::lock_guard lock(mutex_);
        return is_set_;
    }

    chime::timers& timers_;
    std::mutex mutex_;
    bool is_set_ = false;
    chime::timer_handle waiting_;  // Names a wait and keeps nothing alive, so it may grow as old as it likes.
};

class event::wait {
 public:
    wait(event& awaited, chime::duration limit) : awaited_(awaited), limit_(limit), cell_(awaited.timers_) {}

    bool await_ready() { return awaited_.is_set(); }

    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> frame) {
        const chime::timer_handle waiting = cell_.prepare(frame, limit_);  // From here on it can be woken.
        if (!awaited_.remember(waiting)) awaited_.timers_.cancel(waiting);
        return cell_.commit();  // From here on nothing of this object may be touched.
    }

    bool await_resume() {
        cell_.reason();  // The wait is over. The event itself tells best whether it has happened.
        return awaited_.is_set();
    }

 private:
    event& awaited_;
    chime::duration limit_;
    chime::timer_cell cell_;
};

event::wait event::wait_for(chime::duration limit) {
    return {*this, limit};
}

chime::task<> wait_patiently(event& awaited) {
    bool is_there = false;
    while (!is_there) {
        is_there = co_await awaited.wait_for(20ms);
        std::puts(is_there ? "there it is" : "nothing yet");
    }
}

}  // namespace

int main() {
    chime::io_context ctx;
    event delivery(ctx.timers());
    chime::spawn_detached(ctx, wait_patiently(delivery));
    std::jthread courier([&] {
        std::this_thread::sleep_for(50ms);
        delivery.set();
    });
    ctx.run();
}
