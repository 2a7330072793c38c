// SPDX-License-Identifier: MIT
#pragma once

#include "layouts/levels.hpp"
#include "layouts/near_run.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace chime_bench::layouts {

/// The textbook layout: a slot is a doubly linked list through the records, and cancelling unlinks at once.
///
/// Same promises as chime::timer_wheel: safe ids, exact order, nanoseconds. No garbage ever, and no scrubbing; the price
/// is that linking and unlinking write to two neighbours, which at a million are two cache misses more, and
/// that cascading walks from record to record, each step waiting for the one before. on_due must not call back.
class lists {
 public:
    struct timer_id {
        std::uint32_t index = 0;
        std::uint32_t generation = 0;
    };

    timer_id arm(std::uint64_t deadline_ns, std::uint64_t value) {
        const std::uint32_t index = take_record();
        record& it = records_[index];
        it.deadline_ns = deadline_ns;
        it.number = ++last_number_;
        it.value = value;
        place(index);
        return {index, it.generation};
    }

    std::optional<std::uint64_t> cancel(timer_id id) {
        if (!is_pending(id)) return {};
        record& it = records_[id.index];
        unlink(it);
        const std::uint64_t value = it.value;
        release(id.index);
        return value;
    }

    bool postpone(timer_id id, std::uint64_t deadline_ns) {
        if (!is_pending(id)) return false;
        record& it = records_[id.index];
        it.deadline_ns = deadline_ns;
        const std::uint64_t tick = levels::tick_of(deadline_ns);
        if (tick > levels_.current_tick() && levels_.place_of(tick) == it.place) return true;
        unlink(it);
        place(id.index);
        return true;
    }

    template <class OnDue>
    void advance(std::uint64_t now_ns, OnDue on_due) {
        fire_until(now_ns, on_due);
        while (const auto place = levels_.step(levels::tick_of(now_ns))) {
            deal_out(*place);
            fire_until(now_ns, on_due);
        }
    }

    [[nodiscard]] bool is_pending(timer_id id) const {
        return id.index < records_.size() && records_[id.index].generation == id.generation;
    }

 private:
    static constexpr std::uint32_t none = UINT32_MAX;
    static constexpr std::uint32_t in_near_run = UINT32_MAX;

    struct record {
        std::uint64_t deadline_ns = 0;
        std::uint64_t number = 0;
        std::uint64_t value = 0;
        std::uint32_t next = none;
        std::uint32_t previous = none;
        std::uint32_t place = in_near_run;
        std::uint32_t generation = 1;
    };

    std::uint32_t take_record() {
        if (free_.empty()) {
            records_.emplace_back();
            return static_cast<std::uint32_t>(records_.size() - 1);
        }
        const std::uint32_t index = free_.back();
        free_.pop_back();
        return index;
    }

    void release(std::uint32_t index) {
        ++records_[index].generation;
        free_.push_back(index);
    }

    void place(std::uint32_t index) {
        record& it = records_[index];
        const std::uint64_t tick = levels::tick_of(it.deadline_ns);
        if (tick <= levels_.current_tick()) {
            it.place = in_near_run;
            near_.insert({it.deadline_ns, it.number, index, it.generation});
            return;
        }
        const std::size_t place = levels_.place_of(tick);
        it.place = static_cast<std::uint32_t>(place);
        it.previous = none;
        it.next = heads_[place];
        if (it.next != none) {
            records_[it.next].previous = index;
        } else {
            levels_.set(place);
        }
        heads_[place] = index;
    }

    /// An entry of the near run is not looked for: it is recognised as stale when its turn comes.
    void unlink(const record& it) {
        if (it.place == in_near_run) return;
        if (it.next != none) records_[it.next].previous = it.previous;
        if (it.previous != none) {
            records_[it.previous].next = it.next;
            return;
        }
        heads_[it.place] = it.next;
        if (it.next == none) levels_.reset(it.place);
    }

    /// The current tick is the first of that slot: what is due in it goes to the near run, the rest further down.
    void deal_out(std::size_t slot) {
        std::uint32_t index = heads_[slot];
        heads_[slot] = none;
        levels_.reset(slot);
        while (index != none) {
            record& it = records_[index];
            const std::uint32_t next = it.next;
            if (next != none) __builtin_prefetch(&records_[next], 1);
            if (levels::tick_of(it.deadline_ns) <= levels_.current_tick()) {
                it.place = in_near_run;
                near_.load({it.deadline_ns, it.number, index, it.generation});
            } else {
                place(index);
            }
            index = next;
        }
        near_.sort();
    }

    template <class OnDue>
    void fire_until(std::uint64_t now_ns, OnDue& on_due) {
        while (!near_.empty() && near_.first().deadline_ns <= now_ns) {
            const near_run::entry due = near_.first();
            near_.pop();
            const record& it = records_[due.index];
            const bool stale =
                it.generation != due.stamp || it.deadline_ns != due.deadline_ns || it.place != in_near_run;
            if (stale) continue;
            const std::uint64_t value = it.value;
            release(due.index);
            on_due(value);
        }
    }

    static std::array<std::uint32_t, level_count * slots_per_level> empty_heads() {
        std::array<std::uint32_t, level_count * slots_per_level> heads;
        heads.fill(none);
        return heads;
    }

    levels levels_;
    std::array<std::uint32_t, level_count* slots_per_level> heads_ = empty_heads();
    near_run near_;
    std::vector<record> records_;
    std::vector<std::uint32_t> free_;
    std::uint64_t last_number_ = 0;
};

}  // namespace chime_bench::layouts
