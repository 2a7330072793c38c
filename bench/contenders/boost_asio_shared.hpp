// SPDX-License-Identifier: MIT
#pragma once

#include "contenders/boost_asio.hpp"
#include "support/plan.hpp"
#include "support/sequence.hpp"
#include "support/shared_contender.hpp"
#include "support/sleepers_plan.hpp"
#include "support/spinning_signal.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

// Boost.Asio where threads or coroutines come in: the same steady_timer as in boost_asio.hpp.

namespace chime_bench {

/// One io_context that T threads run; a step is a posted function that posts the next one.
///
/// Timers of one lane are touched by its steps alone, and those never run at the same time, so no strand is needed: a wait
/// whose handler is under way is told from a pending one by what cancel() answers.
class boost_asio_shared {
 public:
    static constexpr std::string_view name = boost_asio::name;
    static constexpr std::string_view clock_reads = boost_asio::clock_reads;
    static std::string version() { return boost_asio::version(); }

    class lane_timers {
     public:
        lane_timers(boost_asio_shared& home, std::size_t timers) : home_(home) {
            timers_.reserve(timers);
            for (std::size_t slot = 0; slot < timers; ++slot) timers_.emplace_back(home.context_);
        }

        void arm(slot_index slot, std::chrono::nanoseconds delay) {
            timers_[slot].expires_after(delay);
            wait(slot);
        }

        bool cancel(slot_index slot) {
            const std::size_t cancelled = timers_[slot].cancel();
            aborts_expected_ += cancelled;
            return cancelled != 0;
        }

        bool postpone(slot_index slot, std::chrono::nanoseconds delay) {
            const std::size_t cancelled = timers_[slot].expires_after(delay);
            if (cancelled == 0) return false;  // It has fired; arm() comes next.
            aborts_expected_ += cancelled;
            wait(slot);
            return true;
        }

        void prefetch_handle(slot_index slot) const { __builtin_prefetch(&timers_[slot]); }
        void prefetch_timer(slot_index) const {}  // Its place in the heap is not ours to see.

        [[nodiscard]] std::uint64_t aborts_expected() const { return aborts_expected_; }

     private:
        void wait(slot_index slot) {
            timers_[slot].async_wait([&home = home_](const boost::system::error_code& error) {
                (error ? home.aborts_seen_ : home.fired_).add_one();
            });
        }

        boost_asio_shared& home_;
        std::vector<boost::asio::steady_timer> timers_;
        std::uint64_t aborts_expected_ = 0;
    };

    boost_asio_shared(unsigned lanes, std::size_t timers_per_lane) : context_(static_cast<int>(lanes)) {
        for (unsigned which = 0; which < lanes; ++which) {
            lanes_.push_back(std::make_unique<lane_timers>(*this, timers_per_lane));
        }
    }

    lane_timers& lane(unsigned which) { return *lanes_[which]; }

    template <class Step>
    void run(Step step) {
        for (unsigned which = 0; which < lanes_.size(); ++which) post_step(step, which);
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < lanes_.size(); ++i) {
            threads.emplace_back([this] { context_.run(); });
        }
        for (std::thread& each : threads) each.join();
    }

    [[nodiscard]] std::uint64_t fired() const { return fired_.sum(); }

    [[nodiscard]] std::string complaint() const {
        std::uint64_t expected = 0;
        for (const auto& each : lanes_) expected += each->aborts_expected();
        if (aborts_seen_.sum() == expected) return {};
        return std::to_string(expected) + " waits were cancelled, but " + std::to_string(aborts_seen_.sum()) +
               " handlers were told";
    }

 private:
    template <class Step>
    void post_step(Step& step, unsigned which) {
        boost::asio::post(context_, [this, &step, which] {
            if (step(which)) {
                post_step(step, which);
            } else if (interrupted) {
                context_.stop();  // Its timers would keep it running.
            }
        });
    }

    scattered_count fired_;
    scattered_count aborts_seen_;
    boost::asio::io_context context_;
    std::vector<std::unique_ptr<lane_timers>> lanes_;
};

/// One thread runs the io_context and arms; another cancels. A timer must not be touched by two threads at once, so the
/// cancel is posted to the loop.
class boost_asio_remote {
 public:
    static constexpr std::string_view name = boost_asio::name;
    static constexpr std::string_view clock_reads = boost_asio::clock_reads;
    static std::string version() { return boost_asio::version(); }

