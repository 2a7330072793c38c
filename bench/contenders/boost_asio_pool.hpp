// SPDX-License-Identifier: MIT
#pragma once

#include "contenders/boost_asio_shared.hpp"
#include "support/sleepers_plan.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <thread>

// Boost.Asio's coroutines on several threads: one io_context that all of them run.

namespace chime_bench {

/// As many threads as chime.runtime has workers, and the io_context is told so.
class boost_asio_pool {
 public:
    static constexpr std::string_view name = "boost.asio.pool";

 protected:
    static constexpr int threads = 2;

    /// Until nothing is left to do.
    static void run(boost::asio::io_context& context) {
        std::array<std::thread, threads> all;
        for (std::thread& each : all) each = std::thread([&context] { context.run(); });
        for (std::thread& each : all) each.join();
    }
};

/// All are started by a coroutine, as those of chime.runtime are: each begins on the spot and not by way of the queue.
/// None needs a strand: whoever waits for one thing at a time is resumed by one thread at a time.
class boost_asio_pool_sleepers : public boost_asio_pool, public boost_asio_sleepers {
 public:
    using boost_asio_pool::name;

    static void sleep_all(sleepers_plan& plan) {
        boost::asio::io_context context(threads);
        boost::asio::co_spawn(context, start_all(context, plan), boost::asio::detached);
        run(context);
    }

 private:
    static boost::asio::awaitable<void> start_all(boost::asio::io_context& context, sleepers_plan& plan) {
        for (std::size_t i = 0; i < plan.count; ++i) {
            boost::asio::co_spawn(context, sleep(plan, i, plan.next_delay()), boost::asio::detached);
        }
        co_return;
    }
};

/// Who starts the others has a strand, or the last of them could resume it on one thread while it is still starting a
/// group on the other one. Those that it starts need none.
class boost_asio_pool_joiner : public boost_asio_pool, public boost_asio_joiner {
 public:
    using boost_asio_pool::name;

    static std::uint64_t join_all(std::uint64_t rounds, std::size_t width) {
        boost::asio::io_context context(threads);
        std::uint64_t sum = 0;
        boost::asio::co_spawn(boost::asio::make_strand(context), repeat(context.get_executor(), rounds, width, sum),
                              boost::asio::detached);
        run(context);
        return sum;
    }
};

}  // namespace chime_bench
