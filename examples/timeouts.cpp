// SPDX-License-Identifier: MIT

// The three things that timeouts are for: a request that may take too long, a connection that may fall silent, and an
// object that must not be called back when it is gone.

#include <chime/io_context.hpp>
#include <chime/timers.hpp>

#include <chrono>
#include <cstdio>

using namespace std::chrono_literals;

namespace {

/// A request that gives up when no answer comes.
class request {
 public:
    request(chime::timers& timers, const char* name, std::chrono::milliseconds limit) : timers_(timers), name_(name) {
        timeout_ = timers.after(limit, [this] { std::printf("%s: no answer, giving up\n", name_); });
    }

    void answered() {
        // Exactly one of the two happens: the timeout runs, or this cancels it.
        if (timers_.cancel(timeout_) == chime::cancel_result::cancelled) {
            std::printf("%s: answered in time\n", name_);
        } else {
            std::printf("%s: the answer came too late\n", name_);
        }
    }

 private:
    chime::timers& timers_;
    const char* name_;
    chime::timer_handle timeout_;
};

constexpr auto idle_limit = 60ms;

/// A connection that closes itself when nothing has been received for a while.
class connection {
 public:
    explicit connection(chime::timers& timers)
        : timers_(timers), idle_(timers, timers.after(idle_limit, [this] { close(); })) {}

    void receive(const char* text) {
        if (!is_open_) return;
        std::printf("connection: received \"%s\"\n", text);
        timers_.postpone(idle_.get(), idle_limit);  // The limit counts anew, from now.
    }

 private:
    void close() {
        is_open_ = false;
        std::puts("connection: silent for too long, closing");
    }

    chime::timers& timers_;
    bool is_open_ = true;
    chime::scoped_timer idle_;  // Cancels when the connection goes: nobody calls back into what is gone.
};

}  // namespace

int main() {
    chime::io_context ctx;
    chime::timers& timers = ctx.timers();

    request quick(timers, "quick request", 50ms);
    request slow(timers, "slow request", 20ms);
    timers.after(10ms, [&] { quick.answered(); });
    timers.after(40ms, [&] { slow.answered(); });

    connection talkative(timers);
    timers.after(30ms, [&] { talkative.receive("hello"); });
    timers.after(60ms, [&] { talkative.receive("still here"); });
    timers.after(300ms, [&] { talkative.receive("anybody?"); });

    {
        const connection short_lived(timers);
        std::printf("with the second connection %d timers are pending,", static_cast<int>(timers.stats().pending));
    }
    std::printf(" without it %d\n", static_cast<int>(timers.stats().pending));

    ctx.run();
}
