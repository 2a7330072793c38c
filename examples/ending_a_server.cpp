// SPDX-License-Identifier: MIT

// How a server ends that is told to: it takes nothing new, lets everybody finish, and does not wait for ever.

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>

#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include <csignal>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;

/// Serves one request after the other, until it is told to stop; then it finishes what it has begun.
chime::task<> serve(int number, std::chrono::milliseconds last_words, chime::cancel_token stopping) {
    for (;;) {
        auto next_request = chime::sleep_for(5ms, stopping);
        const auto why = co_await next_request;
        if (why == chime::wake_reason::cancelled) break;
    }
    auto finishing = chime::sleep_for(last_words);  // Without the token: this is what must not be cut short.
    const auto why = co_await finishing;
    std::printf("connection %d: %s\n", number, why == chime::wake_reason::elapsed ? "finished" : "cut off");
}

chime::task<> serve_until_told(chime::io_context& ctx, chime::cancel_token stopping) {
    std::vector<chime::join_handle<>> open;
    open.push_back(chime::spawn(ctx, serve(1, 10ms, stopping)));
    open.push_back(chime::spawn(ctx, serve(2, 20ms, stopping)));
    open.push_back(chime::spawn(ctx, serve(3, 1h, stopping)));  // This one would take too long.

    auto told = chime::sleep_until(chime::never, stopping);
    co_await told;
    std::puts("told to stop: nothing new from here on");
    const chime::scoped_timer limit(ctx.timers(), ctx.timers().after(100ms, [&open] {
        for (auto& connection : open) connection.cancel();  // Their sleeps end at once, and so do all that follow.
    }));
    for (auto& connection : open) co_await connection;
    std::puts("all connections have ended");
}

}  // namespace

int main() {
    // Blocked before any thread starts, so that it waits for who asks for it. Nothing of chime may be called in a handler.
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);

    chime::cancel_source stopping;
    std::thread listener([&] {
        int which = 0;
        sigwait(&signals, &which);
        stopping.request_cancel();  // From any thread. Whoever sleeps on it becomes ready, on his own loop.
    });

    chime::io_context ctx;
    ctx.timers().after(30ms, [] { kill(getpid(), SIGTERM); });  // Somebody says: enough.
    chime::block_on(ctx, serve_until_told(ctx, stopping.token()));
    listener.join();
}
