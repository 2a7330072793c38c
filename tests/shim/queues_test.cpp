// SPDX-License-Identifier: MIT
#include "shim/engine/explore.hpp"
#include "timer/timed.hpp"
#include "timer/unit_pool.hpp"
#include "worker/inbox.hpp"
#include "worker/parking.hpp"
#include "worker/ready_ring.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

// The pieces that threads meet in, each alone.

namespace {

using namespace chime;
using namespace chime::detail;
using shim::require;
using shim::require_equal;
using shim::tally;
using shim::thread;

/// Records as an inbox sees them. What they carry is plain: whoever finds one must know what was written into it.
struct carriers {
    static constexpr std::size_t count = 4;
    std::array<timed, count> all;
    std::array<int, count> cargo{};
    std::array<tally, count> arrived;

    timed& at(unit_index index) noexcept { return all[index]; }

    void load(unit_index index) { cargo[index] = static_cast<int>(index) + 100; }
    void unload(unit_index chain) {
        for (unsigned left = count; chain != no_unit; --left) {
            require(left != 0 && chain < count, "a chain is no longer than what is in it");
            require(cargo[chain] == static_cast<int>(chain) + 100, "what was pushed is what arrives");
            cargo[chain] = 0;
            arrived[chain].add();
            chain = all[chain].link.load(base::memory_order_relaxed);
        }
    }
    void require_all_arrived_once() const {
        for (const tally& each : arrived) require_equal(static_cast<std::uint64_t>(each.count()), 1, "arrivals");
    }
};

// --- The inbox.

CHIME_SCENARIO(inbox, gives_its_owner_everything_once_while_many_push, .is_small = true) {
    carriers units;
    inbox box;
    const auto push = [&](unit_index index) {
        units.load(index);
        require(box.push(units, index) != 0, "an open inbox takes what is pushed");
    };
    thread one([&] {
        push(0);
        push(1);
    });
    thread two([&] {
        push(2);
        push(3);
    });
    units.unload(box.take_all());
    units.unload(box.take_all());
    one.join();
    two.join();
    units.unload(box.take_all());
    units.require_all_arrived_once();
    require(box.is_empty(), "it is empty in the end");
}

CHIME_SCENARIO(inbox, takes_or_refuses_while_it_is_closed_but_never_both, .is_small = true) {
    carriers units;
    inbox box;
    inbox merged;
    const auto push = [&](unit_index index) {
        units.load(index);
        if (box.push(units, index) == 0) require(merged.push(units, index) != 0, "the other one is never closed");
    };
    thread one([&] {
        push(0);
        push(1);
    });
    thread two([&] { push(2); });
    thread owner([&] {
        units.unload(box.take_all());
        units.unload(box.close([](std::uint32_t) {}));
        require(box.is_closed(), "closed is closed");
    });
    thread adopter([&] { units.unload(merged.take_all()); });
    push(3);
    one.join();
    two.join();
    owner.join();
    adopter.join();
    units.unload(merged.take_all());
    units.require_all_arrived_once();
}

CHIME_SCENARIO(inbox, is_opened_for_its_next_owner_who_gets_what_comes_then, .is_small = true) {
    carriers units;
    inbox box;
    inbox merged;
    const auto push = [&](unit_index index) {
        units.load(index);
        if (box.push(units, index) == 0) require(merged.push(units, index) != 0, "the other one is never closed");
    };
    thread one([&] {
        push(0);
        push(1);
        push(2);
        push(3);
    });
    units.unload(box.close([](std::uint32_t) {}));
    box.open();
    units.unload(box.take_all());
    one.join();
    units.unload(box.take_all());
    units.unload(merged.take_all());
    units.require_all_arrived_once();
}

// --- Parking.

/// A loop that sleeps, and what others send it.
struct sleeper {
    carriers units;
    inbox box;
    parking place;
    tally wakeups;

