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
#include <utility>

#include <sys/utsname.h>

namespace chime_bench {
namespace {

const row* find(const report& report, std::string_view workload, std::string_view contender, std::uint64_t n,
                unsigned threads) {
    const auto found = std::find_if(report.rows.begin(), report.rows.end(), [&](const row& it) {
        return it.workload == workload && it.contender == contender && it.n == n && it.threads == threads;
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
    return with_digits(value, value > -9.95 && value < 9.95 ? 1 : 0);
}

/// Large ones get a unit of their own, so that columns stay narrow.
std::string short_time(double ns) {
    if (ns >= 1e9) return short_number(ns * 1e-9) + " s";
    if (ns >= 1e6) return short_number(ns * 1e-6) + " ms";
    if (ns >= 1e5) return short_number(ns * 1e-3) + " us";
    return short_number(ns);
}

std::string times(double ratio) {
    return "×" + (ratio > 0 && ratio < 0.095 ? with_digits(ratio, 2) : short_number(ratio));
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

std::string left_aligned(const std::string& text, std::size_t width) {
    return text + std::string(width - std::min(width, columns(text)), ' ');
}

/// Did it run with several numbers of threads?
bool is_threaded(const report& report, std::string_view workload) {
    std::set<unsigned> threads;
    for (const row& it : report.rows) {
        if (it.workload == workload) threads.insert(it.threads);
    }
    return threads.size() > 1 || (threads.size() == 1 && *threads.begin() > 1);
}

std::string size_of(const report& report, std::string_view workload, std::uint64_t n, unsigned threads) {
    return power_of_ten(n) + (is_threaded(report, workload) ? ", T = " + std::to_string(threads) : "");
}

std::string cell(const report& report, std::string_view workload, std::string_view contender, std::uint64_t n,
                 unsigned threads) {
    const row* const it = find(report, workload, contender, n, threads);
    if (it == nullptr) return "-";
    const row* const reference = find(report, workload, reference_contender, n, threads);
    if (reference == nullptr || it->median() == 0) return short_time(it->median());
    return short_time(it->median()) + right_aligned(times(reference->median() / it->median()), 6);
}

/// Millions a second, and how many times what one thread does.
std::string rate(const report& report, std::string_view workload, std::string_view contender, std::uint64_t n,
                 unsigned threads) {
    const row* const it = find(report, workload, contender, n, threads);
    if (it == nullptr) return "-";
    const std::string millions = short_number(1e3 / it->median()) + " M";
    const row* const one = threads == 1 ? nullptr : find(report, workload, contender, n, 1);
    return one == nullptr ? millions : millions + right_aligned("×" + with_digits(one->median() / it->median(), 2), 7);
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

std::string json_figures(const row& it) {
    if (it.figures.empty()) return {};
    std::string text;
    for (const figure& each : it.figures) {
        text += (text.empty() ? "" : ", ") + quoted(each.name) + ": " + with_digits(each.value, 3);
    }
    return ", \"figures\": {" + text + '}';
}

std::string json_row(const row& it) {
    return "{\"workload\": " + quoted(it.workload) + ", \"contender\": " + quoted(it.contender) +
           ", \"n\": " + std::to_string(it.n) + ", \"threads\": " + std::to_string(it.threads) +
           ", \"unit\": " + quoted(it.unit) + ", \"median\": " + with_digits(it.median(), 2) +
           ", \"min\": " + with_digits(it.min(), 2) + ", \"repetitions\": " + std::to_string(it.nanoseconds.size()) +
           json_figures(it) + '}';
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
    std::set<std::pair<std::uint64_t, unsigned>> sizes;
    for (const row& it : report.rows) sizes.emplace(it.n, it.threads);

    std::vector<std::string> contenders;  // Who ran.
    for (const contender_facts& it : report.contenders) {
        const auto is_its = [&](const row& each) { return each.contender == it.name; };
        if (std::any_of(report.rows.begin(), report.rows.end(), is_its)) contenders.push_back(it.name);
    }

    constexpr std::size_t label_width = 36;
    std::string text;
    std::size_t first = 0;
    while (first < contenders.size()) {
        std::size_t last = first;
        std::vector<std::size_t> widths;
        for (std::size_t used = label_width; last < contenders.size(); ++last) {
            widths.push_back(std::max<std::size_t>(contenders[last].size(), 12) + 2);
            used += widths.back();
            if (used > width && last > first) break;
        }
        std::string block;
        for (const workload_facts& workload : report.workloads) {
            for (const auto& [n, threads] : sizes) {
                const std::string unit = workload.unit == "ns" ? "" : ", " + workload.unit;
                std::string line = left_aligned(
                    left_aligned(workload.name, 20) + size_of(report, workload.name, n, threads) + unit, label_width);
                bool any = false;
                for (std::size_t i = first; i < last; ++i) {
                    const std::string& contender = contenders[i];
                    any = any || find(report, workload.name, contender, n, threads) != nullptr;
                    line += right_aligned(cell(report, workload.name, contender, n, threads), widths[i - first]);
                }
                if (any) block += line + '\n';
            }
        }
        if (!block.empty()) {
            text += std::string(label_width, ' ');
            for (std::size_t i = first; i < last; ++i) {
                text += right_aligned(contenders[i], widths[i - first]);
            }
            text += '\n' + block + '\n';
        }
        first = last;
    }
    return text;
}

std::string as_rates(const report& report) {
    constexpr std::size_t label_width = 40;
    std::string text;
    for (const workload_facts& workload : report.workloads) {
        if (!is_threaded(report, workload.name)) continue;
        std::set<unsigned> threads;
        std::set<std::uint64_t> sizes;
        for (const row& it : report.rows) {
            if (it.workload != workload.name) continue;
            threads.insert(it.threads);
            sizes.insert(it.n);
        }
        text += left_aligned(workload.name, label_width);
        for (const unsigned count : threads) text += right_aligned("T = " + std::to_string(count), 16);
        text += '\n';
        for (const std::uint64_t n : sizes) {
            for (const contender_facts& contender : report.contenders) {
                std::string line = left_aligned("  " + power_of_ten(n) + "  " + contender.name, label_width);
                bool any = false;
                for (const unsigned count : threads) {
                    line += right_aligned(rate(report, workload.name, contender.name, n, count), 16);
                    any = any || find(report, workload.name, contender.name, n, count) != nullptr;
                }
                if (any) text += line + '\n';
            }
        }
        text += '\n';
    }
    return text;
}

std::string as_figures(const report& report) {
    constexpr std::size_t label_width = 44;
    std::string text;
    std::string last_workload;
    for (const row& it : report.rows) {
        if (it.figures.empty()) continue;
        if (it.workload != last_workload) {
            if (!last_workload.empty()) text += '\n';
            last_workload = it.workload;
            text += left_aligned(it.workload, label_width);
            // Whoever has the most figures names them all; they begin alike.
            const row* widest = &it;
            for (const row& other : report.rows) {
                if (other.workload == it.workload && other.figures.size() > widest->figures.size()) widest = &other;
            }
            for (const figure& each : widest->figures) text += right_aligned(each.name, 14);
            text += '\n';
        }
        text += left_aligned("  " + size_of(report, it.workload, it.n, it.threads) + "  " + it.contender, label_width);
        for (const figure& each : it.figures) {
            text += right_aligned(with_digits(each.value, each.value < 9.95 ? 2 : each.value < 99.5 ? 1 : 0), 14);
        }
        text += '\n';
    }
    return text.empty() ? text : text + '\n';
}

std::string as_json_rows(const report& report) {
    return json_array(report.rows, json_row) + '\n';
}

std::string as_json_report(const report& report) {
    std::string text = "{\"machine\": " + quoted(report.machine) + ",\n\"compiler\": " + quoted(report.compiler) +
                       ",\n\"date\": " + quoted(report.date) + ",\n\"reference\": " + quoted(reference_contender) +
                       ",\n\"complete\": " + (report.complete ? "true" : "false");
    text +=
        ",\n\"wrong_answers\": " + json_array(report.wrong_answers, [](const std::string& it) { return quoted(it); });
    text += ",\n\"contenders\": " + json_array(report.contenders, [](const contender_facts& it) {
                return "{\"name\": " + quoted(it.name) + ", \"version\": " + quoted(it.version) +
                       ", \"clock_reads\": " + quoted(it.clock_reads) + '}';
            });
    text += ",\n\"workloads\": " + json_array(report.workloads, [](const workload_facts& it) {
                return "{\"name\": " + quoted(it.name) + ", \"one_operation\": " + quoted(it.one_operation) +
                       ", \"unit\": " + quoted(it.unit) + '}';
            });
    text += ",\n\"early\": " + json_array(report.rows, [](const row& it) { return with_digits(it.early, 4); });
    return text + ",\n\"rows\": " + json_array(report.rows, json_row) + "}\n";
}

}  // namespace chime_bench
