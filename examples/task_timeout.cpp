// SPDX-License-Identifier: MIT

// A task that is given so much time and no more, made of what there is: a spawned task, a timer that cancels it, and
// whoever waits for what comes of it.

#include <chime/error.hpp>
#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/timers.hpp>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

using namespace std::chrono_literals;

namespace {

/// What the task gives, or nothing if that takes longer than `limit`.
template <class T>
chime::task<std::optional<T>> within(chime::io_context& ctx, std::chrono::milliseconds limit, chime::task<T> work) {
    auto running = chime::spawn(ctx, std::move(work));
    bool is_over = false;
    const chime::scoped_timer timeout(ctx.timers(), ctx.timers().after(limit, [&] {
        is_over = true;
        running.cancel();
    }));
    try {
        co_return co_await running;
    } catch (const std::system_error& error) {
        if (!is_over || error.code() != chime::errc::cancelled) throw;  // It has failed, or was cancelled by others.
        co_return std::nullopt;
    }
}

/// The sleep stands for all that may take long. When the task is cancelled, it throws, and that ends the task.
chime::task<std::string> fetch(const char* page, std::chrono::milliseconds time) {
    co_await chime::sleep_for(time, chime::throw_on_cancel);
    co_return std::string("the text of ") + page;
}

chime::task<> show(chime::io_context& ctx, const char* page, std::chrono::milliseconds time) {
    const auto text = co_await within(ctx, 50ms, fetch(page, time));
    std::printf("%s: %s\n", page, text ? text->c_str() : "took too long");
}

}  // namespace

int main() {
    chime::io_context ctx;
    chime::spawn_detached(ctx, show(ctx, "a small page", 10ms));
    chime::spawn_detached(ctx, show(ctx, "a large page", 10min));
    ctx.run();  // Returns after 50 ms.
}
