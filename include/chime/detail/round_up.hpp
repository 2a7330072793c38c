// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <numeric>
#include <ratio>
#include <system_error>
#include <type_traits>

// The arithmetic behind chime::round_up: count × Period ÷ Target, towards plus infinity, exact, saturating.
//
// std::chrono::ceil cannot be used: it overflows silently for long durations, it is undefined for infinities and NaN,
// and std::ratio refuses to compile for the longest periods. Here magnitudes are unsigned 128-bit numbers, and every
// product is compared with its limit before it is formed.

namespace chime {
inline namespace v0 {
namespace detail::rounding {

__extension__ using uint128 = unsigned __int128;
__extension__ using int128 = __int128;

template <class Rep>
inline constexpr bool is_floating = std::is_floating_point_v<Rep>;

// The compiler's own 128-bit integers count as integers for the standard library only in its GNU mode.
template <class Rep>
inline constexpr bool is_whole = std::is_integral_v<Rep> || std::is_same_v<std::remove_cv_t<Rep>, int128> ||
                                 std::is_same_v<std::remove_cv_t<Rep>, uint128>;

inline constexpr std::int64_t longest = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t shortest = std::numeric_limits<std::int64_t>::min();

/// The first magnitude that is too long: one more than `longest`, and that of `shortest`.
inline constexpr uint128 too_long = uint128{1} << 63U;

/// Period ÷ Target in lowest terms. A std::ratio would overflow, for exaseconds in nanoseconds for one.
struct scale {
    uint128 multiplier;  ///< Below 2^93 for nanoseconds.
    std::uint64_t divisor;
};

template <class Period, class Target>
constexpr scale scale_between() noexcept {
    static_assert(Target::num == 1, "the target is a fraction of a second");
    // Both ratios are in lowest terms, so the only common factors are those of Target::den and Period::den.
    const std::intmax_t common = std::gcd(Target::den, Period::den);
    return {static_cast<uint128>(Period::num) * static_cast<uint128>(Target::den / common),
            static_cast<std::uint64_t>(Period::den / common)};
}

constexpr uint128 divide(uint128 dividend, uint128 divisor, bool upwards) noexcept {
    const uint128 quotient = dividend / divisor;
    return upwards && quotient * divisor != dividend ? quotient + 1 : quotient;
}

/// The number with this sign and magnitude, or the nearest that there is.
constexpr std::int64_t with_sign(uint128 magnitude, bool negative) noexcept {
    if (magnitude >= too_long) return negative ? shortest : longest;
    const std::int64_t value = static_cast<std::int64_t>(magnitude);
    return negative ? -value : value;
}

/// magnitude × by, saturated and with its sign. Upwards means away from zero for positive counts and towards it for
/// negative ones.
constexpr std::int64_t scale_whole(uint128 magnitude, bool negative, scale by) noexcept {
    const uint128 limit = too_long * by.divisor;  // Below 2^126.
    if (magnitude > limit / by.multiplier) return negative ? shortest : longest;
    return with_sign(divide(magnitude * by.multiplier, by.divisor, !negative), negative);
}

/// A magnitude as significand × 2^exponent, the significand having its highest bit set.
struct binary {
    std::uint64_t significand;
    int exponent;
};

/// Takes `value` apart, which lies in [2^-128, 2^128). Scaling by powers of two is exact in this range.
template <class Floating>
constexpr binary take_apart(Floating value) noexcept {
    constexpr Floating two_63 = Floating{4294967296} * 2147483648;
    constexpr Floating two_64 = two_63 * 2;
    constexpr struct {
        int exponent;
        Floating power;
    } steps[] = {
        {128, two_64 * two_64}, {64, two_64}, {32, 4294967296}, {16, 65536}, {8, 256}, {4, 16}, {2, 4}, {1, 2}};

    value *= two_63 * two_64 * two_64;  // Now in [2^63, 2^319): only divisions are left to do.
    int exponent = -191;
    for (const auto& step : steps) {
        if (value >= two_63 * step.power) {
            value /= step.power;
            exponent += step.exponent;
        }
    }
    return {static_cast<std::uint64_t>(value), exponent};
}

/// value × by, saturated and with its sign.
constexpr std::int64_t scale_binary(binary value, bool negative, scale by) noexcept {
    const bool upwards = !negative;
    // Powers of two go into the exponent, which leaves a multiplier of 64 bits for every period up to 580 years and for
    // all of std::ratio's own. What is longer and odder still is rounded, in the right direction.
    while (by.multiplier % 2 == 0) {
        by.multiplier /= 2;
        ++value.exponent;
    }
    for (; by.multiplier > std::numeric_limits<std::uint64_t>::max(); ++value.exponent) {
        by.multiplier = divide(by.multiplier, 2, upwards);
    }
    uint128 magnitude = value.significand * by.multiplier;
    if (value.exponent > 0) {
        // Below 2^126, so a shift by as much leaves nothing, and the highest bit of the significand saturates.
        const uint128 limit = too_long * by.divisor;
        if (value.exponent >= 126 || magnitude > limit >> value.exponent) return negative ? shortest : longest;
        magnitude <<= value.exponent;
    } else if (value.exponent > -128) {
        magnitude = divide(magnitude, uint128{1} << -value.exponent, upwards);
    } else {
        magnitude = upwards ? 1 : 0;
    }
    // Rounding twice in one direction is rounding once: ceil(ceil(x / a) / b) = ceil(x / (a × b)) for whole a and b.
    return with_sign(divide(magnitude, by.divisor, upwards), negative);
}

template <class Floating>
constexpr std::int64_t round_up_floating(Floating count, scale by) {
    if (count != count) {  // NOLINT(misc-redundant-expression): true for NaN alone.
        throw std::system_error(std::make_error_code(std::errc::invalid_argument),
                                "chime: a duration is not a number (NaN); pass a finite or infinite one");
    }
    const bool negative = count < 0;
    const Floating magnitude = negative ? -count : count;
    constexpr Floating two_64 = Floating{4294967296} * 4294967296;
    constexpr Floating huge = two_64 * two_64;
    if (magnitude == 0) return 0;
    if (magnitude >= huge) return negative ? shortest : longest;  // The divisor is below 2^63.
    if (magnitude < 1 / huge) return negative ? 0 : 1;            // The multiplier is below 2^93.
    return scale_binary(take_apart(magnitude), negative, by);
}

/// `count` periods in targets, towards plus infinity, saturating.
template <class Rep, class Period, class Target>
constexpr std::int64_t round_up(Rep count) noexcept(!is_floating<Rep>) {
    static_assert(is_floating<Rep> || is_whole<Rep>,
                  "chime takes durations counted in integers or floating-point numbers");
    constexpr scale by = scale_between<Period, Target>();
    if constexpr (is_floating<Rep>) {
        // A float does not reach 2^319, a double does.
        using at_least_double = std::conditional_t<std::is_same_v<std::remove_cv_t<Rep>, float>, double, Rep>;
        return round_up_floating(static_cast<at_least_double>(count), by);
    } else {
        bool negative = false;
        if constexpr (!std::is_unsigned_v<Rep>) negative = count < 0;
        // Unsigned arithmetic: the magnitude of the smallest number is not representable with a sign.
        const uint128 bits = static_cast<uint128>(count);
        return scale_whole(negative ? uint128{0} - bits : bits, negative, by);
    }
}

}  // namespace detail::rounding
}  // namespace v0
}  // namespace chime
