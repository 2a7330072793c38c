// SPDX-License-Identifier: MIT
#include "support/options.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>

namespace chime_bench {
namespace {

std::vector<std::string> split(std::string_view text) {
    std::vector<std::string> parts;
    while (true) {
        const auto comma = text.find(',');
        parts.emplace_back(text.substr(0, comma));
        if (comma == std::string_view::npos) return parts;
        text.remove_prefix(comma + 1);
    }
}

std::string joined(const std::vector<std::string>& names, std::string_view separator) {
    std::string text;
    for (const std::string& name : names) {
        if (!text.empty()) text += separator;
        text += name;
    }
    return text;
}

std::optional<std::uint64_t> to_number(std::string_view text, std::uint64_t least, std::uint64_t most) {
    std::uint64_t number = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc{} || end != text.data() + text.size() || number < least || number > most) return {};
    return number;
}

/// Names one by one against the list of those there are.
std::string unknown_name(std::string_view kind, const std::vector<std::string>& asked,
                         const std::vector<std::string>& known) {
    for (const std::string& name : asked) {
        if (std::find(known.begin(), known.end(), name) == known.end()) {
            return "there is no " + std::string(kind) + " '" + name + "'; there are " + joined(known, ", ");
        }
    }
    return {};
}

class parser {
 public:
    parser(int count, const char* const* arguments) : arguments_(arguments, arguments + count) {}

    options parse(const std::vector<std::string>& workloads, const std::vector<std::string>& contenders) {
        while (++position_ < arguments_.size() && result_.error.empty()) parse_one(workloads, contenders);
        return result_;
    }

 private:
    void parse_one(const std::vector<std::string>& workloads, const std::vector<std::string>& contenders) {
        const std::string option = arguments_[position_];
        if (option == "--quick") {
            result_.quick = true;
        } else if (option == "--help" || option == "-h") {
            result_.help = true;
        } else if (option == "--workloads") {
            result_.workloads = split(value());
            complain(unknown_name("workload", result_.workloads, workloads));
        } else if (option == "--contenders") {
            result_.contenders = split(value());
            complain(unknown_name("contender", result_.contenders, contenders));
        } else if (option == "--n") {
            for (const std::string& text : split(value()))
                result_.sizes.push_back(number(option, text, 64, 100'000'000));
        } else if (option == "--threads") {
            for (const std::string& text : split(value()))
                result_.threads.push_back(static_cast<unsigned>(number(option, text, 1, 64)));
        } else if (option == "--repetitions") {
            result_.repetitions = static_cast<unsigned>(number(option, value(), 1, 1'000));
        } else if (option == "--seed") {
            result_.seed = number(option, value(), 0, UINT64_MAX);
        } else if (option == "--json") {
            result_.json_path = value();
        } else if (option == "--others") {
            result_.others_path = value();
        } else if (option == "--report") {
            result_.report_path = value();
        } else {
            complain("there is no option '" + option +
                     "'; there are --quick, --workloads, --contenders, --n, --threads, --repetitions, --seed, --json, "
                     "--report, "
                     "--others, --help");
        }
    }

    void complain(const std::string& text) {
        if (result_.error.empty()) result_.error = text;
    }

    std::string value() {
        if (position_ + 1 < arguments_.size()) return arguments_[++position_];
        complain(arguments_[position_] + " wants a value after it");
        return {};
    }

    std::uint64_t number(std::string_view option, const std::string& text, std::uint64_t least, std::uint64_t most) {
        const auto parsed = to_number(text, least, most);
        if (parsed) return *parsed;
        complain(std::string(option) + " wants whole numbers from " + std::to_string(least) + " to " +
                 std::to_string(most) + ", not '" + text + '\'');
        return least;
    }

    std::vector<std::string> arguments_;
    std::size_t position_ = 0;
    options result_;
};

}  // namespace

options parse(int count, const char* const* arguments, const std::vector<std::string>& workloads,
              const std::vector<std::string>& contenders) {
    return parser(count, arguments).parse(workloads, contenders);
}

std::string help_text(const std::vector<std::string>& workloads, const std::vector<std::string>& contenders) {
    return "usage: chime_bench [--quick] [--workloads a,b] [--contenders x,y] [--n 1000,100000] [--threads 1,2]\n"
           "                   [--repetitions K] [--seed S] [--json FILE] [--report FILE] [--others FOLDER]\n"
           "\n"
           "Runs every workload with every contender, in random order, and prints the medians.\n"
           "\n"
           "  --quick            N = 1000, 100000, 1000000 with 3 repetitions, instead of N up to 10000000 with 5\n"
           "  --workloads a,b    only these of: " +
           joined(workloads, ", ") +
           "\n"
           "  --contenders x,y   only these of: " +
           joined(contenders, ", ") +
           "\n"
           "  --n 1000,100000    these numbers of pending timers instead\n"
           "  --threads 1,2      these numbers of threads instead, where a workload is about threads\n"
           "  --repetitions K    this many runs of each instead\n"
           "  --seed S           of the slots and delays drawn (1)\n"
           "  --json FILE        writes the rows there\n"
           "  --others FOLDER    where the contenders are that are programs of their own: go, tokio\n"
           "  --report FILE      writes the rows and all that report.py needs to draw them there\n"
           "\n"
           "Exit codes: 0 all well, 1 a contender gave a wrong answer, 2 bad command line, 130 interrupted; what was\n"
           "measured until then is printed and written.\n";
}

}  // namespace chime_bench
