// SPDX-License-Identifier: MIT
#pragma once

#include "shim/engine/fiber.hpp"
#include "shim/engine/memory.hpp"
#include "shim/engine/races.hpp"
#include "shim/engine/schedule.hpp"
#include "shim/engine/sites.hpp"

#include <chime/time.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace chime::shim {

/// How an execution has ended.
struct outcome {
    bool has_failed = false;
    bool has_foreseen = false;  ///< What was stored later; it has come true.
    std::string message;
    std::uint32_t steps = 0;
    std::uint32_t decisions = 0;  ///< Steps at which there was somebody else to run.
    schedule taken;               ///< What leads here again.
    std::vector<std::string> trace;
};

/// Some threads that run to their ends, as fibers on one thread, one step at a time. Who has the next step is up to a
/// strategy. Time stands still while anybody can run, and then jumps to the first deadline that somebody waits for.
///
/// It fails if somebody says so, if nobody can run although not all have ended, or if it does not come to an end.
class execution {
 public:
    struct options {
        bool traces = false;
        std::uint32_t most_steps = 100'000;
    };

    /// There is one at a time.
    [[nodiscard]] static outcome run(const std::function<void()>& body, strategy& decides, const options& wanted);

    /// The one that is running, if this is inside of it and not in the middle of its own bookkeeping.
    [[nodiscard]] static execution* current() noexcept { return is_inside_ ? only_ : nullptr; }

    // --- For the thread that runs.

    /// What follows is a step at this place, on this address.
    void approach(site& where, const void* address);
    /// Others may run before what follows.
    void step();
    /// Others run, if there are any.
    void yield();
    /// Sleeps until somebody wakes whoever waits for `what`, or until the deadline; true: that has passed.
    bool block(const void* what, const char* how, time_point deadline = never, bool may_wake_falsely = false);
    /// Wakes up to `most` of those that wait for it; answers how many there were.
    unsigned wake(const void* what, unsigned most);
    [[nodiscard]] bool is_awaited(const void* what) const noexcept;
    /// True: the wake-up that this thread is about to send is lost. See lost_wake.
    [[nodiscard]] bool loses_wake();
    /// A signal comes to all who wait for what a signal interrupts.
    void interrupt_all();
    /// Looks after those whose fibers say who they are; `what` is what they wait for. Fails the execution if they should not
    /// sleep: when one falls asleep, and when all others sleep or wait as well, before time goes on.
    struct sleep_watch {
        void (*falls_asleep)(execution& in, const fiber& who);
        void (*sleeps_on)(execution& in, const fiber& who);
    };
    static sleep_watch watch;
    [[noreturn]] void fail(std::string message);

    unsigned start(std::function<void()> body, std::string name);
    void join(unsigned thread);

    /// There is no other thread, or it has ended and this one knows all that it did.
    [[nodiscard]] bool is_alone() const noexcept { return count_ - joined_ == 1; }
    [[nodiscard]] fiber& running() noexcept { return *running_; }
    [[nodiscard]] memory_view& view() noexcept { return running_->view; }
    [[nodiscard]] const std::string& name_of(unsigned thread) const noexcept { return fibers_[thread]->name; }
    [[nodiscard]] time_point now() const noexcept { return now_; }
    [[nodiscard]] memory::choice values() noexcept { return {pick_value, this}; }
    [[nodiscard]] bool fails_spuriously();
    /// What this load gives is stored later: 0, it is not so; otherwise the number of the guess, from one on.
    [[nodiscard]] unsigned foresees(const void* address, unsigned bytes);
    void remember(const void* address, std::uint64_t value);
    /// True: there is no memory for what this thread asks for. See scarce_memory.
    [[nodiscard]] bool refuses_memory();
    unsigned refusals_left = 0;
    /// How many threads have asked for a number of their own. In every execution they are the first ones.
    std::uint32_t numbered_threads = 0;

    /// For whoever wants to know why it does not come to an end.
    [[nodiscard]] std::string where_all_stand() const;
    /// The same, from inside a signal, by a program that ends.
    static void tell_where_all_stand();

    [[nodiscard]] bool is_traced() const noexcept { return options_.traces; }
    /// For the trace. Whatever has no place of its own is told with the last one that the thread has passed.
    void note(const std::string& what);
    void note(const std::string& what, const site& where);

    /// What who locks a mutex learns from who has unlocked it.
    std::unordered_map<const void*, vector_clock> unlocked;

    static memory& words();
    static races& plain();

    /// While it lives, what is done is the engine's own affair.
    class pause {
     public:
        pause() noexcept : before_(is_inside_) { is_inside_ = false; }
        pause(const pause&) = delete;
        pause& operator=(const pause&) = delete;
        ~pause() { is_inside_ = before_; }

     private:
        bool before_;
    };

 private:
    execution(strategy& decides, const options& wanted) : decides_(decides), options_(wanted) {}

    void choose(bool may_continue);
    void let_others_run();
    void look_after_sleepers();
    void switch_to(fiber& next);
    [[nodiscard]] bool advance_time();
    void sound_false_alarm(choice_point where);
    [[noreturn]] void leave();
    [[noreturn]] void end_fiber();
    void add_to_trace(const std::string& what, const std::string& place);
    static unsigned pick_value(void* self, unsigned count);
    static void enter(boost::context::detail::transfer_t from);
    static void crashed(int signal);
    static void terminated();
    static std::vector<std::unique_ptr<fiber>>& all_fibers();

    static execution* only_;
    static bool is_inside_;

    strategy& decides_;
    const options options_;
    outcome outcome_;
    std::array<fiber*, most_threads> fibers_{};
    unsigned count_ = 0;
    unsigned joined_ = 0;  ///< By the first one.
    bool has_lost_wake_ = false;
    fiber* running_ = nullptr;
    fiber* previous_ = nullptr;
    boost::context::detail::fcontext_t outside_ = nullptr;
    time_point now_{};
    std::vector<unsigned> ready_;
    std::vector<unsigned> sleepers_;
    choice_point here_;
    std::array<std::uintptr_t, 8> cared_for_{};  ///< Lines that the strategy cares for.
    std::size_t cared_for_count_ = 0;
    static constexpr std::uint32_t most_steps_in_a_row = 500;
    std::uint32_t steps_in_a_row_ = 0;
};

}  // namespace chime::shim
