// SPDX-License-Identifier: MIT
#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>
#include <chime/wheel.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

// One hot operation, so and so many times, for whoever counts the instructions; see count.sh. Everything is warm before.

namespace {

using namespace std::chrono_literals;

constexpr std::size_t pending = 1'000;
constexpr std::uint64_t operations_per_turn = 64;
constexpr std::uint64_t warm_up = 10'000;

/// Slots and delays, drawn without the help of anybody.
class draws {
 public:
    std::uint64_t next() noexcept {
        state_ = state_ * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
        return state_ >> 33U;
    }
    std::size_t slot() noexcept { return next() % pending; }
    std::chrono::nanoseconds delay() noexcept { return 1s + std::chrono::nanoseconds(next() << 3U); }

 private:
    std::uint64_t state_ = 1;
};

/// Arm, and cancel an older one, in a wheel.
class wheel_pairs {
 public:
    wheel_pairs() {
        for (chime::timer_id& each : ids_) each = wheel_.arm(start_ + draws_.delay(), 0);
    }
    void run(std::uint64_t count) {
        for (std::uint64_t each = 0; each < count; ++each) {
            chime::timer_id& its = ids_[draws_.slot()];
            wheel_.cancel(its);
            its = wheel_.arm(start_ + draws_.delay(), each);
        }
    }

 protected:
    std::chrono::steady_clock::time_point start_{};
    draws draws_;
    chime::timer_wheel<std::uint64_t> wheel_{{.start = start_}};
    std::array<chime::timer_id, pending> ids_;
};

class wheel_postponements : public wheel_pairs {
 public:
    void run(std::uint64_t count) {
        for (std::uint64_t each = 0; each < count; ++each)
            wheel_.postpone(ids_[draws_.slot()], start_ + draws_.delay());
    }
};

/// A loop on which user code runs again and again, 64 operations at a time.
template <class Step>
class loop_steps {
 public:
    loop_steps() {
        context_.post([this] {
            for (chime::timer_handle& each : handles_) each = context_.timers().after(draws_.delay(), [] {});
        });
        context_.poll();
    }
    ~loop_steps() {
        context_.timers().stop();
        context_.poll();
    }
    loop_steps(const loop_steps&) = delete;
    loop_steps& operator=(const loop_steps&) = delete;

    void run(std::uint64_t count) {
        for (std::uint64_t done = 0; done < count; done += operations_per_turn) {
            context_.post([this] {
                for (std::uint64_t each = 0; each < operations_per_turn; ++each) {
                    Step::apply(context_.timers(), handles_[draws_.slot()], draws_.delay());
                }
            });
            context_.poll();
        }
    }

 private:
    draws draws_;
    chime::testing::virtual_clock clock_{chime::testing::when_idle::stand_still};
    chime::io_context context_{{.clock = &clock_}};
    std::array<chime::timer_handle, pending> handles_;
};

struct pair_step {
    static void apply(chime::timers& timers, chime::timer_handle& which, std::chrono::nanoseconds delay) {
        timers.cancel(which);
        which = timers.after(delay, [] {});
    }
};

struct postpone_step {
    static void apply(chime::timers& timers, chime::timer_handle& which, std::chrono::nanoseconds delay) {
        timers.postpone(which, delay);
    }
};

/// A thread that is no worker cancels, and the loop takes back what is left.
class cancels_from_elsewhere {
 public:
    void run(std::uint64_t count) {
        for (std::uint64_t done = 0; done < count; done += pending) {
            context_.post([this] {
                for (chime::timer_handle& each : handles_) each = context_.timers().after(draws_.delay(), [] {});
            });
            context_.poll();
            for (const chime::timer_handle each : handles_) context_.timers().cancel(each);
            context_.poll();
        }
    }

 private:
    draws draws_;
    chime::testing::virtual_clock clock_{chime::testing::when_idle::stand_still};
    chime::io_context context_{{.clock = &clock_}};
    std::array<chime::timer_handle, pending> handles_;
};

/// A task sleeps again and again.
class sleeps {
 public:
    void run(std::uint64_t count) {
        chime::spawn_detached(context_, sleep(count));
        context_.run();
    }

 private:
    static chime::task<> sleep(std::uint64_t count) {
        for (std::uint64_t each = 0; each < count; ++each) co_await chime::sleep_for(1ms);
    }

    chime::testing::virtual_clock clock_;
    chime::io_context context_{{.clock = &clock_}};
};

/// A task is spawned and joined.
class joins {
 public:
    void run(std::uint64_t count) {
        chime::spawn_detached(context_, join(context_, count));
        context_.run();
    }

 private:
    static chime::task<> nothing() { co_return; }
    static chime::task<> join(chime::io_context& context, std::uint64_t count) {
        for (std::uint64_t each = 0; each < count; ++each) {
            auto joined = chime::spawn(context, nothing());
            co_await joined;
        }
    }

    chime::testing::virtual_clock clock_;
    chime::io_context context_{{.clock = &clock_}};
};

template <class Operation>
void measure(std::uint64_t count) {
    Operation operation;
    operation.run(warm_up + count);
}

struct named {
    std::string_view name;
    void (*measure)(std::uint64_t count);
};

constexpr std::array operations{
    named{"wheel_pair", &measure<wheel_pairs>},
    named{"wheel_postpone", &measure<wheel_postponements>},
    named{"pair", &measure<loop_steps<pair_step>>},
    named{"postpone", &measure<loop_steps<postpone_step>>},
    named{"cancel_from_elsewhere", &measure<cancels_from_elsewhere>},
    named{"sleep", &measure<sleeps>},
    named{"spawn_and_join", &measure<joins>},
};

}  // namespace

int main(int count, char** arguments) {
    for (const named& each : operations) {
        if (count != 3 || each.name != arguments[1]) continue;
        each.measure(std::strtoull(arguments[2], nullptr, 10));
        return 0;
    }
    std::fputs("usage: hot_operations OPERATION COUNT\noperations:", stderr);
    for (const named& each : operations) std::fprintf(stderr, " %s", each.name.data());
    std::fputs("\n", stderr);
    return 2;
}
