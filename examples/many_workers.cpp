// SPDX-License-Identifier: MIT

// A small server on several workers: every request is a task of its own with a limit of its own, counters that all of
// them share, books that one thread keeps, and an end in good order. Sleeps stand for the network.

#include <chime/error.hpp>
#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/timers.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

namespace {

/// Tasks on all workers count here at the same time, so each number protects itself.
struct tally {
    std::atomic<int> answered{0};
    std::atomic<int> too_late{0};
    std::atomic<int> failed{0};
};

/// What one thread alone touches needs no protection: whoever wants something of it sends a task to its loop.
class books {
 public:
    ~books() {
        guard_.reset();  // Nothing will come any more, so run() returns when it is through.
        keeper_.join();
    }

    chime::task<int> enter(int customer) { co_return ++visits_[customer]; }
    chime::io_context& loop() { return loop_; }

 private:
    std::map<int, int> visits_;  ///< Only inside of tasks on the loop.
    chime::io_context loop_;
    chime::io_context::work_guard guard_ = loop_.make_work_guard();
    std::thread keeper_{[this] { loop_.run(); }};
};

/// What the task gives, or nothing if that takes longer than `limit`.
template <class T>
chime::task<std::optional<T>> within(chime::runtime& rt, std::chrono::milliseconds limit, chime::task<T> work) {
    auto running = rt.spawn(std::move(work));
    std::atomic<bool> is_over = false;  // The timer may fire on another worker.
    const chime::scoped_timer timeout(rt.timers(), rt.timers().after(limit, [&] {
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

/// Every tenth page takes for ever.
chime::task<std::string> look_up(int page) {
    const auto time = page % 10 == 9 ? std::chrono::milliseconds(1h) : 2ms;
    co_await chime::sleep_for(time, chime::throw_on_cancel);
    co_return "page " + std::to_string(page);
}

chime::task<> serve(chime::runtime& rt, books& all_books, tally& counts, int request) {
    const auto page = co_await within(rt, 50ms, look_up(request));
    ++(page ? counts.answered : counts.too_late);
    // The books are kept elsewhere. This task waits for the entry, and no worker does.
    auto entry = chime::spawn(all_books.loop(), all_books.enter(request % 3));
    const int visits = co_await entry;
    if (visits == 30) throw std::runtime_error("customer " + std::to_string(request % 3) + " comes too often");
}

chime::task<> serve_all(chime::runtime& rt, books& all_books, tally& counts, std::size_t requests) {
    std::vector<chime::join_handle<void>> served(requests);
    int request = 0;
    for (auto& each : served) each = rt.spawn(serve(rt, all_books, counts, request++));
    for (auto& each : served) {
        try {
            co_await each;  // Gives its result, or throws what it has thrown, on whatever worker this task is by now.
        } catch (const std::runtime_error&) {
            ++counts.failed;
        }
    }
}

/// Has its say when everything ends.
chime::task<> keep_watch(std::atomic<bool>& has_left) {
    const auto why = co_await chime::sleep_for(24h);
    if (why == chime::wake_reason::cancelled) has_left = true;
}

void run_server() {
    books all_books;  // Before the runtime, because its tasks refer to them.
    tally counts;
    std::atomic<int> complaints{0};
    std::atomic<bool> has_left{false};

    chime::runtime rt({
        .workers = 3,
        .on_exception = [&](const std::exception_ptr&) { ++complaints; },  // On the worker where it was thrown.
    });
    rt.timers().after(5ms, [] { throw std::runtime_error("a callback that fails"); });
    chime::spawn_detached(rt, keep_watch(has_left));

    rt.block_on(serve_all(rt, all_books, counts, 90));  // On the workers, while this thread waits.
    rt.shutdown();                                      // The watchman is told, runs to his end, and the threads end.

    std::printf("%d answered, %d too late\n", counts.answered.load(), counts.too_late.load());
    std::printf("%d tasks failed, %d callbacks did\n", counts.failed.load(), complaints.load());
    std::printf("the watchman %s\n", has_left ? "has left" : "was locked in");
    try {
        rt.timers().after(1s, [] {});
    } catch (const std::system_error& error) {
        std::printf("and then: %s\n", error.code().message().c_str());
    }
    if (counts.answered != 81 || counts.too_late != 9 || counts.failed != 3 || complaints != 1 || !has_left) {
        throw std::logic_error("the server has lost something");
    }
}

}  // namespace

int main() {
    run_server();
}
