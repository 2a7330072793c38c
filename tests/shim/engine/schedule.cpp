// SPDX-License-Identifier: MIT
#include "shim/engine/schedule.hpp"

#include "shim/engine/sites.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace chime::shim {

unsigned usual_thread(const candidates& among) noexcept {
    if (among.may_continue) return among.current;
    for (const unsigned each : among.ready) {
        if (each > among.current) return each;
    }
    return among.ready.front();
}

// --- Following.

replay::replay(const schedule& followed) {
    for (const deviation& each : followed) wanted_.emplace(each.where, each);
}

const deviation* replay::find(choice_point where, deviation::kind how) const {
    const auto [first, last] = wanted_.equal_range(where);
    for (auto each = first; each != last; ++each) {
        if (each->second.how == how) return &each->second;
    }
    return nullptr;
}

unsigned replay::pick_thread(choice_point where, const candidates& among) {
    const deviation* const wanted = find(where, deviation::kind::switched);
    const bool is_there =
        wanted != nullptr && std::find(among.ready.begin(), among.ready.end(), wanted->what) != among.ready.end();
    return is_there ? wanted->what : usual_thread(among);
}

unsigned replay::pick_value(choice_point where, unsigned count, bool) {
    const deviation* const wanted = find(where, deviation::kind::stale);
    return wanted != nullptr ? std::min(wanted->what, count - 1) : 0;
}

bool replay::fails_spuriously(choice_point where) {
    return find(where, deviation::kind::spurious) != nullptr;
}

bool replay::refuses_memory(choice_point where) {
    return find(where, deviation::kind::refused) != nullptr;
}

unsigned replay::pick_false_alarm(choice_point where, const std::vector<unsigned>& sleepers) {
    const deviation* const wanted = find(where, deviation::kind::false_alarm);
    if (wanted == nullptr || std::find(sleepers.begin(), sleepers.end(), wanted->what) == sleepers.end()) return nobody;
    return wanted->what;
}

// --- At random.

namespace {

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
    [[nodiscard]] unsigned below(std::uint64_t limit) noexcept { return static_cast<unsigned>(next() % limit); }
    [[nodiscard]] bool one_in(unsigned count) noexcept { return count != 0 && below(count) == 0; }

 private:
    std::uint64_t state_;
};

/// What random strategies have in common: old values, false alarms and refusals.
class drawn : public strategy {
 public:
    explicit drawn(std::uint64_t seed) : random(seed), refusals_(~seed) {
        constexpr std::array<unsigned, 4> stale_odds = {0, 16, 4, 2};
        constexpr std::array<unsigned, 4> refusal_odds = {1, 2, 4, 12};
        refusal_one_in_ = refusal_odds[refusals_.below(4)];
        stale_one_in_ = stale_odds[random.below(4)];
        spurious_one_in_ = random.one_in(2) ? 16 : 0;
        alarm_one_in_ = random.one_in(4) ? 64 : 0;
    }

    [[nodiscard]] unsigned pick_value(choice_point, unsigned count, bool) override {
        if (!random.one_in(stale_one_in_)) return 0;
        return random.below(count);
    }
    [[nodiscard]] unsigned foresees(choice_point, unsigned count) override {
        constexpr unsigned odds = 3;
        return random.one_in(odds) ? 1 + random.below(count) : 0;
    }
    [[nodiscard]] bool fails_spuriously(choice_point) override { return random.one_in(spurious_one_in_); }
    [[nodiscard]] bool refuses_memory(choice_point) override { return refusals_.one_in(refusal_one_in_); }
    [[nodiscard]] unsigned pick_false_alarm(choice_point, const std::vector<unsigned>& sleepers) override {
        if (sleepers.empty() || !random.one_in(alarm_one_in_)) return nobody;
        return sleepers[random.below(sleepers.size())];
    }

 protected:
    seeded random;

 private:
    unsigned stale_one_in_;
    unsigned spurious_one_in_;
    unsigned alarm_one_in_;
    seeded refusals_;  ///< Of their own: whoever allocates once more has the same schedule as before.
    unsigned refusal_one_in_;
};

/// Any thread, every now and then.
class uniform final : public drawn {
 public:
    explicit uniform(std::uint64_t seed) : drawn(seed) {
        constexpr std::array<unsigned, 4> odds = {2, 4, 12, 40};
        switch_one_in_ = odds[random.below(odds.size())];
    }

    [[nodiscard]] unsigned pick_thread(choice_point, const candidates& among) override {
        if (among.may_continue && !random.one_in(switch_one_in_)) return among.current;
        const unsigned picked = among.ready[random.below(among.ready.size())];
        // Who has to let others run does so, if there are any.
        return !among.may_continue && picked == among.current ? usual_thread(among) : picked;
    }

 private:
    unsigned switch_one_in_;
};

/// Every thread has a priority, and the highest that can run does; at a few steps, the one that runs becomes the last.
/// A bug that needs n such steps is met with a probability of at least 1 / (threads * steps^n).
///
/// Whoever falls asleep keeps his priority, as that bound assumes; only who tries again and again becomes the last. Whether old
/// bugs are met sooner that way is hardly to be told: of 34 most take as many schedules either way, and of seven that take more,
/// tried from six first seeds each, four took fewer, two as many and one more, by less than the seeds differ.
class random_priorities : public drawn {
 public:
    random_priorities(std::uint64_t seed, std::uint32_t usual_steps) : drawn(seed) {
        const unsigned changes = random.below(4);
        for (unsigned change = 0; change < changes; ++change) {
            changes_.push_back(random.below(std::max(1U, usual_steps)));
        }
    }

