// SPDX-License-Identifier: MIT
#pragma once

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/testing.hpp>
#include <chime/timers.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace chime::test {

/// Uses right, stale, foreign, doubled and forged handles on two contexts, as a source of numbers wants it, and knows what
/// the answers must be. The first thing that is wrong stays in problem(). One thread, virtual time.
template <class Numbers>
class storm_of_handles {
 public:
    explicit storm_of_handles(Numbers& numbers) : numbers_(numbers) {
        for (std::uint32_t which = 0; which < contexts; ++which) names_[which] = name_of(which);
    }

    void step() {
        switch (numbers_.below(10)) {
        case 0:
        case 1: arm(); break;
        case 2: spawn_sleeper(); break;
        case 3:
        case 4: cancel(known(), some_context()); break;
        case 5: postpone(known(), some_context()); break;
        case 6: cancel(forged(), some_context()); break;
        case 7: postpone(forged(), some_context()); break;
        case 8: advance(); break;
        default: inside(); break;
        }
    }

    /// Lets everything come to its end.
    void finish() {
        for (std::uint32_t which = 0; which < contexts; ++which) {
            homes_[which].advance(std::chrono::hours{100});
            const timer_stats sums = homes_[which]->timers().stats();
            require(sums.pending == 0, "a timer is left");
            require(sums.tasks == 0 && sums.waiting == 0, "a task is left");
            require(sums.armed == sums.fired + sums.cancelled, "L1: a timer was lost or counted twice");
            require(sums.suspensions == sums.resumed() + sums.destroyed, "L2: a resumption was lost or doubled");
        }
        for (const entry& each : all_) require(each.state != stage::pending, "a timer was lost");
        require(sleeps_ended_ == sleeps_begun_, "a sleeper was lost");
        require(sleeps_cancelled_ == sleeps_told_, "a sleeper was told something else than whoever cancelled it");
    }

