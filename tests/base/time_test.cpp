// SPDX-License-Identifier: MIT
#include <chime/time.hpp>

#include <cfloat>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <ratio>
#include <string>
#include <system_error>

#include <gtest/gtest.h>

#include "support/random.hpp"

namespace {

using namespace std::chrono_literals;
using chime::deadline_after;
using chime::duration;
using chime::never;
using chime::round_up;
using chime::time_point;
using chime::detail::rounding::int128;
using chime::detail::rounding::uint128;

using attoseconds = std::chrono::duration<std::int64_t, std::atto>;
using picoseconds = std::chrono::duration<std::int64_t, std::pico>;
using exaseconds = std::chrono::duration<std::int64_t, std::exa>;
using seconds_f = std::chrono::duration<float>;
using seconds_d = std::chrono::duration<double>;
using seconds_ld = std::chrono::duration<long double>;
using nanoseconds_d = std::chrono::duration<double, std::nano>;

constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t int64_min = std::numeric_limits<std::int64_t>::min();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

constexpr time_point at(std::int64_t since_epoch_ns) {
    return time_point{duration{since_epoch_ns}};
}

/// The two numbers that make a period are the rarest of their kind: large, and without a common factor.
using odd_long_period = std::ratio<9223372036854775783, 2>;
using odd_short_period = std::ratio<2, 9223372036854775783>;

/// The same, but the compiler cannot know.
template <class Rep, class Period>
std::chrono::duration<Rep, Period> unforeseen(std::chrono::duration<Rep, Period> delay) {
    const volatile Rep count = delay.count();
    return std::chrono::duration<Rep, Period>{Rep{count}};
}

}  // namespace

TEST(round_up, keeps_what_is_representable) {
    static_assert(round_up(0ns) == 0ns);
    static_assert(round_up(1ns) == 1ns);
    static_assert(round_up(-1ns) == -1ns);
    static_assert(round_up(1500ms) == 1500ms);
    static_assert(round_up(-3h) == -3h);
    static_assert(round_up(duration::max()) == duration::max());
    static_assert(round_up(duration::min()) == duration::min());
    static_assert(round_up(std::chrono::years{200}) == std::chrono::years{200});
    static_assert(round_up(std::chrono::years{-200}) == std::chrono::years{-200});
}

