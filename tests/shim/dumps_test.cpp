// SPDX-License-Identifier: MIT
#include "shim/engine/explore.hpp"
#include "shim/small_crew.hpp"
#include "shim/small_loops.hpp"

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <source_location>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

// Somebody prints what is pending while others are at it. A task is printed with the place where it was spawned, never with
// that of whoever had its slot before.

namespace {

using namespace chime;
using namespace std::chrono_literals;
using shim::require;
using shim::thread;
using test::crew_threads;
using test::small_crew;
using test::small_loop;

/// What is spawned with the first one has ended before anybody prints anything.
struct places {
    std::source_location first = std::source_location::current();
    std::source_location second;
};

void spawn_at(small_crew& on, task<> spawned, const std::source_location& where) {
    detail::spawn_task(*on, std::move(spawned), nullptr, std::bit_cast<const void*>(where));
}

/// The task in this slot, if there is one.
void require_second_place(small_crew& of, std::size_t slot, const places& them) {
    std::ostringstream out;
    of->dump_pending(out);
    const std::string text = std::move(out).str();
    const std::size_t line = text.find("  task " + std::to_string(slot) + ":");
    if (line == text.npos) return;
    const std::size_t end = text.find('\n', line);
    const std::string place = ':' + std::to_string(them.second.line());
    require(text.substr(line, end - line).ends_with(place), "it is printed with the place where it was spawned");
}

task<> end_at_once() {
    co_return;
}

/// One slot, which is for all to take, and whose last task was spawned at the first place.
class used_slot {
 public:
    explicit used_slot(std::int64_t pieces) : crew(1, pieces, settings()) {
        spawn_at(crew, end_at_once(), them.first);
        static_cast<void>(crew->at(0).try_begin_drive());
        crew.turn(0);
        try {
            spawn_at(crew, end_at_once(), them.first);
            require(false, "its worker has it");
        } catch (const std::system_error&) {
            crew.turn(0);  // Now it has given it to all.
        }
        crew->at(0).end_drive();
        them.second = std::source_location::current();
    }

    places them;
    small_crew crew;

 private:
    [[nodiscard]] static detail::worker_settings settings() {
        detail::worker_settings chosen = small_crew::small();
        chosen.max_tasks = 1;
        return chosen;
    }
};

CHIME_SCENARIO(dump, shows_a_task_that_is_spawned_outside_with_its_own_place, .is_small = true) {
    used_slot used(1);
    thread other([&] { require_second_place(used.crew, 0, used.them); }, "other");
    spawn_at(used.crew, note_end(used.crew), used.them.second);
    other.join();
    used.crew.drive(0);
    used.crew.require_rest();
}

CHIME_SCENARIO(dump, shows_a_task_that_is_destroyed_with_its_own_place, .is_small = true) {
    used_slot used(0);
    thread other([&] { require_second_place(used.crew, 0, used.them); }, "other");
    spawn_at(used.crew, end_at_once(), used.them.second);
    used.crew->destroy_pending();
    other.join();
}

task<> go_and_note_end(detail::yield_awaitable hop, small_crew& there) {
    co_await hop;
    there.note_end();
}

CHIME_SCENARIO(dump, shows_a_task_that_comes_from_elsewhere_with_its_own_place, .share = 2) {
    used_slot used(1);
    small_loop from;
    thread other([&] { require_second_place(used.crew, 0, used.them); }, "other");
    thread sender(
        [&] {
            const auto where = std::bit_cast<const void*>(used.them.second);
            auto leaving = go_and_note_end(detail::yield_awaitable(&*used.crew), used.crew);
            detail::spawn_task(detail::context_access::home_of(*from), std::move(leaving), nullptr, where);
            from->run();
        },
        "from");
    sender.join();
    other.join();
    used.crew.drive(0);
    used.crew.require_rest();
    from.require_rest();
}

/// It has spawned one before that has ended, and spawns the next one, when it wakes up, in the same slot.
task<> spawn_another_later(small_crew& on, places& them, time_point due) {
    spawn_at(on, end_at_once(), them.first);
    auto sleep = sleep_until(due);
    co_await sleep;
    spawn_at(on, note_end(on), them.second);
}

CHIME_SCENARIO(dump, shows_a_task_that_is_spawned_by_another_with_its_own_place, .share = 2) {
    small_crew one(1, 1);
    places them;
    const time_point due = shim::now() + 1ms;
    them.second = std::source_location::current();
    one.spawn(spawn_another_later(one, them, due));
    require(one->at(0).try_begin_drive(), "nobody else drives it");
    one.turn(0);  // It sleeps,
    one.turn(0);  // and the other one has ended.
    thread other(
        [&] {
            shim::sleep_until(due);
            require_second_place(one, 1, them);
        },
        "other");
    crew_threads workers(one, {&small_crew::drive_on});
    other.join();
    workers.finish();
}

}  // namespace