    explicit boost_asio_remote(std::size_t timers) {
        timers_.reserve(timers);
        for (std::size_t slot = 0; slot < timers; ++slot) timers_.emplace_back(context_);
    }
    ~boost_asio_remote() {
        guard_.reset();
        context_.stop();
        thread_.join();
    }
    boost_asio_remote(const boost_asio_remote&) = delete;
    boost_asio_remote& operator=(const boost_asio_remote&) = delete;

    void arm_all(const std::vector<std::chrono::nanoseconds>& delays) {
        on_the_loop([&] {
            for (std::size_t slot = 0; slot < delays.size(); ++slot) {
                timers_[slot].expires_after(delays[slot]);
                timers_[slot].async_wait([this](const boost::system::error_code& error) {
                    if (error) ++aborts_;
                });
            }
        });
    }

    void cancel(slot_index slot) {
        boost::asio::post(context_, [this, slot] { timers_[slot].cancel(); });
    }

    /// Behind what was posted, and then behind the handlers that this has made ready.
    std::uint64_t settle() {
        on_the_loop([] {});
        std::uint64_t cancelled = 0;
        on_the_loop([&] { cancelled = std::exchange(aborts_, 0); });
        return cancelled;
    }

    [[nodiscard]] std::string complaint() const { return {}; }

 private:
    template <class Function>
    void on_the_loop(Function function) {
        spinning_signal done;
        boost::asio::post(context_, [&] {
            function();
            done.give();
        });
        done.wait();
    }

    std::uint64_t aborts_ = 0;  // The loop's.
    boost::asio::io_context context_;
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{context_.get_executor()};
    std::vector<boost::asio::steady_timer> timers_;
    std::thread thread_{[this] { context_.run(); }};
};

/// awaitable<> and co_spawn, detached, each with a steady_timer of its own, on one thread.
class boost_asio_sleepers {
 public:
    static constexpr std::string_view name = boost_asio::name;
    static constexpr std::string_view clock_reads = boost_asio::clock_reads;
    static std::string version() { return boost_asio::version(); }

    static void sleep_all(sleepers_plan& plan) {
        boost::asio::io_context context(1);
        for (std::size_t i = 0; i < plan.count; ++i) {
            boost::asio::co_spawn(context, sleep(plan, i, plan.next_delay()), boost::asio::detached);
        }
        context.run();
    }

 protected:
    static boost::asio::awaitable<void> sleep(sleepers_plan& plan, std::size_t which, std::chrono::nanoseconds delay) {
        const auto started = plan.now_if_checked(which);
        boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, delay);
        co_await timer.async_wait(boost::asio::use_awaitable);
        plan.note(which, started, delay);
    }
};

/// awaitable<> and co_spawn, on one thread: one at a time is awaited as it is, several as a parallel group.
class boost_asio_joiner {
 public:
    static constexpr std::string_view name = boost_asio::name;
    static constexpr std::string_view clock_reads = boost_asio::clock_reads;
    static std::string version() { return boost_asio::version(); }

    static std::uint64_t join_all(std::uint64_t rounds, std::size_t width) {
        boost::asio::io_context context(1);
        std::uint64_t sum = 0;
        boost::asio::co_spawn(context, repeat(context.get_executor(), rounds, width, sum), boost::asio::detached);
        context.run();
        return sum;
    }

 protected:
    /// `executor` is where the others are started.
    static boost::asio::awaitable<void> repeat(boost::asio::any_io_executor executor, std::uint64_t rounds,
                                               std::size_t width, std::uint64_t& sum) {
        for (std::uint64_t round = 0; round < rounds; ++round) {
            if (width == 1) {
                sum += co_await boost::asio::co_spawn(executor, answer(0), boost::asio::use_awaitable);
                continue;
            }
            std::vector<decltype(boost::asio::co_spawn(executor, answer(0), boost::asio::deferred))> group;
            group.reserve(width);
            for (std::size_t i = 0; i < width; ++i) {
                group.push_back(boost::asio::co_spawn(executor, answer(i), boost::asio::deferred));
            }
            auto joined = boost::asio::experimental::make_parallel_group(std::move(group));
            const auto [order, failures, answers] =
                co_await joined.async_wait(boost::asio::experimental::wait_for_all(), boost::asio::use_awaitable);
            for (const std::uint64_t each : answers) sum += each;
        }
    }

 private:
    static boost::asio::awaitable<std::uint64_t> answer(std::uint64_t number) { co_return number; }
};

}  // namespace chime_bench
