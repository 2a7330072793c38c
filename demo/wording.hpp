// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

// Numbers as people read them.

namespace chime_demo {

/// 1234567 as 1,234,567.
[[nodiscard]] inline std::string grouped(std::uint64_t number) {
    std::string text = std::to_string(number);
    for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
    return text;
}

[[nodiscard]] inline std::string with_digits(double value, int digits) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.*f", digits, value);
    return text.data();
}

[[nodiscard]] inline double in_seconds(std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
}

/// In the unit that suits it, with two or three digits.
[[nodiscard]] inline std::string readable(std::chrono::nanoseconds time) {
    const auto ns = static_cast<double>(time.count());
    const auto in = [](double value, const char* unit) { return with_digits(value, value < 9.95 ? 1 : 0) + unit; };
    if (ns < 1e3) return with_digits(ns, 0) + " ns";
    if (ns < 1e6) return in(ns * 1e-3, " us");
    if (ns < 1e9) return in(ns * 1e-6, " ms");
    return in(ns * 1e-9, " s");
}

[[nodiscard]] inline std::string right_aligned(const std::string& text, std::size_t width) {
    return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

[[nodiscard]] inline std::string left_aligned(const std::string& text, std::size_t width) {
    return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
}

}  // namespace chime_demo
