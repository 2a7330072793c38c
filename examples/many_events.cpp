// SPDX-License-Identifier: MIT

// A server with very many connections: every event postpones the timeout of its connection. With a million of them each
// timer is a cache miss away, unless it is fetched while the events before it are looked at.

#include <chime/io_context.hpp>
#include <chime/timers.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

using namespace std::chrono_literals;

namespace {

struct connection {
    chime::timer_handle idle;
};

/// What epoll_wait() would report: who has sent something.
std::vector<connection*> poll_events(std::vector<connection>& all, std::uint64_t& dice) {
    std::vector<connection*> events(64);
    for (connection*& each : events) {
        dice = dice * 6364136223846793005U + 1442695040888963407U;
        each = &all[(dice >> 33U) % all.size()];
    }
    return events;
}

/// Whoever has sent something is alive.
void postpone_all(chime::timers& timers, const std::vector<connection*>& events) {
    constexpr std::size_t ahead = 8;
    for (std::size_t i = 0; i < events.size(); ++i) {
        if (i + ahead < events.size()) timers.prefetch(events[i + ahead]->idle);
        timers.postpone(events[i]->idle, 30s);
    }
}

}  // namespace

int main() {
    constexpr std::size_t count = 200'000;
    chime::io_context ctx;
    chime::timers& timers = ctx.timers();
    std::vector<connection> connections(count);
    std::size_t closed = 0;
    for (connection& each : connections) each.idle = timers.after(30s, [&closed] { ++closed; });

    std::uint64_t dice = 1;
    const auto begin = std::chrono::steady_clock::now();
    constexpr int rounds = 10'000;
    int round = 0;
    // As code on the loop does it: one batch, then the loop may do something else.
    const auto next_round = [&](const auto& again) -> void {
        postpone_all(timers, poll_events(connections, dice));
        if (++round < rounds) ctx.post([&again] { again(again); });
    };
    ctx.post([&] { next_round(next_round); });
    while (round < rounds) ctx.poll();
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;

    const auto stats = timers.stats();
    std::printf("%zu connections, %llu events: %.0f ns each; %zu closed\n", count,
                static_cast<unsigned long long>(stats.postponed), taken.count() / rounds / 64, closed);
    for (connection& each : connections) timers.cancel(each.idle);
    ctx.run();
}
