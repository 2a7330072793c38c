// SPDX-License-Identifier: MIT
#include "clients.hpp"
#include "screen.hpp"
#include "sides.hpp"
#include "wording.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>
#include <boost/version.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace chime_demo {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<void> sleep_once(witness& seen, std::chrono::nanoseconds time) {
    seen.started();
    const clock::time_point deadline = clock::now() + time;
    asio::steady_timer timer(co_await asio::this_coro::executor, deadline);
    co_await timer.async_wait(asio::use_awaitable);
    seen.woke(deadline);
}

/// Starts every `step`-th sleeper, from `first` on, 64 at a time; every thread has such a chain of calls.
void start_sleepers(asio::io_context& context, const work& work, witness& seen, std::size_t first, std::size_t step) {
    for (std::size_t which = first; which < std::min(work.sleepers, first + 64 * step) && !interrupted; which += step) {
        asio::co_spawn(context, sleep_once(seen, work.sleep_of(which)), asio::detached);
    }
    if (first + 64 * step >= work.sleepers || interrupted) return;
    asio::post(context,
               [&context, &work, &seen, first, step] { start_sleepers(context, work, seen, first + 64 * step, step); });
}

/// Timeouts of the clients. Timers of a batch lie side by side, and only one thread at a time has it: so neither strand
/// nor post is needed, which is the best that can be done.
class asio_timeouts {
 public:
    using batch = std::vector<asio::steady_timer>;

    asio_timeouts(asio::io_context& context, witness& seen) : context_(context), seen_(seen) {}

    static batch make_batch(std::size_t count) {
        batch made;
        made.reserve(count);
        return made;
    }
    void arm(batch& timeouts, clock::time_point deadline) {
        timeouts.emplace_back(context_, deadline)
            .async_wait([&seen = seen_, deadline](const boost::system::error_code& error) {
                if (error) {
                    seen.aborted();
                } else {
                    seen.expired(deadline);
                }
            });
    }
    std::uint64_t cancel(batch& timeouts) {
        std::uint64_t cancelled = 0;
        for (asio::steady_timer& timeout : timeouts) cancelled += timeout.cancel();
        return cancelled;
    }

 private:
    asio::io_context& context_;
    witness& seen_;
};

}  // namespace

results run_on_asio(const work& work) {
    witness seen;
    screen screen(work);
    results result;
    const clock::time_point start = clock::now();
    const auto now = [&] {
        const counts sum = seen.sum();
        return moment{clock::now() - start, sum, sum.started - sum.woken + sum.armed - sum.expired - sum.cancelled,
                      work.workers};
    };
    {
        asio::io_context context(static_cast<int>(work.workers));
        auto guard = asio::make_work_guard(context);
        asio_timeouts timeouts(context, seen);
        clients clients(timeouts, work, seen);
        for (unsigned which = 0; which < work.workers; ++which) {
            asio::post(context, [&, which] { start_sleepers(context, work, seen, which, work.workers); });
        }
        std::vector<std::thread> threads;
        threads.reserve(work.workers);
        for (unsigned which = 0; which < work.workers; ++which) threads.emplace_back([&] { context.run(); });
        while (seen.sum().started < work.sleepers && !interrupted) std::this_thread::sleep_for(1ms);
        result.starting = clock::now() - start;
        if (!interrupted) {
            screen.say("* " + grouped(work.sleepers) + " coroutines started in " + readable(result.starting));
        }

        clients.start();
        const auto is_over = [&] {
            const counts sum = seen.sum();
            return clients.are_done() && sum.woken == work.sleepers && sum.armed == sum.expired + sum.aborted;
        };
        while (!interrupted && !is_over()) {
            screen.show(now());
            std::this_thread::sleep_for(20ms);
        }
        clients.wait();
        result.elapsed = clock::now() - start;
        result.is_complete = !interrupted;
        guard.reset();
        context.stop();
        for (std::thread& each : threads) each.join();
    }
    result.seen = seen.sum();
    screen.finish(now());
    return result;
}

std::string asio_version() {
    return std::to_string(BOOST_VERSION / 100'000) + '.' + std::to_string(BOOST_VERSION / 100 % 1'000);
}

}  // namespace chime_demo
