// SPDX-License-Identifier: MIT

// Heavy work goes to the pool, so that the loop stays free: primes are counted on other threads while a heartbeat goes
// on. Results and exceptions come back to the task that awaits them, on the loop's thread.

#include <chime/cpu_pool.hpp>
#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/timers.hpp>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr int range = 200'000;

bool is_prime(int number) {
    for (int divisor = 2; divisor <= number / divisor; ++divisor) {
        if (number % divisor == 0) return false;
    }
    return number >= 2;
}

int count_primes(int from, int to) {
    if (from > to) throw std::invalid_argument("this range ends before it begins");
    int count = 0;
    for (int number = from; number < to; ++number) count += is_prime(number) ? 1 : 0;
    return count;
}

chime::task<int> count_in_parallel(chime::io_context& ctx) {
    std::vector<chime::pool_job<int>> jobs;
    for (int part = 0; part < 4; ++part) {
        const int from = range / 4 * part;
        jobs.push_back(ctx.cpu_pool().submit([from] { return count_primes(from, from + range / 4); }));
    }
    int total = 0;
    for (auto& job : jobs) total += co_await job;  // Here, on the loop again.
    co_return total;
}

chime::task<> work(chime::io_context& ctx, chime::timer_handle heartbeat) {
    const auto loop = std::this_thread::get_id();
    const int primes = co_await count_in_parallel(ctx);
    std::printf("%d primes below %d, told on the loop's thread: %s\n", primes, range,
                std::this_thread::get_id() == loop ? "yes" : "no");

    auto nonsense = ctx.cpu_pool().submit([] { return count_primes(2, 1); });
    try {
        co_await nonsense;
    } catch (const std::invalid_argument& error) {
        std::printf("the other job failed: %s\n", error.what());
    }
    ctx.timers().cancel(heartbeat);
}

}  // namespace

int main() {
    chime::io_context ctx;
    int beats = 0;
    const chime::timer_handle heartbeat = ctx.timers().every(1ms, chime::missed_ticks::skip, [&] { ++beats; });
    chime::spawn_detached(ctx, work(ctx, heartbeat));
    ctx.run();  // Not out of work while a job runs.
    std::printf("meanwhile the heart %s\n", beats > 0 ? "was beating" : "had no time to beat");
}
