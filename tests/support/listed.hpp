// SPDX-License-Identifier: MIT
//
// How many timers are pending, by a walk over all records and slots.
#pragma once

#include <chrono>
#include <cstdint>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

namespace chime::test {

/// What dump_pending() finds: "chime context 1: 2 timers, 5 tasks (3 asleep)" are five.
template <class Context>
std::uint64_t count_pending(const Context& context) {
    std::ostringstream out;
    context.dump_pending(out);
    const std::string text = std::move(out).str();
    const std::string headline = text.substr(0, text.find('\n'));
    const std::size_t timers = headline.find(": ");
    const std::size_t asleep = headline.find('(');
    if (timers == std::string::npos) return ~std::uint64_t{0};
    return std::stoull(headline.substr(timers + 2)) +
           (asleep == std::string::npos ? 0 : std::stoull(headline.substr(asleep + 1)));
}

/// Is what is counted what the records say? Where a task is about to sleep one of the two is ahead, for a moment.
template <class Context, class CountPending>
bool is_count_listed(const Context& context, const CountPending& counted) {
    for (int looks = 0; looks < 1'000; ++looks) {
        if (counted() == count_pending(context)) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return false;
}

}  // namespace chime::test
