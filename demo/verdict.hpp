// SPDX-License-Identifier: MIT
#pragma once

#include "results.hpp"
#include "work.hpp"

#include <string>

namespace chime_demo {

/// The two sides as a table. `width` columns are there; `asio` may not have been run.
[[nodiscard]] std::string side_by_side(const work& work, const results& chime, const results& asio, std::size_t width);

/// What chime has promised, line by line, and whether it was kept.
struct verdict {
    std::string text;
    bool is_kept;
};
[[nodiscard]] verdict judge(const work& work, const results& chime);

/// What is wrong with the other side's counts; empty if nothing is, or if it was stopped.
[[nodiscard]] std::string complaint_about_asio(const work& work, const results& asio);

/// All of it, for programs.
[[nodiscard]] std::string as_json(const work& work, const results& chime, const results& asio, bool is_kept);

}  // namespace chime_demo