    [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
    static constexpr std::uint32_t contexts = 2;
    static constexpr std::size_t most_timers = 200;

    enum class stage : std::uint8_t { pending, fired, cancelled };
    struct entry {
        timer_handle handle;
        time_point deadline;
        std::uint32_t home;
        stage state = stage::pending;
    };

    void require(bool holds, const char* sentence) {
        if (!holds && problem_.empty()) problem_ = sentence;
    }

    /// What a context calls itself in handles.
    std::uint32_t name_of(std::uint32_t which) {
        const timer_handle sample = homes_[which]->timers().after(std::chrono::hours{1}, [] {});
        homes_[which]->timers().cancel(sample);
        return sample.runtime;
    }

    std::uint32_t some_context() { return static_cast<std::uint32_t>(numbers_.below(contexts)); }
    duration some_delay() { return std::chrono::microseconds{numbers_.below(3'000'000)}; }

    void arm() {
        if (all_.size() >= most_timers) return;
        const std::uint32_t home = some_context();
        const std::size_t number = all_.size();
        const duration delay = some_delay();
        all_.push_back({.handle = {}, .deadline = homes_[home].now() + delay, .home = home});
        all_[number].handle = homes_[home]->timers().after(delay, [this, number] { fire(number); });
    }

    void fire(std::size_t number) {
        entry& its = all_[number];
        require(its.state == stage::pending, "fired twice, or after it was cancelled");
        require(homes_[its.home].now() >= its.deadline, "fired early");
        its.state = stage::fired;
    }

    task<> sleep(std::uint32_t home, duration delay) {
        const time_point deadline = homes_[home].now() + delay;
        auto pause = sleep_for(delay);
        const wake_reason reason = co_await pause;
        ++sleeps_ended_;
        if (reason == wake_reason::cancelled) {
            ++sleeps_told_;
        } else if (!are_sleeps_moved_) {
            require(homes_[home].now() >= deadline, "woken early");
        }
    }

    void spawn_sleeper() {
        if (sleeps_begun_ >= most_timers) return;
        const std::uint32_t home = some_context();
        ++sleeps_begun_;
        spawn_detached(*homes_[home], sleep(home, some_delay()));
        if (numbers_.below(2) == 0) homes_[home].settle();
    }

    /// One that was armed: perhaps pending, perhaps long gone.
    timer_handle known() { return all_.empty() ? timer_handle{} : all_[numbers_.below(all_.size())].handle; }

    /// One that nobody was given; it may still name something, by chance.
    timer_handle forged() {
        timer_handle made = known();
        switch (numbers_.below(6)) {
        case 0: made.life += numbers_.below(5); break;
        case 1: made.life ^= std::uint64_t{1} << numbers_.below(64); break;
        case 2: made.index ^= std::uint32_t{1} << numbers_.below(32); break;
        case 3: made.runtime = static_cast<std::uint32_t>(numbers_.below(20)); break;
        case 4:  // A task, and any of its waits.
            made.index = 0x8000'0000U | static_cast<std::uint32_t>(numbers_.below(8));
            made.life = numbers_.below(40);
            made.runtime = names_[some_context()];
            break;
        default:
            made.life = numbers_.below(1U << 30U) << numbers_.below(35);
            made.index = static_cast<std::uint32_t>(numbers_.below(1U << 31U)) << numbers_.below(2);
            break;
        }
        return made;
    }

    /// The pending timer that this names, for this context, if there is one. The worker in it is but a hint.
    entry* named(timer_handle which, std::uint32_t home) {
        const auto found = std::find_if(all_.begin(), all_.end(), [&](const entry& each) {
            return each.home == home && each.state == stage::pending && each.handle.runtime == which.runtime &&
                   each.handle.index == which.index && each.handle.timer_id() == which.timer_id();
        });
        return found != all_.end() ? &*found : nullptr;
    }

    void cancel(timer_handle which, std::uint32_t home) {
        entry* const expected = named(which, home);
        const std::uint64_t before = homes_[home]->timers().stats().pending;
        const cancel_result answer = numbers_.below(2) == 0 ? homes_[home]->timers().cancel(which)
                                                            : homes_[home]->timers().cancel_and_wait(which);
        if (which.is_sleep() && which.runtime == names_[home]) {
            if (answer == cancel_result::cancelled) ++sleeps_cancelled_;
            return;  // Whether it named one is for the ledger to say.
        }
        require(answer == (expected != nullptr ? cancel_result::cancelled : cancel_result::gone),
                "cancel gave the wrong answer");
        require(homes_[home]->timers().stats().pending == before - (expected != nullptr ? 1 : 0),
                "cancel touched a stranger");
        if (expected != nullptr) expected->state = stage::cancelled;
    }

    void postpone(timer_handle which, std::uint32_t home) {
        entry* const expected = named(which, home);
        const duration delay = some_delay();
        const time_point deadline = homes_[home].now() + delay;
        const bool answer = homes_[home]->timers().postpone(which, delay);
        if (which.is_sleep() && which.runtime == names_[home]) {
            are_sleeps_moved_ = are_sleeps_moved_ || answer;
            return;
        }
        require(answer == (expected != nullptr), "postpone gave the wrong answer");
        if (expected != nullptr) expected->deadline = deadline;
    }

    void advance() {
        const std::uint32_t home = some_context();
        homes_[home].advance(some_delay() / 8);
        for (const entry& each : all_) {
            require(each.state != stage::pending || each.home != home || each.deadline > homes_[home].now(),
                    "overdue and still pending");
        }
    }

    /// The same from a callback.
    void inside() {
        const std::uint32_t home = some_context();
        homes_[home]->post([this] {
            cancel(known(), some_context());
            postpone(forged(), some_context());
            cancel(forged(), some_context());
        });
        homes_[home].settle();
    }

    Numbers& numbers_;
    std::array<testing::virtual_context, contexts> homes_;
    std::array<std::uint32_t, contexts> names_{};
    std::vector<entry> all_;
    std::uint64_t sleeps_begun_ = 0;
    std::uint64_t sleeps_ended_ = 0;
    std::uint64_t sleeps_told_ = 0;
    std::uint64_t sleeps_cancelled_ = 0;
    bool are_sleeps_moved_ = false;
    std::string problem_;
};

}  // namespace chime::test
