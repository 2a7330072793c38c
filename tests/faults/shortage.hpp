// SPDX-License-Identifier: MIT
//
// What tests of a shortage of memory have in common.
#pragma once

#include "faults/injection.hpp"
#include "faults/wreckage.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <exception>
#include <new>
#include <system_error>

namespace chime::test {

/// All that is made of memory; each is asked to fail in turn.
inline std::array<failing_point*, 3> kinds_of_memory() {
    return {&faults::allocations, &faults::mappings, &faults::commits};
}

/// Each kind of memory fails at each place in turn: the attempt is refused, and nothing is left of it.
template <class Attempt, class Look>
void expect_refused_and_nothing_left(const Attempt& attempt, const Look& look) {
    for (failing_point* const kind : kinds_of_memory()) {
        const wreckage before;
        EXPECT_GT(fail_at_each(*kind, attempt, [&](bool) { look(); }), 0U);
        before.expect_nothing_more();
    }
}

/// A thread that cannot be started is told in another way than memory that is not there.
template <class Attempt>
void attempt_with_threads(const Attempt& attempt) {
    try {
        attempt();
    } catch (const std::system_error& error) {
        if (error.code() != std::errc::resource_unavailable_try_again) throw;
        throw std::bad_alloc();
    }
}

/// For `on_exception`: a worker whose wheel has to grow meanwhile says so, and tries again. To say more would need memory.
class only_shortage {
 public:
    void operator()(const std::exception_ptr& thrown) {
        try {
            std::rethrow_exception(thrown);
        } catch (const std::bad_alloc&) {
        } catch (...) {
            ++others_;
        }
    }
    void expect_nothing_else() const { EXPECT_EQ(others_.load(), 0); }

 private:
    std::atomic<int> others_{0};
};

}  // namespace chime::test
