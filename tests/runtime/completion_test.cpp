// SPDX-License-Identifier: MIT
//
// What a task waits for that is not a time: in the moment when it comes.
#include "support/ledger.hpp"

#include <chime/detail/suspension.hpp>
#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>

#include <gtest/gtest.h>

#include <coroutine>

namespace chime::test {
namespace {

/// Is complete just after somebody has looked whether it is, and before he waits.
struct late_completion {
    detail::completion& awaited;
    detail::completion_awaiter inner{awaited};

    [[nodiscard]] bool await_ready() const noexcept { return inner.await_ready(); }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> frame) {
        awaited.complete();
        return inner.await_suspend(frame);
    }
    void await_resume() noexcept { inner.await_resume(); }
};

task<> wait_for_late(detail::completion& awaited, int& went_on) {
    late_completion late{awaited};
    co_await late;
    ++went_on;
}

TEST(completion, that_comes_between_the_look_and_the_wait_is_not_missed) {
    testing::virtual_context context;
    detail::completion awaited;
    int went_on = 0;
    spawn_detached(*context, wait_for_late(awaited, went_on));
    context.run();
    EXPECT_EQ(went_on, 1);
    EXPECT_TRUE(awaited.is_complete());
    awaited.complete();
    EXPECT_EQ(context.run(), 0U) << "the second time wakes nobody";
    EXPECT_EQ(went_on, 1);
    check_ledger_at_rest(*context);
}

}  // namespace
}  // namespace chime::test
