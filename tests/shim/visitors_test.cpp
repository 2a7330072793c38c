// SPDX-License-Identifier: MIT
#include "base/atomic.hpp"
#include "base/stripes.hpp"
#include "base/thread_number.hpp"
#include "shim/engine/explore.hpp"
#include "shim/small_loops.hpp"

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
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

/// Cancels the only timer of a loop elsewhere, and destroys the loop as soon as the statistics say that it is gone.
void end_when_nothing_is_pending() {
    std::optional<small_loop> loop(std::in_place);
    timers& its = (*loop)->timers();
    const timer_handle last = its.after(1h, [] {});
    (*loop)->poll();  // From here on it is only a word that somebody else has to change.
    thread other([&] { require(its.cancel(last) == cancel_result::cancelled, "nobody else cancels it"); });
    while (its.stats().pending != 0) shim::yield();
    loop.reset();
    other.join();
}

/// Who cancels what nobody has to destroy is there for a few steps only, and says so in another way.
CHIME_SCENARIO(context, that_is_destroyed_waits_for_who_is_seen_to_have_cancelled_its_timer, .share = 2,
               .is_small = true, .stale_values = 1) {
    end_when_nothing_is_pending();
}

/// The same with so many threads that who cancels shares its stripe of the counters.
CHIME_SCENARIO(context, that_is_destroyed_waits_for_one_of_many_who_is_seen_to_have_cancelled_its_timer, .share = 2,
               .stale_values = 1) {
    for (std::size_t before = 0; before < base::usual_stripes; ++before) {
        thread([] { static_cast<void>(base::thread_number()); }).join();
    }
    end_when_nothing_is_pending();
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
