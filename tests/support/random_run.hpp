// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>

#include "support/random.hpp"
#include "support/virtual_time.hpp"
#include "support/wheel_duel.hpp"

namespace chime::test {

/// Where deadlines fall. The weights of a mix follow this order.
enum class delay_kind : std::uint8_t {
    nanosecond,
    microsecond,
    millisecond,
    second,
    hour,
    decade,
    end_of_time,
    past,
    equal,
    edge,
    tick
};
inline constexpr std::size_t delay_kinds = 11;

/// The character of a random run: how many timers, which operations how often, which delays.
struct operation_mix {
    const char* name;
    std::size_t population;  ///< About so many timers are kept pending.
    unsigned cancel;         ///< Weights of the operations; arming and firing share the rest of 100.
    unsigned postpone;
    unsigned advance;
    std::array<unsigned, delay_kinds> delays;  ///< Weights in the order of delay_kind.
    std::size_t budget;                        ///< Largest budget drawn; 0: always unlimited.
    unsigned inside_odds;                      ///< One on_due in so many interferes; 0: none does.
    std::int64_t stride_ns;                    ///< How far the clock usually moves at once, at most.

    friend std::ostream& operator<<(std::ostream& out, const operation_mix& mix) { return out << mix.name; }
};

// clang-format off
//                                             population cancel postpone advance  delays: ns us ms s h 10y end past equal edge tick  budget inside stride
inline constexpr operation_mix everything    {"everything",       300, 20, 20, 25, {1, 2, 3, 3, 2, 1, 1, 1, 2, 1, 1},    9,   4, 100'000'000};
inline constexpr operation_mix undisturbed   {"undisturbed",      200,  0,  0, 40, {1, 2, 3, 3, 1, 1, 1, 1, 2, 1, 1},   16,   0, 100'000'000};
inline constexpr operation_mix arming_inside {"arming_inside",     60,  5,  5, 30, {3, 3, 1, 0, 0, 0, 0, 3, 5, 0, 3},    5,   1, 10'000};
inline constexpr operation_mix few           {"few",                4, 20, 20, 30, {1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1},    2,   3, 1'000'000'000};
inline constexpr operation_mix one_tick      {"one_tick",        5000, 10, 10,  4, {2, 0, 0, 0, 0, 0, 0, 1, 6, 0, 6},  100,   8, 100};
inline constexpr operation_mix timeouts      {"timeouts",       20000, 42,  4,  5, {0, 0, 1, 6, 1, 0, 0, 0, 0, 0, 0},    0,   0, 1'000'000};
inline constexpr operation_mix keep_alive    {"keep_alive",     20000,  2, 75, 10, {0, 0, 2, 6, 1, 0, 0, 0, 0, 0, 0},   50,  50, 1'000'000};
inline constexpr operation_mix far_and_near  {"far_and_near",    1000, 15, 15, 30, {3, 3, 0, 0, 1, 5, 1, 0, 0, 1, 1},   20,  10, 10'000};
inline constexpr operation_mix cancel_far    {"cancel_far",      3000, 44,  4,  8, {0, 1, 0, 0, 8, 4, 2, 0, 0, 0, 0},    0,   0, 1'000'000};
inline constexpr operation_mix crowd         {"crowd",         200000, 20, 15,  3, {0, 1, 4, 4, 1, 0, 0, 0, 1, 0, 0},  500, 100, 1'000'000};
// clang-format on

inline constexpr std::array all_mixes = {everything, undisturbed, arming_inside, few,        one_tick,
                                         timeouts,   keep_alive,  far_and_near,  cancel_far, crowd};

/// The resolutions that tests use: the finest, the coarsest but two, and those that people choose.
inline constexpr std::array<std::int64_t, 5> resolutions_ns = {1, 1 << 10, 1 << 18, 1 << 20, 1 << 30};

/// A random walk of one duel. Throws `disagreement`; the caller says how to replay it.
template <unsigned GenerationBits = 32>
class random_run {
 public:
    using duel = wheel_duel<GenerationBits>;

    random_run(const wheel_config& config, const operation_mix& mix, std::uint64_t seed, typename duel::audit when)
        : duel_(config, when), mix_(mix), random_(seed), resolution_ns_(config.resolution.count()) {}

    void run(std::uint64_t operations) {
        for (std::size_t i = 0; i < std::min<std::uint64_t>(mix_.population, operations / 4); ++i) {
            duel_.arm(draw_deadline());
        }
        for (std::uint64_t i = 0; i < operations; ++i) {
            step();
            most_pending_ = std::max(most_pending_, duel_.live().size());
            if (i % 512 == 0) {
                check_memory();
            }
        }
    }

    /// Lets everything that is left fire, by the last moment of time.
    void finish() {
        duel_.drain(time_point::max(), 1 + random_.below(100));
        if (duel_.model().size() != 0) {
            throw disagreement("something is still pending at the end of time");
        }
        check_memory();
    }

 private:
    struct thrown_inside {};

    void step() {
        const std::uint64_t dice = random_.below(100);
        const std::size_t pending = duel_.live().size();
        if (dice < mix_.advance) {
            advance();
        } else if (dice < mix_.advance + mix_.cancel) {
            if (pending > mix_.population / 2) {
                duel_.cancel(any_number());
            } else {
                duel_.arm(draw_deadline());
            }
        } else if (dice < mix_.advance + mix_.cancel + mix_.postpone) {
            if (duel_.model().armed() != 0) {
                duel_.postpone(any_number(), draw_deadline());
            }
        } else if (random_.one_in(200)) {
            duel_.try_forged(forged(), draw_deadline());
        } else if (mix_.cancel != 0 && random_.one_in(20'000 + 10 * mix_.population)) {
            duel_.clear();
        } else if (pending < 2 * mix_.population) {
            duel_.arm(draw_deadline());
        } else if (mix_.cancel != 0) {
            duel_.cancel(any_number());
        } else if (random_.one_in(500)) {
            duel_.clear();
        } else {
            advance();
        }
    }

    void advance() {
        const time_point now = draw_now();
        const std::size_t budget =
            mix_.budget == 0 || random_.one_in(8) ? duel::unlimited : random_.below(mix_.budget + 1);
        try {
            duel_.advance(now, budget, [this](duel&) { interfere(); });
        } catch (const thrown_inside&) {
            duel_.agree("an exception from on_due");
        }
        if (budget != duel::unlimited && budget != 0 && random_.one_in(2)) {
            duel_.drain(now, budget);
        }
    }

    /// What a user's on_due may do to the wheel that is calling it.
    void interfere() {
        if (mix_.inside_odds == 0 || !random_.one_in(mix_.inside_odds)) {
            return;
        }
        switch (random_.below(16)) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4: duel_.arm(draw_deadline()); break;
        case 5: duel_.arm(duel_.model().now()); break;
        case 6:
        case 7:
        case 8: duel_.cancel(any_number()); break;
        case 9:
        case 10:
        case 11: duel_.postpone(any_number(), draw_deadline()); break;
        case 12: duel_.postpone(any_number(), later(duel_.model().now(), -random_.between(0, 1000))); break;
        case 13: duel_.try_forged(forged(), draw_deadline()); break;
        case 14: duel_.advance_again(later(duel_.model().now(), 1'000'000)); break;
        default:
            if (random_.one_in(50)) {
                duel_.clear();
            } else if (random_.one_in(4)) {
                throw thrown_inside{};
            }
        }
    }

    /// Mostly a pending timer, sometimes one that is long gone.
    std::uint64_t any_number() {
        const auto& live = duel_.live();
        return live.empty() || random_.one_in(10) ? random_.below(duel_.model().armed())
                                                  : live[random_.below(live.size())];
    }

    timer_id forged() {
        timer_id id;
        if (duel_.model().armed() != 0) {
            id = duel_.model().id_of(any_number());
        }
        switch (random_.below(6)) {
        case 0: return timer_id{};
        case 1: id.wheel += 1 + static_cast<std::uint32_t>(random_.below(3)); break;
        case 2: id.index = static_cast<std::uint32_t>(most_pending_ * 4 + 100'000 + random_.below(1U << 30)); break;
        case 3: id.wheel = 0; break;
        case 4: id.index = 0xFFFFFFFFU; break;
        default: id.wheel = ~id.wheel; break;
        }
        if constexpr (GenerationBits < 32) {
            for (const std::uint64_t number : duel_.live()) {
                if (duel_.model().id_of(number) == id)
                    return timer_id{};  // An identity that the wheel has taken later.
            }
        }
        return id;
    }

    delay_kind draw_kind() {
        unsigned total = 0;
        for (const unsigned weight : mix_.delays) {
            total += weight;
        }
        std::uint64_t dice = random_.below(total);
        std::size_t kind = 0;
        while (dice >= mix_.delays[kind]) {
            dice -= mix_.delays[kind++];
        }
        return static_cast<delay_kind>(kind);
    }

    time_point draw_deadline() {
        const time_point now = duel_.model().now();
        switch (draw_kind()) {
        case delay_kind::nanosecond: return later(now, random_.between(0, 1'000));
        case delay_kind::microsecond: return later(now, random_.between(0, 1'000'000));
        case delay_kind::millisecond: return later(now, random_.between(0, 100'000'000));
        case delay_kind::second: return later(now, random_.between(0, 60'000'000'000));
        case delay_kind::hour: return later(now, random_.between(0, 72'000'000'000'000));
        case delay_kind::decade: return later(now, 10 * year_ns + random_.between(-1'000'000'000, 1'000'000'000));
        case delay_kind::end_of_time: return later(never, -random_.between(0, 3) / 2);
        case delay_kind::past:
            return random_.one_in(8) ? time_point::min() : later(now, -random_.between(0, 10'000'000'000));
        case delay_kind::equal: {
            const auto& live = duel_.live();
            return live.empty() ? now : *duel_.model().deadline_of(live[random_.below(live.size())]);
        }
        case delay_kind::edge:
            return later(now, later(at_ns(power_ns(static_cast<unsigned>(random_.below(63)))), random_.between(-1, 1))
                                  .time_since_epoch()
                                  .count());
        case delay_kind::tick: break;
        }
        return later(now, random_.between(0, resolution_ns_));
    }

    /// Where the clock goes next. Long jumps are rare, or all of time would be used up after a few operations.
    time_point draw_now() {
        const time_point now = duel_.model().now();
        const auto next = duel_.model().next_deadline();
        time_point chosen = now;
        switch (random_.below(10)) {
        case 0:
        case 1:
        case 2:
        case 3: chosen = next.value_or(now); break;
        case 4: chosen = next ? later(*next, -1) : now; break;
        case 5: chosen = later(now, -random_.between(0, 1'000'000'000)); break;
        case 6: chosen = later(now, random_.between(0, resolution_ns_)); break;
        case 7: chosen = now; break;
        default: chosen = draw_deadline(); break;
        }
        if (chosen > later(now, mix_.stride_ns) && !random_.one_in(512 + mix_.population)) {
            chosen = later(now, random_.between(0, mix_.stride_ns));
        }
        if (chosen > later(now, year_ns) && !random_.one_in(16)) {
            chosen = later(now, 3'600'000'000'000);
        }
        return chosen;
    }

    /// Storage is a constant and so many bytes for each timer of the largest crowd so far. The share is generous:
    /// a record, its ticket, as many stale tickets again, and arrays that grow by doubling.
    void check_memory() {
        const std::size_t bound = fixed_bytes + bytes_per_timer * most_pending_;
        if (duel_.wheel().memory() > bound) {
            throw disagreement(std::to_string(duel_.wheel().memory()) + " bytes for at most " +
                               std::to_string(most_pending_) + " timers");
        }
    }
    static constexpr std::size_t fixed_bytes = std::size_t{4} << 20;
    static constexpr std::size_t bytes_per_timer = 256;

    duel duel_;
    operation_mix mix_;
    random_source random_;
    std::int64_t resolution_ns_;
    std::size_t most_pending_ = 0;
};

}  // namespace chime::test
