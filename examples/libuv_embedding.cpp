// SPDX-License-Identifier: MIT

// chime inside libuv: a poll watcher on chime's descriptor calls poll(). Timers and tasks of chime and callbacks of libuv
// take turns on one thread.

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include <uv.h>

using namespace std::chrono_literals;

namespace {

/// Drives a context from a libuv loop, and keeps that loop alive, until it is closed.
class uv_driver {
 public:
    uv_driver(uv_loop_t& loop, chime::io_context& ctx) : ctx_(ctx) {
        if (uv_poll_init(&loop, &watcher_, ctx.poll_fd()) != 0) std::abort();
        watcher_.data = this;
        uv_poll_start(&watcher_, UV_READABLE,
                      [](uv_poll_t* watcher, int, int) { static_cast<uv_driver*>(watcher->data)->poll(); });
        poll();  // Once before the first wait.
    }

    /// From now on the loop may end. The driver has to live until it does.
    void close() { uv_close(reinterpret_cast<uv_handle_t*>(&watcher_), nullptr); }

 private:
    void poll() noexcept {
        try {
            ctx_.poll();
        } catch (const std::exception& error) {  // libuv is C: no exception may pass through it.
            std::printf("a callback has thrown: %s\n", error.what());
        }
    }

    chime::io_context& ctx_;
    uv_poll_t watcher_{};
};

chime::task<> count_down(uv_driver& driver) {
    for (int number = 3; number > 0; --number) {
        std::printf("chime: %d\n", number);
        co_await chime::sleep_for(30ms);
    }
    std::puts("chime: lift-off");
    driver.close();
}

/// What libuv does beside.
void ignite(uv_timer_t* engine) {
    std::puts("libuv: ignition");
    uv_close(reinterpret_cast<uv_handle_t*>(engine), nullptr);
}

}  // namespace

int main() {
    uv_loop_t loop;
    if (uv_loop_init(&loop) != 0) return EXIT_FAILURE;

    uv_timer_t engine;
    uv_timer_init(&loop, &engine);
    uv_timer_start(&engine, ignite, 45, 0);

    chime::io_context ctx;
    uv_driver driver(loop, ctx);
    chime::spawn_detached(ctx, count_down(driver));  // Outside of the loop, or in one of its callbacks: all the same.

    uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
