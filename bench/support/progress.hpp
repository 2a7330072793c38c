// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace chime_bench {

/// Shows on standard error how far the runs have come: a bar on a terminal, a line now and then in a log.
class progress {
 public:
    explicit progress(std::size_t runs);

    void start(const std::string& what);
    void done();

    /// Takes the bar away, so that something else can be printed.
    void clear();

 private:
    void draw(const std::string& what);

    std::size_t runs_;
    std::size_t done_ = 0;
    bool is_terminal_;
    std::size_t tenths_said_ = 0;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace chime_bench
