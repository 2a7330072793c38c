// SPDX-License-Identifier: MIT
#include "results.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace chime_demo {
namespace {

constexpr std::uint64_t parts = 8;  // Of a power of two.

}  // namespace

std::size_t lateness::bucket_of(std::chrono::nanoseconds late) noexcept {
    const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(late.count(), 0));
    if (ns < parts) return ns;
    const auto power = static_cast<std::size_t>(std::bit_width(ns)) - 4;  // So that ns >> power is 8 to 15.
    return std::min(bucket_count - 1, (power + 1) * parts + ((ns >> power) - parts));
}

std::chrono::nanoseconds lateness::end_of(std::size_t bucket) noexcept {
    if (bucket < parts) return std::chrono::nanoseconds{bucket + 1};
    return std::chrono::nanoseconds{(bucket % parts + parts + 1) << (bucket / parts - 1)};
}

std::uint64_t lateness::count() const noexcept {
    return std::accumulate(buckets.begin(), buckets.end(), std::uint64_t{0});
}

std::uint64_t lateness::count_below(std::chrono::nanoseconds limit) const noexcept {
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < bucket_count && end_of(i) <= limit; ++i) below += buckets[i];
    return below;
}

std::chrono::nanoseconds lateness::quantile(double fraction) const noexcept {
    const std::uint64_t all = count();
    if (all == 0) return {};
    const auto wanted = static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(all)));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < bucket_count; ++i) {
        seen += buckets[i];
        if (seen >= wanted && seen > 0) return end_of(i);
    }
    return end_of(bucket_count - 1);
}

}  // namespace chime_demo
