// SPDX-License-Identifier: MIT
//
// What a timer can call: functions of every size and kind, and those that it refuses.
#include "support/ledger.hpp"
#include "support/refusal.hpp"
#include "support/witness.hpp"

#include <chime/io_context.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

TEST(timer_function, that_is_empty_is_refused_by_every_call) {
    testing::virtual_context context;
    timers& timers = context->timers();
    const std::function<void()> empty;
    void (*const nothing)() = nullptr;
    const auto are_refused = [&](auto&& function) {
        expect_refused(errc::empty_function, [&] { timers.after(1s, function); });
        expect_refused(errc::empty_function, [&] { timers.at(time_point{}, function); });
        expect_refused(errc::empty_function, [&] { timers.every(1s, missed_ticks::skip, function); });
        expect_refused(errc::empty_function, [&] { static_cast<void>(timers.try_after(1s, function)); });
        expect_refused(errc::empty_function, [&] { static_cast<void>(timers.try_at(time_point{}, function)); });
        expect_refused(errc::empty_function,
                       [&] { static_cast<void>(timers.try_every(1s, missed_ticks::skip, function)); });
        expect_refused(errc::empty_function, [&] { context->post(function); });
        expect_refused(errc::empty_function, [&] { static_cast<void>(context->cpu_pool().submit(function)); });
    };
    are_refused(empty);
    are_refused(nothing);
    EXPECT_EQ(timers.stats().armed, 0U);
    EXPECT_EQ(context.run(), 0U);
    check_ledger_at_rest(*context);
}

int free_calls = 0;
void free_function() {
    ++free_calls;
}

TEST(timer_function, may_be_a_function_pointer_a_std_function_or_something_that_can_only_be_moved) {
    testing::virtual_context context;
    timers& timers = context->timers();
    free_calls = 0;
    int ran = 0;
    timers.after(1s, &free_function);
    timers.after(1s, std::function<void()>([&] { ++ran; }));
    timers.after(1s, [&, kept = std::make_unique<int>(7)] { ran += *kept; });
    timers.after(1s, [&ran]() mutable { return ++ran; });  // What it returns is nobody's business.
    const auto named = [&] { ++ran; };
    timers.after(1s, named);
    timers.after(1s, std::ref(named));
    timers.after(1s, [] {});
    EXPECT_EQ(context.run(), 7U);
    EXPECT_EQ(free_calls, 1);
    EXPECT_EQ(ran, 11);
    check_ledger_at_rest(*context);
}

template <std::size_t Bytes>
void run_with_bytes() {
    testing::virtual_context context;
    witness_report report;
    std::array<unsigned char, Bytes> bytes{};
    for (std::size_t place = 0; place < Bytes; ++place) bytes[place] = static_cast<unsigned char>(place);
    int ran = 0;
    const auto make = [&] {
        return [bytes, &ran, kept = witness(report)] {
            ++ran;
            for (std::size_t place = 0; place < Bytes; ++place) {
                ASSERT_EQ(bytes[place], static_cast<unsigned char>(place));
            }
        };
    };
    context->timers().after(1s, make());
    context->post(make());
    const timer_handle cancelled = context->timers().after(1s, make());
    EXPECT_EQ(report.ends, 0);
    EXPECT_EQ(context->timers().cancel(cancelled), cancel_result::cancelled);
    EXPECT_EQ(report.ends, 1);
    context.run();
    EXPECT_EQ(ran, 2);
    EXPECT_EQ(report.ends, 3) << Bytes << " bytes";
    check_ledger_at_rest(*context);
}

TEST(timer_function, may_be_of_any_size) {
    run_with_bytes<1>();
    run_with_bytes<8>();
    run_with_bytes<16>();
    run_with_bytes<17>();
    run_with_bytes<100>();
    run_with_bytes<1000>();
    run_with_bytes<100'000>();
    run_with_bytes<1'000'000>();
}

struct alignas(16) aligned_function {
    void operator()() const { is_aligned = reinterpret_cast<std::uintptr_t>(this) % 16 == 0; }
    bool& is_aligned;
};

TEST(timer_function, is_aligned_as_it_wants_to_be) {
    testing::virtual_context context;
    bool in_place = false;
    bool elsewhere = false;
    context->timers().after(1s, aligned_function{in_place});
    context->timers().after(1s, [bulk = std::array<char, 100>(), inner = aligned_function{elsewhere}] {
        static_cast<void>(bulk);
        inner();
    });
    context.run();
    EXPECT_TRUE(in_place);
    EXPECT_TRUE(elsewhere);
    check_ledger_at_rest(*context);
}

template <std::size_t Bytes>
struct throws_when_moved {
    explicit throws_when_moved(witness_report& report) : kept(report) {}
    throws_when_moved(const throws_when_moved& other) : kept(other.kept) { throw std::runtime_error("from a copy"); }
    void operator()() const {}
    std::reference_wrapper<witness_report> kept;
    std::array<char, Bytes> bytes{};
};

TEST(timer_function, whose_constructor_throws_leaves_nothing_behind) {
    // One record only: if it were lost, the last line could not be accepted.
    testing::virtual_context context({.max_timers = 1});
    timers& timers = context->timers();
    witness_report report;
    const throws_when_moved<1> small(report);
    const throws_when_moved<1000> large(report);
    const auto try_all = [&] {
        for (int round = 0; round < 3; ++round) {
            EXPECT_THROW(timers.after(1s, small), std::runtime_error);
            EXPECT_THROW(timers.after(1s, large), std::runtime_error);
            EXPECT_THROW(timers.every(1s, missed_ticks::skip, small), std::runtime_error);
            EXPECT_THROW(static_cast<void>(timers.try_at(time_point{}, large)), std::runtime_error);
            EXPECT_THROW(context->post(small), std::runtime_error);
            EXPECT_THROW(context->post(large), std::runtime_error);
        }
    };
    try_all();
    EXPECT_EQ(context.run(), 0U);
    EXPECT_EQ(timers.stats().armed, 0U);
    EXPECT_EQ(timers.stats().pending, 0U);
    int ran = 0;
    timers.after(1s, [&] { ++ran; });
    context.run();
    EXPECT_EQ(ran, 1);
    check_ledger_at_rest(*context);
}

TEST(timer_function, that_is_large_may_be_copied_although_that_could_throw) {
    testing::virtual_context context;
    int ran = 0;
    const auto large = [&ran, numbers = std::vector<int>(100, 7), bytes = std::array<char, 100>{}] {
        ran += numbers.back() + bytes.back();
    };
    context->timers().after(1s, large);
    context->timers().after(2s, large);
    context.run();
    EXPECT_EQ(ran, 14);
    check_ledger_at_rest(*context);
}

TEST(timer_function, may_arm_the_next_one_for_ever_in_one_record) {
    testing::virtual_context context({.max_timers = 2});
    struct relay {
        void operator()() const {
            if (--left > 0) home.after(1ms, *this);
        }
        timers& home;
        int& left;
    };
    int left = 10'000;
    context->timers().after(1ms, relay{context->timers(), left});
    context.run();
    EXPECT_EQ(left, 0);
    EXPECT_EQ(context.now(), time_point{} + 10'000ms);
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
