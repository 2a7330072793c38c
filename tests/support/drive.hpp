// SPDX-License-Identifier: MIT
//
// Drives a wheel by hand and remembers what fired.
#pragma once

#include <chime/wheel.hpp>

#include <cstddef>
#include <utility>
#include <vector>

#include "support/virtual_time.hpp"
#include "support/wheel_audit.hpp"

namespace chime::test {

/// The configuration that most tests want: a start and a resolution, and little patience with stale tickets.
inline wheel_config wheel_at(time_point start, std::int64_t resolution_ns = 1 << 18) {
    wheel_config config;
    config.start = start;
    config.resolution = nanoseconds(resolution_ns);
    config.stale_slack = 64;
    return config;
}

/// Advances once and gives the values that fired, in order.
template <class Wheel>
auto fire(Wheel& wheel, time_point now, std::size_t budget = Wheel::unlimited) {
    std::vector<typename Wheel::value_type> fired;
    wheel.advance(
        now, [&](typename Wheel::value_type&& value) { fired.push_back(std::move(value)); }, budget);
    return fired;
}

/// Advances with this budget as often as `next_deadline` asks for it.
template <class Wheel>
auto fire_all(Wheel& wheel, time_point now, std::size_t budget = Wheel::unlimited) {
    std::vector<typename Wheel::value_type> fired;
    do {
        wheel.advance(
            now, [&](typename Wheel::value_type&& value) { fired.push_back(std::move(value)); }, budget);
    } while (wheel.next_deadline() && *wheel.next_deadline() <= wheel.now());
    return fired;
}

template <class Wheel>
std::string audit(const Wheel& wheel) {
    return detail::wheel_audit::check(wheel);
}

}  // namespace chime::test
