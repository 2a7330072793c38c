// SPDX-License-Identifier: MIT
#include "base/futex.hpp"

#include "base/clock.hpp"
#include "base/thread.hpp"

#include <chrono>
#include <cstdint>
#include <vector>

#include <pthread.h>
#include <signal.h>

#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;
using chime::base::atomic;
using chime::base::futex_result;
using chime::base::futex_wait;
using chime::base::futex_wake_all;
using chime::base::futex_wake_one;
using chime::base::futex_word;
using chime::base::now;

/// Waits as the library does: again and again, until the word has changed.
void wait_while(const futex_word& word, std::uint32_t value) {
    while (word.load() == value) {
        const futex_result result = futex_wait(word, value);
        ASSERT_NE(result, futex_result::timed_out) << "nobody set a deadline";
    }
}

}  // namespace

TEST(futex, does_not_sleep_when_the_word_has_changed) {
    futex_word word{2};
    EXPECT_EQ(futex_wait(word, 1), futex_result::changed);
    EXPECT_EQ(futex_wait(word, 1, now() + 1h), futex_result::changed);
}

TEST(futex, never_times_out_before_the_deadline) {
    futex_word word{0};
    for (const std::chrono::nanoseconds delay : {1ns, 999ns, 10'000ns, 123'457ns, 1'000'000ns, 5'000'001ns}) {
        for (int round = 0; round < 20; ++round) {
            const chime::time_point deadline = now() + delay;
            futex_result result = futex_result::woken;
            while (result == futex_result::woken) result = futex_wait(word, 0, deadline);
            ASSERT_EQ(result, futex_result::timed_out);
            ASSERT_GE(now(), deadline);
        }
    }
}

TEST(futex, answers_at_once_when_the_deadline_has_passed) {
    futex_word word{0};
    for (const chime::time_point past :
         {now() - 1ns, chime::time_point{}, chime::time_point{-1h}, chime::time_point::min()}) {
        EXPECT_EQ(futex_wait(word, 0, past), futex_result::timed_out);
    }
}

TEST(futex, wakes_a_sleeper_that_has_no_deadline) {
    futex_word word{0};
    chime::base::thread sleeper([&] { wait_while(word, 0); });
    word.store(1);
    futex_wake_one(word);
    sleeper.join();
}

TEST(futex, wakes_a_sleeper_long_before_its_deadline) {
    futex_word word{0};
    const chime::time_point deadline = now() + 1h;
    chime::base::thread sleeper([&] {
        while (word.load() == 0) ASSERT_NE(futex_wait(word, 0, deadline), futex_result::timed_out);
    });
    word.store(1);
    futex_wake_one(word);
    sleeper.join();
}

TEST(futex, wakes_nobody_when_nobody_sleeps) {
    futex_word word{0};
    EXPECT_FALSE(futex_wake_one(word));
    EXPECT_EQ(futex_wake_all(word), 0U);
}

TEST(futex, wakes_all_sleepers_and_counts_no_more_than_there_are) {
    constexpr std::uint32_t sleepers = 4;
    futex_word word{0};
    std::vector<chime::base::thread> threads;
    for (std::uint32_t each = 0; each < sleepers; ++each) threads.emplace_back([&] { wait_while(word, 0); });
    word.store(1);
    EXPECT_LE(futex_wake_all(word), sleepers);
    for (chime::base::thread& each : threads) each.join();
}

TEST(futex, hands_a_ball_back_and_forth_without_losing_a_wake_up) {
    constexpr std::uint32_t rounds = 20'000;
    futex_word word{0};
    chime::base::thread other([&] {
        for (std::uint32_t ball = 0; ball < rounds; ++ball) {
            wait_while(word, 2 * ball);
            word.store(2 * ball + 2);
            futex_wake_one(word);
        }
    });
    for (std::uint32_t ball = 0; ball < rounds; ++ball) {
        word.store(2 * ball + 1);
        futex_wake_one(word);
        wait_while(word, 2 * ball + 1);
    }
    other.join();
    EXPECT_EQ(word.load(), 2 * rounds);
}

TEST(futex, calls_an_interruption_a_wake_up) {
    struct sigaction quiet {};
    quiet.sa_handler = [](int) {};  // Without SA_RESTART: the wait ends with EINTR.
    struct sigaction before {};
    ASSERT_EQ(sigaction(SIGUSR1, &quiet, &before), 0);

    futex_word word{0};
    atomic<bool> returned{false};
    chime::base::thread sleeper([&] {
        EXPECT_EQ(futex_wait(word, 0), futex_result::woken);
        returned.store(true);
    });
    // The sleeper may not be asleep yet, so one signal could come too early.
    while (!returned.load()) {
        ASSERT_EQ(pthread_kill(sleeper.native_handle(), SIGUSR1), 0);
        chime::base::yield_this_thread();
    }
    sleeper.join();
    ASSERT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
}

TEST(futex, keeps_its_deadline_through_a_storm_of_interruptions) {
    struct sigaction quiet {};
    quiet.sa_handler = [](int) {};
    struct sigaction before {};
    ASSERT_EQ(sigaction(SIGUSR1, &quiet, &before), 0);

    futex_word word{0};
    atomic<bool> returned{false};
    chime::base::thread sleeper([&] {
        const chime::time_point deadline = now() + 20ms;
        futex_result result = futex_result::woken;
        while (result == futex_result::woken) result = futex_wait(word, 0, deadline);
        EXPECT_EQ(result, futex_result::timed_out);
        EXPECT_GE(now(), deadline);
        returned.store(true);
    });
    while (!returned.load()) {
        ASSERT_EQ(pthread_kill(sleeper.native_handle(), SIGUSR1), 0);
        chime::base::yield_this_thread();
    }
    sleeper.join();
    ASSERT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
}
