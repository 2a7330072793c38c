// SPDX-License-Identifier: MIT
#include "shim/engine/explore.hpp"
#include "shim/small_loops.hpp"

#include <chime/io_context.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>

#include <gtest/gtest.h>

#include <utility>

// How tasks end, for those who hold a handle.

namespace {

using namespace chime;
using shim::require;
using shim::require_equal;
using shim::tally;
using shim::thread;
using test::small_loop;

/// A result that is looked at when it ends. Plain: whoever destroys it must know of whoever made it.
class watched_result {
 public:
    explicit watched_result(tally& ends) noexcept : ends_(&ends) {}
    watched_result(watched_result&& other) noexcept : ends_(std::exchange(other.ends_, nullptr)) {}
    watched_result& operator=(watched_result&&) = delete;
    ~watched_result() {
        if (ends_ != nullptr) ends_->add();
    }

 private:
    tally* ends_;
};

task<watched_result> give_result(tally& ends) {
    co_return watched_result(ends);
}

CHIME_SCENARIO(task, whose_handle_is_dropped_while_it_ends_leaves_its_result_to_the_last, .share = 2) {
    tally ends;
    small_loop loop;
    auto joined = spawn(*loop, give_result(ends));
    thread driver([&] { loop->run(); }, "loop");
    joined.detach();
    driver.join();
    require_equal(static_cast<std::uint64_t>(ends.count()), 1, "results that were destroyed");
    loop.require_rest();
}

task<> write_down(int& shared) {
    shared = 42;
    co_return;
}

CHIME_SCENARIO(task, is_known_to_who_has_waited_for_its_end, .share = 2) {
    int shared = 0;  // Plain: written by the task, read by who has waited.
    small_loop loop;
    auto joined = spawn(*loop, write_down(shared));
    thread driver([&] { loop->run(); }, "loop");
    joined.wait();
    require(shared == 42, "it has ended");
    driver.join();
    loop.require_rest();
}

}  // namespace
