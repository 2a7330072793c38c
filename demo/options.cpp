// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace chime_demo {
namespace {

constexpr std::uint64_t most_seconds = 3'600;
constexpr std::uint64_t most_sleepers = 10'000'000;
constexpr std::uint64_t most_workers = 64;

class parser {
 public:
    parser(int count, const char* const* arguments) : arguments_(arguments + 1, arguments + count) {}

    options parse() {
        for (; position_ < arguments_.size() && result_.error.empty() && !result_.help; ++position_) {
            parse_one(arguments_[position_]);
        }
        if (result_.workers == 0) result_.workers = std::clamp(std::thread::hardware_concurrency(), 1U, 64U);
        return result_;
    }

 private:
    void parse_one(std::string_view name) {
        if (name == "--help" || name == "-h") {
            result_.help = true;
        } else if (name == "--seconds") {
            result_.duration = std::chrono::seconds{number(name, most_seconds)};
        } else if (name == "--sleepers") {
            result_.sleepers = number(name, most_sleepers);
        } else if (name == "--workers") {
            result_.workers = static_cast<unsigned>(number(name, most_workers));
        } else if (name == "--json") {
            result_.json_path = value(name);
        } else {
            result_.error = "there is no option '" + std::string(name) + "'";
        }
    }

    std::string value(std::string_view name) {
        if (position_ + 1 < arguments_.size()) return arguments_[++position_];
        result_.error = std::string(name) + " needs a value after it";
        return {};
    }

    std::uint64_t number(std::string_view name, std::uint64_t most) {
        const std::string text = value(name);
        std::uint64_t parsed = 0;
        const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), parsed);
        const bool is_number = failure == std::errc{} && end == text.data() + text.size();
        if (result_.error.empty() && (!is_number || parsed < 1 || parsed > most)) {
            result_.error = std::string(name) + " is '" + text + "'; give a number from 1 to " + std::to_string(most);
        }
        return parsed;
    }

    std::vector<std::string> arguments_;
    std::size_t position_ = 0;
    options result_;
};

}  // namespace

options parse(int count, const char* const* arguments) {
    return parser(count, arguments).parse();
}

std::string usage_line() {
    return "usage: chime_demo [--seconds S] [--sleepers N] [--workers W] [--json FILE] [--help]";
}

std::string help_text() {
    return usage_line() + "\n\n"
                          "Starts N coroutines that sleep up to S seconds each, arms as many timeouts from threads\n"
                          "that are no workers and cancels most of them from others, and sends workers away and\n"
                          "takes on new ones meanwhile. Then it gives the same sleepers and timeouts to Boost.Asio,\n"
                          "shows the numbers side by side, and says whether every promise was kept.\n\n"
                          "  --seconds S    the longest sleep, 1 to 3600 (10)\n"
                          "  --sleepers N   how many coroutines, 1 to 10000000 (1000000)\n"
                          "  --workers W    how many workers, 1 to 64 (as many as processors)\n"
                          "  --json FILE    writes the numbers there\n\n"
                          "Ctrl-C stops with partial results. Exit code: 0 every promise was kept, 1 one was broken,\n"
                          "2 wrong options, 130 stopped by Ctrl-C.\n";
}

}  // namespace chime_demo
