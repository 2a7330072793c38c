// SPDX-License-Identifier: MIT
#include "base/atomic.hpp"
#include "runtime/runtime.hpp"

#include <chime/testing.hpp>

#include <algorithm>
#include <list>
#include <vector>

namespace chime::inline v0::testing {

namespace {

/// Stands still until it is told, and tells nobody: who sleeps is woken by the simulation, when it is his time.
class simulated_clock final : public clock_source {
 public:
    [[nodiscard]] time_point now() const noexcept override { return now_; }
    void attach(clock_listener&) override {}
    void detach(clock_listener&) noexcept override {}
    void begin_run(clock_listener&) noexcept override {}
    void end_run(clock_listener&) noexcept override {}
    bool begin_idle(clock_listener&, time_point, bool) noexcept override { return false; }
    void end_idle(clock_listener&) noexcept override {}

    void move_to(time_point time) noexcept { now_ = std::max(now_, time); }

 private:
    time_point now_{};
};

/// SplitMix64: small, and the same everywhere.
class seeded {
 public:
    explicit seeded(std::uint64_t seed) noexcept : state_(seed) {}

    [[nodiscard]] std::uint64_t next() noexcept {
        state_ += 0x9e3779b97f4a7c15U;
        std::uint64_t mixed = state_;
        mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
        mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
        return mixed ^ (mixed >> 31U);
    }
    [[nodiscard]] std::uint64_t below(std::uint64_t limit) noexcept { return next() % limit; }
    [[nodiscard]] bool one_in(std::uint64_t count) noexcept { return below(count) == 0; }

 private:
    std::uint64_t state_;
};

runtime_config simulated(runtime_config config, clock_source& clock) {
    constexpr unsigned usual_workers = 4;
    config.clock = &clock;
    if (config.workers == 0) config.workers = usual_workers;
    return config;
}

}  // namespace

struct simulation::state final : runtime::simulator {
    state(std::uint64_t wanted_seed, const runtime_config& config)
        : seed(wanted_seed),
          random(wanted_seed),
          awake(room_for_all()),
          simulated_runtime(simulated(config, clock), this) {}

    using member = runtime::state::member;

    const std::uint64_t seed;
    seeded random;
    simulated_clock clock;
    base::atomic<bool> is_never_stopped{false};
    std::uint64_t trace = 0;
    std::vector<member*> awake;
    runtime simulated_runtime;

    /// So that nothing fails when everything comes to its end, which may be for lack of memory.
    [[nodiscard]] static std::vector<member*> room_for_all() {
        std::vector<member*> room;
        room.reserve(detail::crew::most_seats);
        return room;
    }

    [[nodiscard]] runtime::state& inside() noexcept { return state_of(simulated_runtime); }
    /// Without the lock that guards them, because one thread drives everything. So it is not analysed.
    [[nodiscard]] std::list<member>& members() noexcept CHIME_NOT_ANALYSED { return inside().members; }

    void note(std::uint64_t what) noexcept { trace = (trace ^ what) * 0x100000001b3U + (trace >> 47U); }

    void find_awake();
    bool step();
    void turn(member& mine);
    [[nodiscard]] time_point next_deadline();
    std::size_t advance_to(time_point limit, const std::function<bool()>& is_over);
    void drive_until(const std::function<bool()>& is_over) override { advance_to(never, is_over); }
};

/// Who sleeps stays asleep until somebody wakes him or his time has come; now and then he wakes up for no reason.
void simulation::state::find_awake() {
    constexpr std::uint64_t steps_between_false_alarms = 64;
    awake.clear();
    const detail::ordinal now = detail::to_ordinal(clock.now());
    for (member& each : members()) {
        if (each.is_asleep && each.worker->is_parked() && each.worker->parked_until() > now) continue;
        awake.push_back(&each);
    }
    if (!awake.empty() && random.one_in(steps_between_false_alarms)) {
        auto& all = members();
        const auto one = std::next(all.begin(), static_cast<std::ptrdiff_t>(random.below(all.size())));
        if (std::find(awake.begin(), awake.end(), &*one) == awake.end()) awake.push_back(&*one);
    }
}

bool simulation::state::step() {
    constexpr std::uint64_t steps_between_beats = 16;
    find_awake();
    if (awake.empty()) return false;
    if (inside().metronome && random.one_in(steps_between_beats)) {
        note(1);
        inside().metronome->beat(clock.now());
        return true;
    }
    member& chosen = *awake[random.below(awake.size())];
    note(2 + chosen.id);
    turn(chosen);
    return true;
}

void simulation::state::turn(member& mine) {
    constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
    detail::worker& worker = *mine.worker;
    detail::worker::assume_owner(&worker);
    if (mine.is_asleep) {
        mine.is_asleep = false;
        worker.end_park();
    }
    const std::size_t most = random.one_in(2) ? unlimited : 1 + random.below(4);
    detail::turn_answer answer;
    try {
        answer = worker.turn({.is_leaving = is_never_stopped, .most = most});
    } catch (...) {
        if (!inside().config.on_exception) throw;
        inside().config.on_exception(std::current_exception());
        return;
    }
    note(answer.ran);
    if (answer.is_busy || answer.ran >= most) return;
    mine.is_asleep = worker.begin_park(answer.wake_at, is_never_stopped);
}

time_point simulation::state::next_deadline() {
    detail::ordinal first = detail::end_of_time;
    for (const member& each : members()) first = std::min(first, each.worker->parked_until());
    return first == detail::end_of_time ? never : detail::to_time_point(first);
}

std::size_t simulation::state::advance_to(time_point limit, const std::function<bool()>& is_over) {
    std::size_t steps = 0;
    while (!is_over()) {
        if (step()) {
            ++steps;
            continue;
        }
        const time_point next = next_deadline();
        if (next == never || next > limit) break;
        clock.move_to(next);
    }
    return steps;
}

simulation::simulation(std::uint64_t seed, const runtime_config& config)
    : state_(std::make_unique<state>(seed, config)) {}

simulation::~simulation() = default;

bool simulation::step() {
    return state_->step();
}

std::size_t simulation::settle() {
    std::size_t steps = 0;
    while (state_->step()) ++steps;
    return steps;
}

std::size_t simulation::advance_to(detail::any_deadline time) {
    const std::size_t steps = state_->advance_to(time.time(), [] { return false; });
    state_->clock.move_to(time.time() == never ? state_->clock.now() : time.time());
    return steps + settle();
}

std::size_t simulation::run() {
    return state_->advance_to(never, [] { return false; });
}

time_point simulation::now() const noexcept {
    return state_->clock.now();
}

std::uint64_t simulation::seed() const noexcept {
    return state_->seed;
}

std::uint64_t simulation::trace() const noexcept {
    return state_->trace;
}

runtime& simulation::get_runtime() noexcept {
    return state_->simulated_runtime;
}

}  // namespace chime::inline v0::testing
