// SPDX-License-Identifier: MIT
#pragma once

#include "support/contender.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace chime_bench {

/// A contender in a program that has a batch of events at hand and fetches what the next ones need, as far as the
/// contender lets it: its own array of timers or handles, and what these name.
template <class Contender>
class ahead : public Contender {
    static constexpr std::string_view suffix = ".ahead";
    static constexpr auto letters = [] {
        std::array<char, Contender::name.size() + suffix.size()> joined{};
        std::size_t end = 0;
        for (const std::string_view part : {Contender::name, suffix}) {
            for (const char letter : part) joined[end++] = letter;
        }
        return joined;
    }();

 public:
    static constexpr std::string_view name{letters.data(), letters.size()};
    static constexpr bool looks_ahead = true;

    using Contender::Contender;
};

}  // namespace chime_bench
