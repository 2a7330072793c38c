// SPDX-License-Identifier: MIT
#include "support/results.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <set>
#include <string_view>
#include <thread>

#include <sys/utsname.h>

namespace chime_bench {
namespace {

const row* find(const report& report, std::string_view workload, std::string_view contender, std::uint64_t n) {
    const auto found = std::find_if(report.rows.begin(), report.rows.end(), [&](const row& it) {
        return it.workload == workload && it.contender == contender && it.n == n;
    });
    return found == report.rows.end() ? nullptr : &*found;
}

std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        if (static_cast<unsigned char>(c) >= 0x20) result += c;
    }
    return result + '"';
}

std::string with_digits(double value, int digits) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.*f", digits, value);
    return text.data();
}

/// Three digits are what the measurement gives.
std::string short_number(double value) {
    return with_digits(value, value < 9.95 ? 1 : 0);
}

std::string power_of_ten(std::uint64_t n) {
    std::uint64_t rest = n;
    int exponent = 0;
    while (rest >= 10 && rest % 10 == 0) {
        rest /= 10;
        ++exponent;
    }
    return exponent < 3 ? std::to_string(n) : std::to_string(rest) + 'e' + std::to_string(exponent);
}

/// How wide a text is on the terminal: the multiplication sign takes two bytes and one column.
std::size_t columns(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string right_aligned(const std::string& text, std::size_t width) {
    return std::string(width - std::min(width, columns(text)), ' ') + text;
}

std::string cell(const report& report, std::string_view workload, std::string_view contender, std::uint64_t n) {
    const row* const it = find(report, workload, contender, n);
    if (it == nullptr) return "-";
    const row* const reference = find(report, workload, reference_contender, n);
    if (reference == nullptr) return short_number(it->median());
    return short_number(it->median()) + right_aligned("×" + short_number(reference->median() / it->median()), 6);
}

std::string first_line_with(const char* path, std::string_view key) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with(key)) continue;
        const auto colon = line.find(':');
        if (colon == std::string::npos) continue;
        const auto start = line.find_first_not_of(" \t", colon + 1);
        return start == std::string::npos ? std::string{} : line.substr(start);
    }
    return {};
}

std::string json_row(const row& it) {
    return "{\"workload\": " + quoted(it.workload) + ", \"contender\": " + quoted(it.contender) +
           ", \"n\": " + std::to_string(it.n) + ", \"threads\": " + std::to_string(it.threads) +
           ", \"unit\": \"ns\", \"median\": " + with_digits(it.median(), 2) + ", \"min\": " + with_digits(it.min(), 2) +
           ", \"repetitions\": " + std::to_string(it.nanoseconds.size()) + '}';
}

template <class Range, class Writer>
std::string json_array(const Range& range, Writer write) {
    std::string result = "[";
    std::string_view separator = "\n  ";
    for (const auto& it : range) {
        result += separator;
        result += write(it);
        separator = ",\n  ";
    }
    return result + "\n]";
}

}  // namespace

double row::median() const {
    const std::size_t middle = nanoseconds.size() / 2;
    if (nanoseconds.size() % 2 == 1) return nanoseconds[middle];
    return (nanoseconds[middle - 1] + nanoseconds[middle]) / 2;
}

void describe_surroundings(report& report) {
    std::string processor = first_line_with("/proc/cpuinfo", "model name");
    if (processor.empty()) processor = "unknown processor";
    utsname system{};
    uname(&system);
    report.machine = processor + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores, " +
                     static_cast<const char*>(system.sysname) + ' ' + static_cast<const char*>(system.release);
#if defined(__clang__)
    report.compiler = "clang " __clang_version__;
#else
    report.compiler = "g++ " __VERSION__;
#endif
    const std::time_t now = std::time(nullptr);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%d", std::gmtime(&now));
    report.date = text.data();
}

std::string as_table(const report& report, std::size_t width) {
    std::set<std::uint64_t> sizes;
    for (const row& it : report.rows) sizes.insert(it.n);

    constexpr std::size_t label_width = 24;
    std::string text;
    std::size_t first = 0;
    while (first < report.contenders.size()) {
        std::size_t last = first;
        std::vector<std::size_t> widths;
        for (std::size_t used = label_width; last < report.contenders.size(); ++last) {
            widths.push_back(std::max<std::size_t>(report.contenders[last].name.size(), 12) + 2);
            used += widths.back();
            if (used > width && last > first) break;
        }
        text += std::string(label_width, ' ');
        for (std::size_t i = first; i < last; ++i) text += right_aligned(report.contenders[i].name, widths[i - first]);
        text += '\n';
        for (const workload_facts& workload : report.workloads) {
            for (const std::uint64_t n : sizes) {
                std::string line = workload.name;
                line += std::string(18 - std::min<std::size_t>(18, line.size()), ' ') + power_of_ten(n);
                line += std::string(label_width - std::min(label_width, line.size()), ' ');
                bool any = false;
                for (std::size_t i = first; i < last; ++i) {
                    const std::string& contender = report.contenders[i].name;
                    any = any || find(report, workload.name, contender, n) != nullptr;
                    line += right_aligned(cell(report, workload.name, contender, n), widths[i - first]);
                }
                if (any) text += line + '\n';
            }
        }
        text += '\n';
        first = last;
    }
    return text;
}

std::string as_json_rows(const report& report) {
    return json_array(report.rows, json_row) + '\n';
}

std::string as_json_report(const report& report) {
    std::string text = "{\"machine\": " + quoted(report.machine) + ",\n\"compiler\": " + quoted(report.compiler) +
                       ",\n\"date\": " + quoted(report.date) + ",\n\"reference\": " + quoted(reference_contender) +
                       ",\n\"complete\": " + (report.complete ? "true" : "false");
    text += ",\n\"contenders\": " + json_array(report.contenders, [](const contender_facts& it) {
                return "{\"name\": " + quoted(it.name) + ", \"version\": " + quoted(it.version) +
                       ", \"clock_reads\": " + quoted(it.clock_reads) + '}';
            });
    text += ",\n\"workloads\": " + json_array(report.workloads, [](const workload_facts& it) {
                return "{\"name\": " + quoted(it.name) + ", \"one_operation\": " + quoted(it.one_operation) + '}';
            });
    text += ",\n\"early\": " + json_array(report.rows, [](const row& it) { return with_digits(it.early, 4); });
    return text + ",\n\"rows\": " + json_array(report.rows, json_row) + "}\n";
}

}  // namespace chime_bench
