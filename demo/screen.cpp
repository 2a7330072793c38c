// SPDX-License-Identifier: MIT
#include "screen.hpp"

#include "wording.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

namespace chime_demo {
namespace {

constexpr std::chrono::milliseconds between_drawings{200};
constexpr std::chrono::seconds between_lines{1};

std::string bar(double share, std::size_t width) {
    const auto filled = static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(width)));
    return std::string(filled, '#') + std::string(width - filled, '.');
}

std::string percentiles(const lateness& late) {
    return "p50 " + readable(late.quantile(0.5)) + ", p99 " + readable(late.quantile(0.99));
}

/// A line for every factor of four.
std::vector<std::string> histogram(const lateness& late, std::size_t width) {
    struct row {
        const char* label;
        unsigned power;
    };
    constexpr std::array<row, 7> rows{{{"<   4 us", 12},
                                       {"<  16 us", 14},
                                       {"<  64 us", 16},
                                       {"< 256 us", 18},
                                       {"<   1 ms", 20},
                                       {"<   4 ms", 22},
                                       {"<  16 ms", 24}}};
    const auto all = static_cast<double>(std::max<std::uint64_t>(late.count(), 1));
    std::vector<std::string> lines;
    std::uint64_t before = 0;
    const auto add = [&](const char* label, std::uint64_t until) {
        const double share = static_cast<double>(until - before) / all;
        const auto length = static_cast<std::size_t>(std::lround(share * static_cast<double>(width)));
        lines.push_back(std::string("  ") + label + right_aligned(with_digits(100 * share, 1), 6) + " % " +
                        (length == 0 && until > before ? "." : std::string(length, '#')));
        before = until;
    };
    for (const row& each : rows)
        add(each.label, late.count_below(std::chrono::nanoseconds{std::int64_t{1} << each.power}));
    add("   later", late.count());
    return lines;
}

winsize window() {
    winsize size{};
    if (!is_on_terminal() || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
    return size;
}

}  // namespace

std::size_t columns() {
    const winsize size = window();
    return size.ws_col == 0 ? 80 : size.ws_col;
}

bool is_on_terminal() {
    static const bool answer = [] {
        const char* const kind = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe): nobody sets it.
        return isatty(STDOUT_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
    }();
    return answer;
}

void print_heading(const std::string& text) {
    std::printf(is_on_terminal() ? "\n\033[1m== %s\033[0m\n" : "\n== %s\n", text.c_str());
    std::fflush(stdout);
}

void screen::show(const moment& now) {
    if (now.since_start < next_) return;
    take_rates(now);
    if (is_on_terminal()) {
        next_ = now.since_start + between_drawings;
        draw(block(now));
    } else {
        next_ = now.since_start + between_lines;
        std::printf("%s\n", line_of(now).c_str());
        std::fflush(stdout);
    }
}

void screen::say(const std::string& line) {
    erase();
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
    if (is_on_terminal()) draw(block(last_));
}

void screen::finish(const moment& last) {
    erase();
    std::printf("late %s, max %s\n", percentiles(last.seen.late).c_str(), readable(last.seen.late.quantile(1)).c_str());
    for (const std::string& line : histogram(last.seen.late, std::min<std::size_t>(columns(), 80) - 22)) {
        std::printf("%s\n", line.c_str());
    }
    std::fflush(stdout);
}

std::vector<std::string> screen::block(const moment& now) const {
    const std::size_t width = std::clamp<std::size_t>(columns(), 24, 80) - 1;
    const auto row = [](const std::string& name, const std::string& value) {
        return left_aligned("  " + name, 18) + right_aligned(value, 12);
    };
    std::string time = "] ";
    time +=
        with_digits(in_seconds(now.since_start), 1) + " of " + with_digits(in_seconds(work_.longest_sleep), 0) + " s";
    std::vector<std::string> lines{"["};
    lines.back() += bar(in_seconds(now.since_start) / in_seconds(work_.longest_sleep),
                        width - 1 - std::min(width - 1, time.size()));
    lines.back() += time;
    lines.push_back(row("asleep", grouped(now.seen.started - now.seen.woken - now.seen.sent_home)));
    lines.push_back(row("timers pending", grouped(now.pending)));
    lines.push_back(row("woken / s", grouped(static_cast<std::uint64_t>(woken_per_second_))));
    lines.push_back(row("cancelled / s", grouped(static_cast<std::uint64_t>(cancelled_per_second_))));
    lines.push_back(row("workers", grouped(now.workers)));
    lines.push_back("  late " + percentiles(now.seen.late));
    if (const winsize size = window(); size.ws_row == 0 || size.ws_row > 18) {
        for (std::string& line : histogram(now.seen.late, width - std::min<std::size_t>(width, 21)))
            lines.push_back(std::move(line));
    }
    for (std::string& line : lines) line.resize(std::min(line.size(), width));
    return lines;
}

std::string screen::line_of(const moment& now) const {
    return right_aligned(with_digits(in_seconds(now.since_start), 1), 5) + " s  " +
           right_aligned(grouped(now.seen.started - now.seen.woken - now.seen.sent_home), 9) + " asleep  " +
           right_aligned(grouped(static_cast<std::uint64_t>(woken_per_second_)), 7) + " woken/s  " +
           right_aligned(grouped(static_cast<std::uint64_t>(cancelled_per_second_)), 7) + " cancelled/s";
}

void screen::take_rates(const moment& now) {
    const double passed = in_seconds(now.since_start - last_.since_start);
    if (passed > 0) {
        woken_per_second_ = static_cast<double>(now.seen.woken - last_.seen.woken) / passed;
        cancelled_per_second_ = static_cast<double>(now.seen.cancelled - last_.seen.cancelled) / passed;
    }
    last_ = now;
}

void screen::draw(const std::vector<std::string>& lines) {
    erase();
    for (const std::string& line : lines) std::printf("%s\n", line.c_str());
    std::fflush(stdout);
    lines_drawn_ = lines.size();
}

/// Goes back to where the block begins, and clears all below.
void screen::erase() {
    if (lines_drawn_ != 0) std::printf("\033[%zuA\r\033[J", lines_drawn_);
    lines_drawn_ = 0;
}

}  // namespace chime_demo
