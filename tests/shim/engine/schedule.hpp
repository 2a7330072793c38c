// SPDX-License-Identifier: MIT
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace chime::shim {

/// A place where a thread could have done something else: which thread, and how many such places it has passed before.
struct choice_point {
    unsigned thread = 0;
    std::uint32_t step = 0;

    friend auto operator<=>(const choice_point&, const choice_point&) = default;
};

/// What was done there that is not the usual.
struct deviation {
    enum class kind : std::uint8_t {
        switched,     ///< Another thread ran, number `what`.
        stale,        ///< The load gave the value that is `what` stores old.
        spurious,     ///< A weak compare-and-swap failed for no reason.
        false_alarm,  ///< Thread number `what` was woken for no reason.
        refused,      ///< There was no memory.
    };
    choice_point where;
    kind how = kind::switched;
    unsigned what = 0;
};
using schedule = std::vector<deviation>;

/// Who could run. The current one is among them unless it must let others run.
struct candidates {
    const std::vector<unsigned>& ready;
    unsigned current = 0;
    bool may_continue = true;
    bool is_near = false;    ///< The current one is about to touch something that the strategy cares for.
    bool is_asleep = false;  ///< It must, because it waits; otherwise because it tries again and again.
};

struct site;

/// Decides about an execution, step by step.
class strategy {
 public:
    strategy() = default;
    strategy(const strategy&) = delete;
    strategy& operator=(const strategy&) = delete;
    virtual ~strategy() = default;

    /// The number of the thread that goes on.
    [[nodiscard]] virtual unsigned pick_thread(choice_point where, const candidates& among) = 0;
    /// 0: the newest value. `is_near` as above.
    [[nodiscard]] virtual unsigned pick_value(choice_point where, unsigned count, bool is_near) = 0;
    /// 0: the load gives nothing that is stored later; otherwise which of so many guesses, from one on.
    [[nodiscard]] virtual unsigned foresees(choice_point, unsigned) { return 0; }
    /// Whatever is touched here, the strategy wants to know of it.
    [[nodiscard]] virtual bool cares_for(const site&) const noexcept { return false; }
    [[nodiscard]] virtual bool fails_spuriously(choice_point) { return false; }
    /// Memory is asked for while it is scarce.
    [[nodiscard]] virtual bool refuses_memory(choice_point) { return false; }
    /// Whom to wake for no reason; `nobody`: no one.
    [[nodiscard]] virtual unsigned pick_false_alarm(choice_point, const std::vector<unsigned>&) { return nobody; }

    static constexpr unsigned nobody = ~0U;
};

/// Whoever runs when nobody has decided otherwise: the current thread, as long as it can, and then the next one.
[[nodiscard]] unsigned usual_thread(const candidates& among) noexcept;

/// Follows a schedule, and does the usual where that says nothing.
class replay final : public strategy {
 public:
    explicit replay(const schedule& followed);
    [[nodiscard]] unsigned pick_thread(choice_point where, const candidates& among) override;
    [[nodiscard]] unsigned pick_value(choice_point where, unsigned count, bool is_near) override;
    [[nodiscard]] bool fails_spuriously(choice_point where) override;
    [[nodiscard]] bool refuses_memory(choice_point where) override;
    [[nodiscard]] unsigned pick_false_alarm(choice_point where, const std::vector<unsigned>& sleepers) override;

 private:
    [[nodiscard]] const deviation* find(choice_point where, deviation::kind how) const;
    std::multimap<choice_point, deviation> wanted_;
};

/// Drawn from a seed. What kind it is, uniform, random priorities, or those with a closer look at what a few places touch,
/// how often it takes old values, and whether there are false alarms, follows from the seed as well. `usual_steps` is about
/// how long an execution is.
[[nodiscard]] std::unique_ptr<strategy> strategy_of_seed(std::uint64_t seed, std::uint32_t usual_steps);

/// All schedules with at most so many preemptions and old values, one after the other; where memory is scarce, it is refused
/// nowhere, and then in each place in turn.
class exhaustive final : public strategy {
 public:
    exhaustive(unsigned preemptions, unsigned stale_values) noexcept
        : most_preemptions_(preemptions), most_stale_(stale_values) {}

    /// Before each execution; false: all were tried.
    [[nodiscard]] bool next();

    [[nodiscard]] unsigned pick_thread(choice_point where, const candidates& among) override;
    [[nodiscard]] unsigned pick_value(choice_point where, unsigned count, bool is_near) override;
    [[nodiscard]] bool refuses_memory(choice_point where) override;

 private:
    struct branch {
        unsigned taken = 0;
        unsigned count = 1;
        enum class cost : std::uint8_t { nothing, preemption, stale, refusal } how = cost::nothing;
    };
    [[nodiscard]] unsigned take(unsigned count, branch::cost how);

    unsigned most_preemptions_;
    unsigned most_stale_;
    unsigned preemptions_ = 0;
    unsigned stale_ = 0;
    unsigned refusals_ = 0;
    std::vector<branch> path_;
    std::size_t depth_ = 0;
    bool has_begun_ = false;
};

}  // namespace chime::shim
