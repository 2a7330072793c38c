// SPDX-License-Identifier: MIT
//
// Reads bytes as a sequence of operations on a wheel and compares it with the sorted model after each of them.
//
// libFuzzer supplies the bytes in the `fuzz` preset. Ordinary builds link the same function with replay_main.cpp.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "support/virtual_time.hpp"
#include "support/wheel_duel.hpp"

namespace chime::test {
namespace {

/// Takes numbers off the front of the input; zeros when it is used up.
class byte_reader {
 public:
    byte_reader(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

    bool empty() const { return at_ == end_; }
    std::uint8_t byte() { return empty() ? std::uint8_t{0} : *at_++; }
    std::uint64_t word(unsigned bytes) {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < bytes; ++i) {
            value = value << 8 | byte();
        }
        return value;
    }

 private:
    const std::uint8_t* at_;
    const std::uint8_t* end_;
};

struct thrown_by_on_due {};

template <unsigned GenerationBits>
class fuzz_run {
 public:
    using duel_type = wheel_duel<GenerationBits>;

    fuzz_run(byte_reader& input, const wheel_config& config) : input_(input), duel_(config) {}

    void run() {
        for (int operations = 0; !input_.empty() && operations < 4'000; ++operations) {
            step();
            if (operations % 8 == 7) {  // looking at all slots costs far more than the operation
                duel_.check_invariants();
            }
        }
        duel_.check_invariants();
        duel_.drain(time_point::max(), 1 + input_.byte());
        if (duel_.model().size() != 0) {
            throw disagreement("something is still pending at the end of time");
        }
    }

 private:
    void step() {
        switch (const std::uint8_t code = input_.byte(); code % 16) {
        case 0:
        case 1:
        case 2:
        case 3: duel_.arm(time()); break;
        case 4: arm_many(); break;
        case 5:
        case 6: on_some_number([this](std::uint64_t number) { duel_.cancel(number); }); break;
        case 7:
        case 8:
        case 9: on_some_number([this](std::uint64_t number) { duel_.postpone(number, time()); }); break;
        case 10:
        case 11: advance(duel_type::unlimited); break;
        case 12: advance(input_.byte() % 8); break;
        case 13: duel_.drain(time(), 1 + input_.byte() % 32); break;
        case 14: duel_.try_forged(forged(), time()); break;
        default:
            if (code == 0xFF) {
                duel_.clear();
            } else {
                duel_.advance(duel_.model().next_deadline().value_or(duel_.model().now()));
            }
        }
    }

    void arm_many() {
        const time_point first = time();
        const std::int64_t apart_ns = input_.byte();
        for (int i = input_.byte(); i > 0; --i) {
            duel_.arm(later(first, i * apart_ns));
        }
    }

    void advance(std::size_t budget) {
        const time_point now = time();
        int interferences = input_.byte() % 8;
        try {
            duel_.advance(now, budget, [&](duel_type&) {
                if (interferences-- > 0) {
                    interfere();
                }
            });
        } catch (const thrown_by_on_due&) {
            duel_.agree("an exception from on_due");
        }
    }

    void interfere() {
        switch (const std::uint8_t code = input_.byte(); code % 8) {
        case 0:
        case 1: duel_.arm(time()); break;
        case 2: on_some_number([this](std::uint64_t number) { duel_.cancel(number); }); break;
        case 3:
        case 4: on_some_number([this](std::uint64_t number) { duel_.postpone(number, time()); }); break;
        case 5: duel_.advance_again(time()); break;
        case 6: throw thrown_by_on_due{};
        default:
            if (code == 0xFF) {
                duel_.clear();
            }
        }
    }

    /// Relative to now in every magnitude, equal to an existing deadline, or at the ends of time.
    time_point time() {
        const std::uint8_t code = input_.byte();
        const time_point now = duel_.model().now();
        const unsigned size = code >> 5;  // 0 .. 7 bytes of distance
        const auto distance_ns = static_cast<std::int64_t>(input_.word(size));
        switch (code & 7U) {
        case 0:
        case 1:
        case 2:
        case 3: return later(now, distance_ns);
        case 4: return later(now, -distance_ns);
        case 5:
            return duel_.live().empty() ? now : *duel_.model().deadline_of(duel_.live()[code % duel_.live().size()]);
        case 6: return later(time_point::max(), -(distance_ns & 3));
        default:
            return (code & 8U) != 0
                       ? time_point::min()
                       : later(now, power_ns(static_cast<unsigned>(distance_ns & 63)) - ((code >> 4) & 1U));
        }
    }

    template <class Action>
    void on_some_number(const Action& action) {
        const std::uint64_t choice = input_.word(2);
        const auto& live = duel_.live();
        if (!live.empty() && (choice & 7U) != 0) {
            action(live[choice % live.size()]);
        } else if (duel_.model().armed() != 0) {
            action(choice % duel_.model().armed());
        }
    }

    /// Any bits at all, but never what is the id of a timer that was really armed.
    timer_id forged() {
        timer_id id{static_cast<std::uint32_t>(input_.word(2)), static_cast<std::uint32_t>(input_.word(1)), 0};
        if (duel_.model().armed() != 0) {
            id.wheel = duel_.model().id_of(0).wheel;
        }
        for (const std::uint64_t number : duel_.live()) {
            if (duel_.model().id_of(number) == id) {
                id.wheel = ~id.wheel;
                break;
            }
        }
        return id;
    }

    byte_reader& input_;
    duel_type duel_;
};

wheel_config config_from(byte_reader& input) {
    static constexpr int resolution_exponents[] = {0, 1, 7, 10, 16, 18, 20, 30, 32};
    wheel_config config;
    config.resolution =
        nanoseconds(std::int64_t{1} << resolution_exponents[input.byte() % std::size(resolution_exponents)]);
    const std::uint8_t start = input.byte();
    config.start = start == 255 ? time_point::min() : at_ns(power_ns(start % 63) + (start / 63) - 2);
    config.stale_slack = 64;
    return config;
}

}  // namespace
}  // namespace chime::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace chime::test;
    byte_reader input(data, size);
    const bool short_lived = (input.byte() & 1U) != 0;
    const chime::wheel_config config = config_from(input);
    try {
        if (short_lived) {
            fuzz_run<4>(input, config).run();
        } else {
            fuzz_run<32>(input, config).run();
        }
    } catch (const disagreement& e) {
        std::fprintf(stderr, "the wheel and the model disagree: %s\n", e.what());
        std::abort();
    }
    return 0;
}
