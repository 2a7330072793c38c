// SPDX-License-Identifier: MIT
#include "shim/engine/explore.hpp"
#include "shim/small_crew.hpp"
#include "shim/small_loops.hpp"

#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <system_error>
#include <utility>

// Tasks that go to a context which is stopped, shut down or destroyed this moment: each arrives, or is told that it cannot
// and stays where it is, or is destroyed there; one of them, once.

namespace {

using namespace chime;
using namespace std::chrono_literals;
using shim::require;
using shim::require_equal;
using shim::tally;
using shim::thread;
using test::small_crew;
using test::small_loop;
using test::small_runtime;

/// What has become of one who has left.
struct journey {
    tally arrived;
    tally refused;
    tally woken;  ///< From a sleep after that.
    tally ended;

    /// Whoever did neither arrive nor stay was destroyed on the way.
    void require_one_end() const {
        require(arrived.count() + refused.count() <= 1, "it arrives or stays, once");
        require_equal(static_cast<std::uint64_t>(ended.count()), 1, "ends of its frame");
    }
    void require_not_destroyed() const {
        require_one_end();
        require(arrived.count() + refused.count() == 1, "nobody destroys it");
    }
};

/// Lives in the frame. Plain: who destroys it must know of who made it.
class luggage {
 public:
    explicit luggage(journey& notes) noexcept : notes_(notes) {}
    luggage(const luggage&) = delete;
    luggage& operator=(const luggage&) = delete;
    ~luggage() {
        require(!std::exchange(is_gone_, true), "it ends once");
        notes_.ended.add();
    }

 private:
    journey& notes_;
    bool is_gone_ = false;
};

task<> go(detail::yield_awaitable hop, journey& notes) {
    const luggage carried(notes);
    try {
        co_await hop;
        notes.arrived.add();
    } catch (const std::system_error&) {
        notes.refused.add();
    }
}

/// Who has arrived where everything was stopped is told so, and who was not let in sleeps to the end.
task<> go_and_sleep(detail::yield_awaitable hop, journey& notes, time_point due) {
    auto way = go(hop, notes);
    co_await std::move(way);
    const wake_reason why = co_await sleep_until(due);
    require((why == wake_reason::cancelled) == (notes.arrived.count() == 1), "it is told where it was stopped");
    require(why == wake_reason::cancelled || shim::now() == due, "it wakes at its deadline");
    notes.woken.add();
}

/// All that runs there when everything is stopped is told, so who has arrived comes to its end, unless it comes too late.
CHIME_SCENARIO(departure, to_a_runtime_that_is_shut_down_arrives_is_refused_or_destroyed, .share = 8) {
    journey notes;
    small_loop from;
    {
        runtime to(small_runtime(1));
        auto joined = spawn(*from, go(to.get_scheduler().schedule(), notes));
        thread sender([&] { from->run(); }, "from");
        to.shutdown();
        sender.join();
        notes.require_one_end();
        require(joined.is_done(), "who waits for it learns of its end");
        const runtime_stats all = to.stats();
        test::require_ledger(all.timers);
        require(all.workers.empty(), "L9: a thread is left");
    }
    from.require_rest();
}

CHIME_SCENARIO(departure, to_a_loop_whose_timers_are_stopped_arrives_and_is_told_or_is_refused, .share = 4) {
    journey notes;
    const time_point due = shim::now() + 1ms;
    small_loop from;
    small_loop to;
    std::optional<io_context::work_guard> guard(*to);
    auto joined = spawn(*from, go_and_sleep(to->get_scheduler().schedule(), notes, due));
    thread sender([&] { from->run(); }, "from");
    thread receiver([&] { to->run(); }, "to");
    to->timers().stop();
    sender.join();
    guard.reset();
    receiver.join();
    notes.require_not_destroyed();
    require_equal(static_cast<std::uint64_t>(notes.woken.count()), 1, "sleeps that have ended");
    require(joined.is_done(), "who waits for it learns of its end");
    from.require_rest();
    to.require_rest();
}

/// stop() refuses nothing: the loop goes on with it when it is run again.
CHIME_SCENARIO(departure, to_a_loop_that_is_told_to_return_arrives_when_that_runs_again, .share = 4) {
    journey notes;
    small_loop from;
    small_loop to;
    std::optional<io_context::work_guard> guard(*to);
    auto joined = spawn(*from, go(to->get_scheduler().schedule(), notes));
    thread sender([&] { from->run(); }, "from");
    thread receiver([&] { to->run(); }, "to");
    to->stop();
    receiver.join();
    sender.join();
    guard.reset();
    to->restart();
    to->run();
    notes.require_not_destroyed();
    require(notes.arrived.count() == 1 && joined.is_done(), "it has arrived");
    from.require_rest();
    to.require_rest();
}

/// And if that is destroyed instead, the task is, too.
CHIME_SCENARIO(departure, to_a_loop_that_returns_and_is_destroyed_ends_with_it, .share = 4) {
    journey notes;
    small_loop from;
    std::optional<small_loop> to(std::in_place);
    auto joined = spawn(*from, go((*to)->get_scheduler().schedule(), notes));
    std::optional<io_context::work_guard> guard(**to);
    thread sender([&] { from->run(); }, "from");
    thread receiver([&] { (*to)->run(); }, "to");
    thread canceller([&] { joined.cancel(); }, "canceller");
    (*to)->stop();
    receiver.join();
    sender.join();
    guard.reset();
    to.reset();
    notes.require_one_end();
    require_equal(static_cast<std::uint64_t>(notes.refused.count()), 0, "refused");
    require(joined.is_done(), "who waits for it learns of its end");
    canceller.join();
    from.require_rest();
}

/// The crew is there until it has let go of everybody; nobody drives it any more.
void go_to_who_ends(bool is_stopped_before) {
    journey notes;
    small_loop from;
    small_crew ending(1, 0);
    auto joined = spawn(*from, go(detail::yield_awaitable(&*ending), notes));
    thread sender([&] { from->run(); }, "from");
    if (is_stopped_before) ending->stop_timers();
    ending->destroy_pending();
    sender.join();
    notes.require_one_end();
    require_equal(static_cast<std::uint64_t>(notes.arrived.count()), 0, "arrivals where nobody runs anything");
    require(joined.is_done(), "who waits for it learns of its end");
    test::require_ledger(ending->stats());
    from.require_rest();
}

CHIME_SCENARIO(departure, to_a_crew_that_ends_is_refused_or_destroyed, .share = 2, .is_small = true,
               .stale_values = 0) {
    go_to_who_ends(false);
}

CHIME_SCENARIO(departure, to_a_crew_that_was_stopped_and_ends_is_refused_or_destroyed, .share = 2, .is_small = true,
               .stale_values = 0) {
    go_to_who_ends(true);
}

}  // namespace
