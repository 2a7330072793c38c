// SPDX-License-Identifier: MIT
#include "support/progress.hpp"

#include <algorithm>
#include <cstdio>

#include <unistd.h>

namespace chime_bench {

progress::progress(std::size_t runs)
    : runs_(std::max<std::size_t>(runs, 1)), is_terminal_(isatty(STDERR_FILENO) != 0) {}

void progress::start(const std::string& what) {
    if (is_terminal_) draw(what);
}

void progress::done() {
    done_ = std::min(done_ + 1, runs_);
    if (is_terminal_) return;
    const std::size_t tenths = done_ * 10 / runs_;
    if (tenths == tenths_said_) return;
    tenths_said_ = tenths;
    std::fprintf(stderr, "%zu of %zu runs\n", done_, runs_);
}

void progress::clear() {
    if (is_terminal_) std::fputs("\r\x1b[K", stderr);
}

void progress::draw(const std::string& what) {
    constexpr std::size_t bar_width = 24;
    const std::size_t filled = done_ * bar_width / runs_;
    const std::string bar = std::string(filled, '#') + std::string(bar_width - filled, '.');
    const double spent_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    const auto left_s =
        done_ == 0 ? 0 : static_cast<long>(spent_s / static_cast<double>(done_) * static_cast<double>(runs_ - done_));
    // Runs differ in length by a factor of a thousand, so the rest is a guess and is called one.
    std::fprintf(stderr, "\r\x1b[K[%s] %zu/%zu  about %ld:%02ld left  %s", bar.c_str(), done_, runs_, left_s / 60,
                 left_s % 60, what.c_str());
    std::fflush(stderr);
}

}  // namespace chime_bench
