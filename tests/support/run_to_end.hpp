// SPDX-License-Identifier: MIT
#pragma once

#include "support/ledger.hpp"

#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/testing.hpp>

#include <utility>

namespace chime::test {

/// Runs a task to its end on a context of its own, and checks that nothing is left of it; gives what the task gives.
template <class T>
T run_to_end(task<T> whole) {
    testing::virtual_context context;
    auto joined = spawn(*context, std::move(whole));
    context.run();
    check_ledger_at_rest(*context);
    return joined.take();
}

}  // namespace chime::test
