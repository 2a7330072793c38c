// SPDX-License-Identifier: MIT
#include "soak/options.hpp"

#include <charconv>
#include <random>
#include <string_view>

namespace chime::soak {

namespace {

template <class Number>
bool read_number(std::string_view text, Number least, Number most, Number& into) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) return false;
    into = value;
    return true;
}

}  // namespace

const char* usage() noexcept {
    return "usage: chime_soak [--seconds N] [--seed S] [--help]\n"
           "\n"
           "Two loops and a runtime under all that users can do to them, from several threads, with stuck callbacks, signals,\n"
           "workers that come and go, a clock that jumps and memory that is refused for some milliseconds. Every few seconds\n"
           "all comes to rest, and the books are checked.\n"
           "\n"
           "  --seconds N   how long, 1 to 604800 (60)\n"
           "  --seed S      what the threads draw their steps from, 1 or more (drawn, and printed)\n"
           "\n"
           "Ctrl-C stops with a summary. Exit code: 0 every promise was kept, 1 one was broken, 2 wrong options, 130 stopped\n"
           "by Ctrl-C with every promise kept so far.\n";
}

std::optional<options> read_options(int count, char** words, std::string& problem) {
    options result;
    for (int position = 1; position < count; ++position) {
        const std::string_view word = words[position];
        if (word == "--help" || word == "-h") {
            result.wants_help = true;
            continue;
        }
        if (word != "--seconds" && word != "--seed") {
            problem = "there is no option '" + std::string(word) + "'";
            return std::nullopt;
        }
        if (++position == count) {
            problem = std::string(word) + " needs a number after it";
            return std::nullopt;
        }
        const bool is_read = word == "--seconds"
                                 ? read_number(words[position], 1U, 604'800U, result.seconds)
                                 : read_number(words[position], std::uint64_t{1}, ~std::uint64_t{0}, result.seed);
        if (!is_read) {
            problem = std::string(word) + " is '" + words[position] + "'; give a number from 1" +
                      (word == "--seconds" ? " to 604800" : " on");
            return std::nullopt;
        }
    }
    if (result.seed == 0) result.seed = std::random_device{}() % 1'000'000 + 1;
    return result;
}

}  // namespace chime::soak