    [[nodiscard]] unsigned pick_thread(choice_point, const candidates& among) override {
        const std::uint32_t now = step_++;
        const bool is_change = std::find(changes_.begin(), changes_.end(), now) != changes_.end();
        const bool tries_again = !among.may_continue && !among.is_asleep;
        if (is_change || tries_again || gives_way(among)) priority_of(among.current) = --lowest_;
        unsigned best = among.ready.front();
        for (const unsigned each : among.ready) {
            if (priority_of(each) > priority_of(best)) best = each;
        }
        return best;
    }

 protected:
    [[nodiscard]] virtual bool gives_way(const candidates&) { return false; }

 private:
    std::int64_t& priority_of(unsigned thread) {
        while (priorities_.size() <= thread) {
            priorities_.push_back(static_cast<std::int64_t>(random.next() >> 8U));
        }
        return priorities_[thread];
    }

    std::vector<std::int64_t> priorities_;
    std::vector<std::uint32_t> changes_;
    std::int64_t lowest_ = 0;
    std::uint32_t step_ = 0;
};

/// The same, but most old values and many of the changes of priority are spent on what a few places touch: those in focus
/// or, if there are none, some that are drawn.
class closer_look final : public random_priorities {
 public:
    closer_look(std::uint64_t seed, std::uint32_t usual_steps) : random_priorities(seed, usual_steps) {
        constexpr std::array<unsigned, 4> odds = {0, 2, 4, 16};
        stale_one_in_ = 1 + random.below(4);
        way_one_in_ = odds[random.below(odds.size())];
        salt_ = static_cast<std::uint32_t>(random.next());
    }

    [[nodiscard]] unsigned pick_value(choice_point, unsigned count, bool is_near) override {
        constexpr unsigned seldom = 64;
        return random.one_in(is_near ? stale_one_in_ : seldom) ? random.below(count) : 0;
    }
    [[nodiscard]] bool cares_for(const site& where) const noexcept override {
        constexpr std::uint32_t one_place_in = 24;
        if (has_focus()) return where.is_in_focus;
        return ((where.hash ^ salt_) * 0x9e3779b1U >> 16U) % one_place_in == 0;
    }

 protected:
    [[nodiscard]] bool gives_way(const candidates& among) override {
        return among.is_near && random.one_in(way_one_in_);
    }

 private:
    unsigned stale_one_in_;
    unsigned way_one_in_;
    std::uint32_t salt_;
};

}  // namespace

std::unique_ptr<strategy> strategy_of_seed(std::uint64_t seed, std::uint32_t usual_steps) {
    if (seed % 4 == 0) return std::make_unique<uniform>(seed);
    if (seed % 4 == 2 || (has_focus() && seed % 4 == 3)) return std::make_unique<closer_look>(seed, usual_steps);
    return std::make_unique<random_priorities>(seed, usual_steps);
}

// --- All of them.

bool exhaustive::next() {
    depth_ = 0;
    preemptions_ = stale_ = refusals_ = 0;
    if (!has_begun_) {
        has_begun_ = true;
        return true;
    }
    while (!path_.empty() && path_.back().taken + 1 >= path_.back().count) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().taken;
    return true;
}

unsigned exhaustive::take(unsigned count, branch::cost how) {
    if (depth_ == path_.size()) {
        const bool is_affordable =
            how == branch::cost::nothing || (how == branch::cost::preemption && preemptions_ < most_preemptions_) ||
            (how == branch::cost::stale && stale_ < most_stale_) || (how == branch::cost::refusal && refusals_ == 0);
        path_.push_back({0, is_affordable ? count : 1, how});
    }
    const unsigned taken = path_[depth_++].taken;
    if (taken != 0) {
        preemptions_ += how == branch::cost::preemption;
        stale_ += how == branch::cost::stale;
        refusals_ += how == branch::cost::refusal;
    }
    return taken;
}

unsigned exhaustive::pick_thread(choice_point, const candidates& among) {
    if (among.ready.size() == 1) return among.ready.front();
    const auto cost = among.may_continue ? branch::cost::preemption : branch::cost::nothing;
    const unsigned usual = usual_thread(among);
    // One that has to let others run comes last, and only costs nothing once: otherwise two that wait for each other
    // would be tried for ever.
    unsigned others = static_cast<unsigned>(among.ready.size());
    if (!among.may_continue) {
        others -= std::find(among.ready.begin(), among.ready.end(), among.current) != among.ready.end();
    }
    const unsigned taken = take(std::max(1U, others), cost);
    if (taken == 0) return usual;
    unsigned left = taken;
    for (const unsigned each : among.ready) {
        if (each == usual || (!among.may_continue && each == among.current)) continue;
        if (--left == 0) return each;
    }
    return usual;
}

unsigned exhaustive::pick_value(choice_point, unsigned count, bool) {
    return take(count, branch::cost::stale);
}

bool exhaustive::refuses_memory(choice_point) {
    return take(2, branch::cost::refusal) != 0;
}

}  // namespace chime::shim