    /// Sleeps for ever between two looks; ends when so many have come.
    void run(std::int64_t wanted, ordinal until) {
        std::int64_t seen = 0;
        while (seen < wanted) {
            seen = drain();
            if (seen >= wanted) return;
            place.publish(until);
            if (box.is_empty()) place.sleep(until == end_of_time ? never : to_time_point(until));
            place.withdraw();
            wakeups.add();
        }
    }
    std::int64_t drain() {
        units.unload(box.take_all());
        std::int64_t sum = 0;
        for (const tally& each : units.arrived) sum += each.count();
        return sum;
    }
    bool send(unit_index index, ordinal deadline) {
        units.load(index);
        require(box.push(units, index) != 0, "it is open");
        return place.wake_before(deadline);
    }
};

CHIME_SCENARIO(parking, nobody_sleeps_through_what_was_sent_before, .is_small = true) {
    sleeper loop;
    thread owner([&] { loop.run(2, end_of_time); });
    thread one([&] { loop.send(0, 0); });
    thread two([&] { loop.send(1, 0); });
    owner.join();
    one.join();
    two.join();
}

CHIME_SCENARIO(parking, nobody_sleeps_through_the_second_of_two_from_one_thread, .is_small = true) {
    sleeper loop;
    thread owner([&] { loop.run(3, end_of_time); });
    loop.send(0, 0);
    loop.send(1, 0);
    loop.send(2, 0);
    owner.join();
    require(loop.wakeups.count() <= 16, "a few messages make a few wake-ups");
}

CHIME_SCENARIO(parking, is_woken_for_what_is_earlier_and_not_for_what_is_later, .is_small = true) {
    sleeper loop;
    const ordinal now = to_ordinal(shim::now());
    const time_point asleep = shim::now() + std::chrono::milliseconds{1};
    bool was_woken_for_later = false;
    bool was_woken_for_earlier = false;
    thread owner([&] { loop.run(2, now + 10'000'000); });
    shim::sleep_until(asleep);  // Then the owner sleeps.
    was_woken_for_later = loop.send(0, now + 20'000'000);
    was_woken_for_earlier = loop.send(1, now + 5'000'000);
    owner.join();
    require(!was_woken_for_later, "what is later than its deadline does not wake it");
    // A false alarm may have been first.
    require(shim::now() <= asleep, "what is earlier wakes it");
    static_cast<void>(was_woken_for_earlier);
}

CHIME_SCENARIO(parking, a_flag_that_is_set_before_the_look_at_who_sleeps_is_seen, .is_small = true) {
    parking place;
    base::atomic<bool> is_stopped{false};
    thread owner([&] {
        while (!is_stopped.load(base::memory_order_acquire)) {
            place.publish(end_of_time);
            if (!is_stopped.load(base::memory_order_seq_cst)) place.sleep(never);
            place.withdraw();
        }
    });
    is_stopped.store(true, base::memory_order_seq_cst);
    place.wake();
    owner.join();
}

// --- The ring.

/// Tasks are named by numbers, and what they carry is plain.
struct ring_tasks {
    static constexpr std::size_t count = 6;
    ready_ring ring;
    std::array<int, count> cargo{};
    std::array<tally, count> taken;

    void push(unit_index task) {
        cargo[task] = static_cast<int>(task) + 100;
        require(ring.push(task), "there is room");
    }
    bool take(unit_index task) {
        if (task == no_unit) return false;
        require(task < count, "what comes out was put in");
        require(cargo[task] == static_cast<int>(task) + 100, "and carries what it was given");
        cargo[task] = 0;
        taken[task].add();
        return true;
    }
    void steal() {
        std::array<unit_index, ready_ring::capacity / 2> some;
        const std::size_t half = ring.take_half(some);
        for (std::size_t position = 0; position < half; ++position) take(some[position]);
    }
    void require_all_taken_once(std::size_t pushed) const {
        for (std::size_t task = 0; task < pushed; ++task) {
            require_equal(static_cast<std::uint64_t>(taken[task].count()), 1, "taken");
        }
    }
};

CHIME_SCENARIO(ready_ring, gives_each_task_to_one_of_the_owner_and_two_thieves, .is_small = true) {
    ring_tasks tasks;
    thread one([&] { tasks.steal(); });
    thread two([&] { tasks.take(tasks.ring.pop()); });
    tasks.push(0);
    tasks.push(1);
    tasks.take(tasks.ring.pop());
    tasks.push(2);
    one.join();
    two.join();
    while (tasks.take(tasks.ring.pop())) {}
    tasks.require_all_taken_once(3);
    require(tasks.ring.is_empty(), "nothing is left");
}

/// So full that the owner writes over places that thieves have just read.
CHIME_SCENARIO(ready_ring, is_not_written_over_before_a_thief_has_read_it, .share = 4) {
    auto tasks = std::make_unique<ring_tasks>();
    constexpr unit_index filler = 77;
    for (std::uint32_t position = 0; position < ready_ring::capacity; ++position) {
        require(tasks->ring.push(filler), "there is room");
    }
    tally fillers;
    const auto pop = [&] {
        const unit_index first = tasks->ring.pop();
        if (first == filler) {
            fillers.add();
        } else {
            tasks->take(first);
        }
        return first != no_unit;
    };
    thread one([&] {
        pop();
        pop();
    });
    thread two([&] {
        std::array<unit_index, ready_ring::capacity / 2> some;
        const std::size_t half = tasks->ring.take_half(some);
        for (std::size_t position = 0; position < half; ++position) {
            if (some[position] == filler) {
                fillers.add();
            } else {
                tasks->take(some[position]);
            }
        }
    });
    std::size_t pushed = 0;
    for (int tries = 0; pushed < 3 && tries < 12; ++tries) {
        tasks->cargo[pushed] = static_cast<int>(pushed) + 100;
        if (tasks->ring.push(static_cast<unit_index>(pushed))) ++pushed;
    }
    one.join();
    two.join();
    while (pop()) {}
    tasks->require_all_taken_once(pushed);
    require_equal(static_cast<std::uint64_t>(fillers.count()), ready_ring::capacity, "fillers");
}

/// It is full, so what the owner adds goes where the thief has been.
CHIME_SCENARIO(ready_ring, gives_a_thief_what_was_there_when_he_came, .share = 4) {
    auto ring = std::make_unique<ready_ring>();
    constexpr unit_index there = 77;
    constexpr unit_index added = 5;
    for (std::uint32_t position = 0; position < ready_ring::capacity; ++position) {
        require(ring->push(there), "there is room");
    }
    unit_index taken = no_unit;
    thread thief([&] { taken = ring->pop(); }, "thief");
    bool was_added = false;
    for (int tries = 0; !was_added && tries < 4; ++tries) was_added = ring->push(added);
    thief.join();
    require(taken == there, "he has taken the first one");
}

}  // namespace