TEST(round_up, takes_the_next_longer_one_for_what_lies_between) {
    static_assert(round_up(picoseconds{1}) == 1ns);
    static_assert(round_up(picoseconds{999}) == 1ns);
    static_assert(round_up(picoseconds{1000}) == 1ns);
    static_assert(round_up(picoseconds{1001}) == 2ns);
    static_assert(round_up(attoseconds{1}) == 1ns);
    static_assert(round_up(attoseconds{int64_max}) == 9'223'372'037ns);
    static_assert(round_up(std::chrono::duration<int, std::ratio<1, 3>>{1}) == 333'333'334ns);
    static_assert(round_up(std::chrono::duration<int, std::ratio<1, 60>>{1}) == 16'666'667ns);
}

TEST(round_up, goes_towards_zero_below_zero) {
    static_assert(round_up(picoseconds{-1}) == 0ns);
    static_assert(round_up(picoseconds{-999}) == 0ns);
    static_assert(round_up(picoseconds{-1000}) == -1ns);
    static_assert(round_up(picoseconds{-1999}) == -1ns);
    static_assert(round_up(attoseconds{int64_min}) == -9'223'372'036ns);
    static_assert(round_up(nanoseconds_d{-0.5}) == 0ns);
    static_assert(round_up(nanoseconds_d{-1.5}) == -1ns);
}

TEST(round_up, saturates_what_is_too_long) {
    static_assert(round_up(std::chrono::hours::max()) == duration::max());
    static_assert(round_up(std::chrono::hours::min()) == duration::min());
    static_assert(round_up(std::chrono::microseconds::max()) == duration::max());
    static_assert(round_up(std::chrono::microseconds::min()) == duration::min());
    static_assert(round_up(std::chrono::years::max()) == duration::max());
    static_assert(round_up(std::chrono::years{293}) == duration::max());
    static_assert(round_up(exaseconds{1}) == duration::max());
    static_assert(round_up(exaseconds{-1}) == duration::min());
    static_assert(round_up(exaseconds{0}) == 0ns);
    static_assert(round_up(exaseconds::max()) == duration::max());
    static_assert(round_up(exaseconds::min()) == duration::min());
}

TEST(round_up, saturates_exactly_at_the_limit) {
    // 2^63 − 1 ns is 9223372036854775.807 µs.
    static_assert(round_up(std::chrono::microseconds{9'223'372'036'854'775}).count() == 9'223'372'036'854'775'000);
    static_assert(round_up(std::chrono::microseconds{9'223'372'036'854'776}) == duration::max());
    static_assert(round_up(std::chrono::microseconds{-9'223'372'036'854'775}).count() == -9'223'372'036'854'775'000);
    static_assert(round_up(std::chrono::microseconds{-9'223'372'036'854'776}) == duration::min());
    static_assert(round_up(nanoseconds_d{0x1p63}) == duration::max());
    static_assert(round_up(nanoseconds_d{0x1.fffffffffffffp62}).count() == int64_max - 1023);
    static_assert(round_up(nanoseconds_d{-0x1p63}) == duration::min());
    static_assert(round_up(nanoseconds_d{-0x1.fffffffffffffp62}).count() == -(int64_max - 1023));
}

TEST(round_up, takes_every_width_and_sign_of_integer) {
    static_assert(round_up(std::chrono::duration<std::int8_t>{-128}) == -128s);
    static_assert(round_up(std::chrono::duration<std::uint8_t>{255}) == 255s);
    static_assert(round_up(std::chrono::duration<bool>{true}) == 1s);
    static_assert(round_up(std::chrono::duration<unsigned, std::nano>{4'294'967'295U}) == 4'294'967'295ns);
    using unsigned_nanoseconds = std::chrono::duration<std::uint64_t, std::nano>;
    static_assert(round_up(unsigned_nanoseconds{static_cast<std::uint64_t>(int64_max)}) == duration::max());
    static_assert(round_up(unsigned_nanoseconds{std::uint64_t{1} << 63U}) == duration::max());
    static_assert(round_up(unsigned_nanoseconds::max()) == duration::max());
    using wide_picoseconds = std::chrono::duration<int128, std::pico>;
    static_assert(round_up(wide_picoseconds{int128{int64_max} * 1000}) == duration::max());
    static_assert(round_up(wide_picoseconds{int128{int64_max} * 1000 - 1000}).count() == int64_max - 1);
    static_assert(round_up(wide_picoseconds{static_cast<int128>(uint128{1} << 127U)}) == duration::min());
}

TEST(round_up, takes_floating_point_exactly) {
    static_assert(round_up(seconds_d{0.0}) == 0ns);
    static_assert(round_up(seconds_d{-0.0}) == 0ns);
    static_assert(round_up(seconds_d{1.0}) == 1s);
    static_assert(round_up(seconds_d{-1.0}) == -1s);
    static_assert(round_up(seconds_d{0.5}) == 500ms);
    static_assert(round_up(seconds_f{0.25F}) == 250ms);
    static_assert(round_up(seconds_ld{3.0L}) == 3s);
    static_assert(round_up(std::chrono::duration<float, std::ratio<3600>>{1.5F}) == 90min);
    static_assert(round_up(std::chrono::duration<double, std::milli>{0.125}) == 125us);
}

TEST(round_up, is_never_shorter_than_a_fraction_that_binary_cannot_hold) {
    static_assert(round_up(seconds_d{0.1}) == 100'000'001ns, "a double's tenth is a little more than a tenth");
    static_assert(round_up(seconds_d{0.3}) == 300'000'000ns, "a double's three tenths are a little less");
    static_assert(round_up(seconds_f{0.1F}) == 100'000'002ns, "a float's tenth is 0.100000001490116");
    static_assert(round_up(nanoseconds_d{0.001}) == 1ns);
    static_assert(round_up(nanoseconds_d{1.0000000000000002}) == 2ns);
}

TEST(round_up, takes_the_ends_of_floating_point) {
    static_assert(round_up(seconds_d{infinity}) == duration::max());
    static_assert(round_up(seconds_d{-infinity}) == duration::min());
    static_assert(round_up(seconds_f{std::numeric_limits<float>::infinity()}) == duration::max());
    static_assert(round_up(seconds_ld{-std::numeric_limits<long double>::infinity()}) == duration::min());
    static_assert(round_up(seconds_d{DBL_MAX}) == duration::max());
    static_assert(round_up(seconds_d{-DBL_MAX}) == duration::min());
    static_assert(round_up(seconds_d{DBL_MIN}) == 1ns);
    static_assert(round_up(seconds_d{DBL_TRUE_MIN}) == 1ns);
    static_assert(round_up(seconds_d{-DBL_TRUE_MIN}) == 0ns);
    static_assert(round_up(seconds_f{FLT_MAX}) == duration::max());
    static_assert(round_up(seconds_f{FLT_TRUE_MIN}) == 1ns);
    static_assert(round_up(std::chrono::duration<double, std::atto>{DBL_MAX}) == duration::max());
    static_assert(round_up(std::chrono::duration<double, std::exa>{1e-18}) == 1'000'000'001ns,
                  "a little more than 1e-18");
    EXPECT_EQ(round_up(seconds_ld{LDBL_MAX}), duration::max());
    EXPECT_EQ(round_up(seconds_ld{LDBL_TRUE_MIN}), 1ns);
}

TEST(round_up, takes_periods_that_no_ratio_could_convert) {
    static_assert(round_up(std::chrono::duration<int, odd_long_period>{1}) == duration::max());
    static_assert(round_up(std::chrono::duration<int, odd_long_period>{-1}) == duration::min());
    static_assert(round_up(std::chrono::duration<int, odd_long_period>{0}) == 0ns);
    static_assert(round_up(std::chrono::duration<std::int64_t, odd_short_period>{int64_max}) == 2'000'000'001ns);
    static_assert(round_up(std::chrono::duration<int, odd_short_period>{1}) == 1ns);
    // This multiplier does not fit 64 bits and is rounded: still never shorter, and no longer than need be.
    static_assert(round_up(std::chrono::duration<double, odd_long_period>{0x1p-62}).count() >= 1'000'000'000);
    static_assert(round_up(std::chrono::duration<double, odd_long_period>{0x1p-62}).count() <= 1'000'000'001);
    static_assert(round_up(std::chrono::duration<double, odd_long_period>{-0x1p-62}).count() >= -1'000'000'000);
    static_assert(round_up(std::chrono::duration<double, odd_long_period>{infinity}) == duration::max());
    static_assert(round_up(std::chrono::duration<double, odd_short_period>{1.0}) == 1ns);
}

TEST(round_up, refuses_what_is_not_a_number) {
    const auto expect_refused = [](auto delay) {
        try {
            static_cast<void>(round_up(delay));
            FAIL() << "NaN was accepted";
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), std::errc::invalid_argument);
            EXPECT_NE(std::string(error.what()).find("NaN"), std::string::npos) << error.what();
        }
    };
    expect_refused(seconds_d{not_a_number});
    expect_refused(seconds_d{-not_a_number});
    expect_refused(seconds_f{std::numeric_limits<float>::quiet_NaN()});
    expect_refused(seconds_ld{std::numeric_limits<long double>::quiet_NaN()});
    EXPECT_THROW(static_cast<void>(deadline_after(at(0), seconds_d{not_a_number})), std::system_error);
}

TEST(round_up, answers_for_whole_numbers_at_run_time_what_the_compiler_answers) {
    EXPECT_EQ(round_up(unforeseen(picoseconds{1001})), 2ns);
    EXPECT_EQ(round_up(unforeseen(picoseconds{1000})), 1ns);
    EXPECT_EQ(round_up(unforeseen(picoseconds{-1999})), -1ns);
    EXPECT_EQ(round_up(unforeseen(std::chrono::nanoseconds::min())), duration::min());
    EXPECT_EQ(round_up(unforeseen(std::chrono::hours::max())), duration::max());
    EXPECT_EQ(round_up(unforeseen(std::chrono::hours::min())), duration::min());
    using unsigned_nanoseconds = std::chrono::duration<std::uint64_t, std::nano>;
    EXPECT_EQ(round_up(unforeseen(unsigned_nanoseconds{std::uint64_t{1} << 63U})), duration::max());
}

TEST(round_up, answers_for_floating_point_at_run_time_what_the_compiler_answers) {
    EXPECT_EQ(round_up(unforeseen(seconds_d{0.0})), 0ns);
    EXPECT_EQ(round_up(unforeseen(seconds_d{0.5})), 500ms);
    EXPECT_EQ(round_up(unforeseen(seconds_d{infinity})), duration::max());
    EXPECT_EQ(round_up(unforeseen(seconds_d{-infinity})), duration::min());
    EXPECT_EQ(round_up(unforeseen(seconds_d{DBL_TRUE_MIN})), 1ns);
    EXPECT_EQ(round_up(unforeseen(seconds_d{-DBL_TRUE_MIN})), 0ns);
    EXPECT_EQ(round_up(unforeseen(seconds_d{0x1p-127})), 1ns);
    EXPECT_EQ(round_up(unforeseen(seconds_d{-0x1p-127})), 0ns);
    EXPECT_EQ(round_up(unforeseen(seconds_d{0x1p100})), duration::max());
    EXPECT_EQ(round_up(unforeseen(seconds_d{-0x1p100})), duration::min());
    EXPECT_GE(round_up(unforeseen(std::chrono::duration<double, odd_long_period>{0x1p-62})), 1s);
    EXPECT_LE(round_up(unforeseen(std::chrono::duration<double, odd_long_period>{-0x1p-62})), -999'999'999ns);
}

TEST(round_up, takes_a_large_count_of_something_short) {
    // 2^90 attoseconds are 1237940039285380274.9 ns: the count has more bits than the answer.
    using attoseconds_d = std::chrono::duration<double, std::atto>;
    static_assert(round_up(attoseconds_d{0x1p90}) == 1'237'940'039'285'380'275ns);
    EXPECT_EQ(round_up(unforeseen(attoseconds_d{0x1p90})), 1'237'940'039'285'380'275ns);
    EXPECT_EQ(round_up(unforeseen(attoseconds_d{-0x1p90})), -1'237'940'039'285'380'274ns);
    EXPECT_EQ(round_up(unforeseen(attoseconds_d{0x1p93})), duration::max());
}

TEST(round_up, saturates_a_large_count_of_something_very_long) {
    using quarter_of_all_time = std::chrono::duration<double, std::ratio<std::int64_t{1} << 62U>>;
    static_assert(round_up(quarter_of_all_time{0x1p127}) == duration::max());
    EXPECT_EQ(round_up(unforeseen(quarter_of_all_time{0x1p127})), duration::max());
    EXPECT_EQ(round_up(unforeseen(quarter_of_all_time{-0x1p127})), duration::min());
}

TEST(round_up, throws_only_for_floating_point) {
    // Named first: making a duration may throw as far as the standard is concerned.
    constexpr time_point now;
    constexpr std::chrono::hours whole{1};
    constexpr seconds_d floating{1};
    static_assert(noexcept(round_up(whole))&& noexcept(deadline_after(now, whole)));
    static_assert(!noexcept(round_up(floating)) && !noexcept(deadline_after(now, floating)));
}

TEST(round_up, agrees_with_long_division_for_random_floating_point) {
    SCOPED_TRACE(chime::test::replay_hint());
    std::mt19937_64 random(chime::test::process_seed());
    for (int round = 0; round < 200'000; ++round) {
        // significand × 2^exponent seconds: below 2^33 seconds, so that nothing saturates, down to nothing.
        const std::uint64_t significand = random() >> 11U;
        const int exponent = -20 - static_cast<int>(random() % 100);
        const bool negative = random() % 2 == 0;
        const double value = std::ldexp(static_cast<double>(significand), exponent);

        const uint128 product = uint128{significand} * 1'000'000'000U;  // Below 2^83.
        const uint128 mask = (uint128{1} << -exponent) - 1;
        const std::int64_t floor = static_cast<std::int64_t>(product >> -exponent);
        const std::int64_t expected = negative ? -floor : floor + ((product & mask) != 0 ? 1 : 0);

        ASSERT_EQ(round_up(seconds_d{negative ? -value : value}).count(), expected)
            << significand << " * 2^" << exponent;
    }
}

TEST(deadline_after, counts_from_now) {
    static_assert(deadline_after(at(100), 5ns) == at(105));
    static_assert(deadline_after(at(100), seconds_d{0.5}) == at(500'000'100));
    static_assert(deadline_after(at(-100), 100ns) == at(0));
    static_assert(deadline_after(at(100), picoseconds{1}) == at(101), "never early: rounded up");
}

TEST(deadline_after, of_zero_or_less_is_now) {
    static_assert(deadline_after(at(100), 0ns) == at(100));
    static_assert(deadline_after(at(100), -1h) == at(100));
    static_assert(deadline_after(at(100), picoseconds{-1}) == at(100));
    static_assert(deadline_after(at(100), std::chrono::hours::min()) == at(100));
    static_assert(deadline_after(at(100), seconds_d{-infinity}) == at(100));
    static_assert(deadline_after(time_point::min(), -1ns) == time_point::min());
    static_assert(deadline_after(never, 0ns) == never);
}

TEST(deadline_after, saturates_to_never_and_never_means_soon) {
    static_assert(deadline_after(at(1), duration::max()) == never);
    static_assert(deadline_after(at(0), duration::max()) == never);
    static_assert(deadline_after(at(-1), duration::max()) == never, "as long as can be is never, wherever it begins");
    static_assert(deadline_after(time_point::min(), std::chrono::hours::max()) == never);
    static_assert(deadline_after(at(0), std::chrono::hours::max()) == never);
    static_assert(deadline_after(at(0), seconds_d{infinity}) == never);
    static_assert(deadline_after(at(int64_max - 5), 4ns) == at(int64_max - 1));
    static_assert(deadline_after(at(int64_max - 5), 5ns) == never);
    static_assert(deadline_after(at(int64_max - 5), 6ns) == never);
    static_assert(deadline_after(never, 1ns) == never);
}

TEST(deadline_after, answers_at_run_time_what_the_compiler_answers) {
    EXPECT_EQ(deadline_after(at(100), unforeseen(5ns)), at(105));
    EXPECT_EQ(deadline_after(at(100), unforeseen(-1ns)), at(100));
    EXPECT_EQ(deadline_after(at(-1), unforeseen(duration::max())), never);
    EXPECT_EQ(deadline_after(at(int64_max - 5), unforeseen(6ns)), never);
}
