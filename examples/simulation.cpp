// SPDX-License-Identifier: MIT

// A whole runtime on one thread, in an order that is drawn from a seed: finds an order in which a program is wrong, shows
// the same run again, and shows that the mended program is right in all of them.

#include <chime/runtime.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/testing.hpp>
#include <chime/timers.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

using namespace std::chrono_literals;

namespace {

void expect(bool holds, const char* what) {
    if (!holds) throw std::logic_error(std::string("this does not hold: ") + what);
    std::printf("holds: %s\n", what);
}

/// A request that comes in after an hour, and goes from hand to hand.
chime::task<> arrive(int hands) {
    co_await chime::sleep_for(1h);
    for (; hands > 0; --hands) co_await chime::yield();
}

/// Looks, asks, takes. While it asks, others have their turn.
chime::task<> withdraw(int& balance, int amount, int hands) {
    co_await arrive(hands);
    if (balance < amount) co_return;
    co_await chime::yield();  // Stands for a question to somebody else.
    balance -= amount;
}

/// Takes first, and would give it back if the answer was no.
chime::task<> reserve_and_withdraw(int& balance, int amount, int hands) {
    co_await arrive(hands);
    if (balance < amount) co_return;
    balance -= amount;
    co_await chime::yield();
}

using withdrawal = chime::task<>(int& balance, int amount, int hands);

/// What two of them leave, in the order of this seed; and what tells this run from others.
std::pair<int, std::uint64_t> left_by_two(withdrawal& one, std::uint64_t seed) {
    chime::testing::simulation sim(seed, {.workers = 2});
    int balance = 100;
    chime::spawn_detached(*sim, one(balance, 80, 0));
    chime::spawn_detached(*sim, one(balance, 80, 2));
    sim.run();  // Until nothing is to be done and no deadline is left: an hour, at once.
    return {balance, sim.trace()};
}

void finds_the_order_that_is_wrong() {
    int wrong = 0;
    std::uint64_t found = 0;
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
        if (left_by_two(withdraw, seed).first >= 0) continue;
        if (wrong++ == 0) found = seed;
    }
    std::printf("%d of 1000 seeds overdraw the account; the first is %d\n", wrong, static_cast<int>(found));
    expect(wrong > 0 && wrong < 1000, "some orders are wrong, and some are not");
    expect(left_by_two(withdraw, found) == left_by_two(withdraw, found), "the same seed gives the same run");

    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
        if (left_by_two(reserve_and_withdraw, seed).first != 20) throw std::logic_error("seed " + std::to_string(seed));
    }
    std::puts("holds: whoever reserves first is right in all of them");
}

chime::task<int> answer_tomorrow() {
    co_await chime::sleep_for(24h);
    co_return 42;
}

chime::task<> wait_for_the_end(bool& was_told) {
    was_told = co_await chime::sleep_for(1000h) == chime::wake_reason::cancelled;
}

void goes_through_a_whole_life() {
    chime::testing::simulation sim(7, {.workers = 3});
    int beats = 0;
    bool was_told = false;
    sim->timers().every(1s, chime::missed_ticks::skip, [&] { ++beats; });
    chime::spawn_detached(*sim, wait_for_the_end(was_told));

    sim.advance(30min);
    expect(beats == 1800, "a beat a second");
    sim->retire_worker(0);
    sim->retire_worker(2);
    sim.advance(30min);
    expect(beats == 3600, "no beat is lost when its worker retires");

    const chime::time_point before = sim.now();
    expect(sim->block_on(answer_tomorrow()) == 42, "block_on lets the workers go on");
    expect(sim.now() - before == 24h, "a day later");

    sim->timers().after(1s, [] { throw std::runtime_error("broken"); });
    bool has_thrown = false;
    try {
        sim.advance(2s);
    } catch (const std::runtime_error&) {
        has_thrown = true;  // Everything else is as it was: go on.
    }
    expect(has_thrown, "what a callback throws comes out of the call that let it run");
    sim.advance(2s);

    sim->shutdown();
    expect(was_told, "shutdown tells who sleeps");
}

}  // namespace

int main() {
    finds_the_order_that_is_wrong();
    goes_through_a_whole_life();
}
