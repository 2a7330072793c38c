// SPDX-License-Identifier: MIT
//
// A server that is asked for more than it takes: what has no room is told so at once, or waits for its turn, and nobody
// throws.
#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr std::size_t most_tasks = 100;
constexpr int requests = 400;

chime::task<int> serve(int request) {
    co_await chime::sleep_for(2ms);
    co_return request;
}

/// Serves as many as there is room for, and tells the others to come back later.
chime::task<int> serve_or_refuse(chime::runtime& rt) {
    std::vector<chime::join_handle<int>> served;
    int refused = 0;
    for (int request = 0; request < requests; ++request) {
        if (auto joined = rt.try_spawn(serve(request))) {
            served.push_back(std::move(*joined));
        } else {
            ++refused;  // Here a server answers "busy", which costs nearly nothing.
        }
    }
    for (auto& each : served) co_await each;
    co_return refused;
}

/// Serves all of them; whoever finds no room keeps his task and tries again.
chime::task<int> serve_all(chime::runtime& rt) {
    std::vector<chime::join_handle<int>> served;
    for (int request = 0; request < requests; ++request) {
        chime::task<int> work = serve(request);
        for (;;) {
            // NOLINTNEXTLINE(bugprone-use-after-move): only if it was taken, and then the loop ends.
            auto joined = rt.try_spawn(std::move(work));  // Refused, the task is still ours.
            if (joined) {
                served.push_back(std::move(*joined));
                break;
            }
            co_await chime::sleep_for(1ms);
        }
    }
    int sum = 0;
    for (auto& each : served) sum += co_await each;
    co_return sum;
}

/// Whether all went as it should.
chime::task<bool> demonstrate(chime::runtime& rt) {
    const int refused = co_await serve_or_refuse(rt);
    std::printf("asked for %d at once, with room for %zu: %s\n", requests, most_tasks,
                refused > 0 ? "some were told to come back" : "nobody was refused");
    const int sum = co_await serve_all(rt);
    std::printf("asked again and again: the answers make %d\n", sum);
    // How many depends on how many have been served before the last one came.
    co_return refused > 0 && sum == requests*(requests - 1) / 2;
}

}  // namespace

int main() {
    chime::runtime rt({.workers = 2, .max_tasks = most_tasks});
    return rt.block_on(demonstrate(rt)) ? EXIT_SUCCESS : EXIT_FAILURE;
}
