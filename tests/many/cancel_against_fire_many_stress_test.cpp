// SPDX-License-Identifier: MIT
//
// Four threads cancel the same timers while two workers fire them: one of them wins, and the closure ends once.

#include "runtime/watchdog.hpp"
#include "support/random.hpp"
#include "support/runtime_ledger.hpp"

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <thread>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

struct fate {
    std::atomic<int> fired{0};
    std::atomic<int> cancelled{0};
    std::atomic<int> destroyed{0};
};

class noting {
 public:
    explicit noting(fate& noted) : its_(&noted) {}
    noting(noting&& other) noexcept : its_(std::exchange(other.its_, nullptr)) {}
    ~noting() {
        if (its_ != nullptr) its_->destroyed.fetch_add(1);
    }
    void operator()() const { its_->fired.fetch_add(1); }

 private:
    fate* its_;
};

constexpr std::size_t batch_size = 256;
constexpr std::size_t thread_count = 4;

/// `interfere` says what to do with one timer of the batch, on one of the four threads. A round is one timer.
template <class Interfere>
void compete(const char* name, std::uint64_t all_rounds, const Interfere& interfere) {
    watchdog guard(name, 30s);
    runtime home({.workers = 2});
    std::vector<fate> fates(batch_size);
    std::array<timer_handle, batch_size> handles;
    std::barrier together(static_cast<std::ptrdiff_t>(thread_count));
    std::uint64_t won_by_cancel = 0;
    std::uint64_t won_by_fire = 0;
    const std::uint64_t batches = all_rounds / batch_size + 1;
    const auto take_part = [&](std::size_t number) {
        random_source random(process_seed() + number);
        for (std::uint64_t batch = 0; batch < batches; ++batch) {
            guard.pat();
            for (std::size_t each = number; each < batch_size; each += thread_count) {
                const auto delay = nanoseconds{random.below(120'000)};
                handles[each] = home.timers().after(delay, noting(fates[each]));
            }
            together.arrive_and_wait();
            const std::size_t start = random.below(batch_size);
            for (std::size_t step = 0; step < batch_size; ++step) {
                const std::size_t each = (start + step) % batch_size;
                if (interfere(home, handles[each], random)) fates[each].cancelled.fetch_add(1);
            }
            together.arrive_and_wait();
            if (number == 0) {
                for (fate& its : fates) {
                    await_that([&] { return its.destroyed.load() != 0; });
                    EXPECT_EQ(its.fired.load() + its.cancelled.load(), 1) << replay_hint();
                    EXPECT_EQ(its.destroyed.load(), 1) << replay_hint();
                    won_by_fire += static_cast<std::uint64_t>(its.fired.load());
                    won_by_cancel += static_cast<std::uint64_t>(its.cancelled.load());
                    its.fired = its.cancelled = its.destroyed = 0;
                }
            }
            together.arrive_and_wait();
        }
    };
    std::vector<std::thread> threads;
    for (std::size_t number = 1; number < thread_count; ++number) threads.emplace_back(take_part, number);
    take_part(0);
    for (std::thread& each : threads) each.join();
    std::cout << "cancelled " << won_by_cancel << ", fired " << won_by_fire << '\n';
    EXPECT_GE(won_by_cancel + won_by_fire, all_rounds);
    EXPECT_GT(won_by_cancel, 0U);
    EXPECT_GT(won_by_fire, 0U);
    check_ledger_after_shutdown(home);
    EXPECT_EQ(home.stats().timers.fired, won_by_fire);
    EXPECT_EQ(home.stats().timers.cancelled, won_by_cancel);
}

TEST(cancel_against_fire_on_many_workers, one_of_them_wins) {
    compete("cancel against fire", scaled(3'000'000), [](runtime& home, timer_handle which, random_source&) {
        return home.timers().cancel(which) == cancel_result::cancelled;
    });
}

TEST(cancel_against_fire_on_many_workers, one_of_them_wins_while_others_postpone) {
    compete("cancel against fire and postpone", scaled(1'500'000),
            [](runtime& home, timer_handle which, random_source& random) {
                if (random.one_in(2)) {
                    home.timers().postpone(which, nanoseconds{random.below(100'000)});
                    return false;
                }
                if (random.one_in(4)) return home.timers().cancel_and_wait(which) == cancel_result::cancelled;
                return random.one_in(2) && home.timers().cancel(which) == cancel_result::cancelled;
            });
}

}  // namespace
}  // namespace chime::test
