// SPDX-License-Identifier: MIT
#pragma once

#include "results.hpp"

#include <functional>
#include <optional>

namespace chime_demo {

/// Runs one side in a process of its own, so that its memory and processor time are nobody else's; fills in both.
/// Nothing: it has ended without telling, and has said why on standard error. Must be called while there is one thread.
[[nodiscard]] std::optional<results> run_separately(const std::function<results()>& run);

/// Lets Ctrl-C, here and in what run_separately() starts, end the runs early.
void answer_interrupts();

}  // namespace chime_demo
