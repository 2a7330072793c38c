// SPDX-License-Identifier: MIT
#include "base/atomic.hpp"
#include "shim/engine/explore.hpp"
#include "shim/small_loops.hpp"

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

// A context is destroyed while another thread is in the middle of a call to it: one that has let the loop end, or one that a
// token has made, which knows nothing of contexts. Whoever destroys it waits for them; otherwise they touch what is gone.

namespace {

using namespace chime;
using namespace std::chrono_literals;
using shim::require;
using shim::thread;
using test::account;
using test::small_loop;

CHIME_SCENARIO(context, that_is_destroyed_waits_for_who_has_armed_the_timer_that_let_it_end, .share = 2,
               .is_small = true, .stale_values = 1) {
    account its;
    std::optional<small_loop> loop(std::in_place);
    std::optional<io_context::work_guard> guard(**loop);
    thread other([&] {
        (*loop)->timers().at(shim::now(), [&guard, watched = test::any_callback(its)]() mutable {
            watched();
            guard.reset();
        });
    });
    (*loop)->run();
    loop.reset();
    its.require_ended(1, 1);
    other.join();
}

/// The same with a token, for which there is another way to arm.
CHIME_SCENARIO(context, that_is_destroyed_waits_for_who_has_armed_with_a_token, .share = 2) {
    account its;
    cancel_source source;
    std::optional<small_loop> loop(std::in_place);
    std::optional<io_context::work_guard> guard(**loop);
    thread other([&] {
        (*loop)->timers().at(
            shim::now(),
            [&guard, watched = test::any_callback(its)]() mutable {
                watched();
                guard.reset();
            },
            source.token());
    });
    (*loop)->run();
    loop.reset();
    its.require_ended(1, 1);
    other.join();
}

/// Who cancels a token does not know that there is a context, and may come at any time.
CHIME_SCENARIO(context, that_is_destroyed_waits_for_a_token_that_ends_its_timer, .share = 2, .is_small = true,
               .stale_values = 1) {
    account its;
    cancel_source source;
    std::optional<small_loop> loop(std::in_place);
    (*loop)->timers().after(1h, test::any_callback(its), source.token());
    thread other([&] { source.request_cancel(); });
    loop.reset();
    its.require_ended(0, 1);
    other.join();
}

/// The same while everything has been stopped before: then nothing is left to claim for who destroys it.
CHIME_SCENARIO(context, that_is_stopped_and_destroyed_waits_for_a_token_that_ends_its_timer, .share = 2) {
    account its;
    cancel_source source;
    std::optional<small_loop> loop(std::in_place);
    (*loop)->timers().after(1h, test::any_callback(its), source.token());
    thread other([&] { source.request_cancel(); });
    (*loop)->timers().stop();
    loop.reset();
    its.require_ended(0, 1);
    other.join();
}

}  // namespace
