// SPDX-License-Identifier: MIT
#pragma once

#include "results.hpp"
#include "work.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace chime_demo {

/// How many columns there are: those of the terminal, or plenty in a file.
[[nodiscard]] std::size_t columns();

/// Is somebody looking? Then lines may be drawn over and headings be bold.
[[nodiscard]] bool is_on_terminal();

void print_heading(const std::string& text);

/// What is shown of a run while it goes on.
struct moment {
    std::chrono::nanoseconds since_start;
    counts seen;
    std::uint64_t pending;
    std::size_t workers;
};

/// Shows how a run goes: on a terminal a block of lines that is drawn over, in a file a line every second.
///
/// Belongs to the thread that drives the run.
class screen {
 public:
    explicit screen(const work& work) : work_(work) {}

    /// Call it as often as you like; it shows what is worth it.
    void show(const moment& now);
    /// Something has happened. The line stays.
    void say(const std::string& line);
    /// The last moment stays, with all that is known of lateness.
    void finish(const moment& last);

 private:
    [[nodiscard]] std::vector<std::string> block(const moment& now) const;
    [[nodiscard]] std::string line_of(const moment& now) const;
    void take_rates(const moment& now);
    void draw(const std::vector<std::string>& lines);
    void erase();

    const work& work_;
    moment last_{};
    double woken_per_second_ = 0;
    double cancelled_per_second_ = 0;
    std::chrono::nanoseconds next_{};
    std::size_t lines_drawn_ = 0;
};

}  // namespace chime_demo
