// SPDX-License-Identifier: MIT
#pragma once

#include "layouts/levels.hpp"
#include "layouts/near_run.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace chime_bench::layouts {

/// Chains of blocks with tickets of sixteen bytes, a dense array of words, and bodies that are looked at when due.
///
/// Same promises as chime::timer_wheel: safe ids, exact order, nanoseconds, garbage no more than live timers plus a
/// constant. A ticket carries its nominal deadline, so that cascading streams tickets and touches no record. The
/// word holds generation and version side by side; cancelling raises both. Postponing to later writes the deadline
/// only, and the ticket moves on when it is met. Scrubbing cleans a whole slot at a time. on_due must not call back.
class wide_tickets {
 public:
    struct timer_id {
        std::uint32_t index = 0;
        std::uint32_t generation = 0;
    };

    wide_tickets() = default;
    wide_tickets(const wide_tickets&) = delete;
    wide_tickets& operator=(const wide_tickets&) = delete;

    timer_id arm(std::uint64_t deadline_ns, std::uint64_t value) {
        const std::uint32_t index = take_record();
        bodies_[index] = {deadline_ns, deadline_ns, ++last_number_, value};
        ++live_;
        place({deadline_ns, index, words_[index].version});
        return {index, words_[index].generation};
    }

    std::optional<std::uint64_t> cancel(timer_id id) {
        if (!is_pending(id)) return {};
        const std::uint64_t value = bodies_[id.index].value;
        release(id.index);
        scrub_if_needed();
        return value;
    }

    bool postpone(timer_id id, std::uint64_t deadline_ns) {
        if (!is_pending(id)) return false;
        body& it = bodies_[id.index];
        it.deadline_ns = deadline_ns;
        if (deadline_ns >= it.placed_ns) return true;
        it.placed_ns = deadline_ns;
        place({deadline_ns, id.index, ++words_[id.index].version});
        scrub_if_needed();
        return true;
    }

    template <class OnDue>
    void advance(std::uint64_t now_ns, OnDue on_due) {
        fire_until(now_ns, on_due);
        while (const auto place = levels_.step(levels::tick_of(now_ns))) {
            if (*place < slots_per_level) {
                load(*place);
            } else {
                cascade(*place);
            }
            fire_until(now_ns, on_due);
        }
    }

    [[nodiscard]] bool is_pending(timer_id id) const {
        return id.index < words_.size() && words_[id.index].generation == id.generation;
    }

 private:
    static constexpr std::size_t block_bytes = 512;
    static constexpr std::size_t blocks_per_chunk = 256;
    static constexpr std::size_t stale_allowed = 4096;

    struct word {
        std::uint32_t generation = 1;
        std::uint32_t version = 0;
    };

    struct body {
        std::uint64_t deadline_ns = 0;
        std::uint64_t placed_ns = 0;  // The nominal deadline of the valid ticket; never after deadline_ns.
        std::uint64_t number = 0;
        std::uint64_t value = 0;
    };
    static_assert(sizeof(body) == 32);

    struct ticket {
        std::uint64_t nominal_ns;
        std::uint32_t index;
        std::uint32_t version;
    };
    static_assert(sizeof(ticket) == 16);

    struct alignas(block_bytes) block {
        block* previous;
        std::uint64_t unused;
        std::array<ticket, block_bytes / sizeof(ticket) - 1> tickets;
    };
    static_assert(sizeof(block) == block_bytes);

    /// A slot is where its next ticket goes. Aligned to a block it means: the last block is full, or there is none.
    using slot = ticket*;

    static bool is_full_or_empty(slot at) { return reinterpret_cast<std::uintptr_t>(at) % block_bytes == 0; }

    static block* last_block(slot at) {
        const auto last_byte = reinterpret_cast<std::uintptr_t>(at) - 1;
        return reinterpret_cast<block*>(last_byte - last_byte % block_bytes);
    }

    std::uint32_t take_record() {
        if (free_.empty()) {
            words_.emplace_back();
            bodies_.emplace_back();
            return static_cast<std::uint32_t>(words_.size() - 1);
        }
        const std::uint32_t index = free_.back();
        free_.pop_back();
        return index;
    }

    void release(std::uint32_t index) {
        ++words_[index].generation;
        ++words_[index].version;
        free_.push_back(index);
        --live_;
    }

    block* take_block() {
        if (free_blocks_ == nullptr) {
            chunks_.push_back(std::make_unique<std::array<block, blocks_per_chunk>>());
            for (block& it : *chunks_.back()) give_block(&it);
        }
        block* const it = free_blocks_;
        free_blocks_ = it->previous;
        return it;
    }

    void give_block(block* it) {
        it->previous = free_blocks_;
        free_blocks_ = it;
    }

    void push(slot& at, const ticket& it) {
        if (is_full_or_empty(at)) [[unlikely]] {
            block* const fresh = take_block();
            fresh->previous = at == nullptr ? nullptr : last_block(at);
            at = fresh->tickets.data();
        }
        *at++ = it;
    }

    void place(const ticket& it) {
        const std::uint64_t tick = levels::tick_of(it.nominal_ns);
        if (tick <= levels_.current_tick()) {
            near_.insert({it.nominal_ns, bodies_[it.index].number, it.index, it.version});
            return;
        }
        const std::size_t place = levels_.place_of(tick);
        if (slots_[place] == nullptr) levels_.set(place);
        push(slots_[place], it);
        ++tickets_;
    }

    /// Empties a slot: visit(block, one past its last ticket) from the last block to the first.
    template <class Visitor>
    void drain(std::size_t place, Visitor visit) {
        slot end = slots_[place];
        slots_[place] = nullptr;
        levels_.reset(place);
        block* it = last_block(end);
        while (it != nullptr) {
            block* const previous = it->previous;
            tickets_ -= static_cast<std::size_t>(end - it->tickets.data());
            visit(*it, end);
            give_block(it);
            it = previous;
            if (it != nullptr) end = it->tickets.data() + it->tickets.size();
        }
    }

    void cascade(std::size_t place_from) {
        drain(place_from, [this](const block& from, const ticket* end) {
            for (const ticket* it = from.tickets.data(); it != end; ++it) {
                if (levels::tick_of(it->nominal_ns) <= levels_.current_tick()) {
                    load(*it);
                } else {
                    place(*it);
                }
            }
        });
        near_.sort();
    }

    void load(std::size_t place_from) {
        drain(place_from, [this](const block& from, const ticket* end) {
            for (const ticket* it = from.tickets.data(); it != end; ++it) {
                __builtin_prefetch(&words_[it->index], 1);
                __builtin_prefetch(&bodies_[it->index], 1);
            }
            for (const ticket* it = from.tickets.data(); it != end; ++it) load(*it);
        });
        near_.sort();
    }

    void load(const ticket& it) {
        if (words_[it.index].version != it.version) return;
        body& timer = bodies_[it.index];
        if (levels::tick_of(timer.deadline_ns) > levels_.current_tick()) {
            timer.placed_ns = timer.deadline_ns;
            place({timer.deadline_ns, it.index, it.version});
        } else {
            near_.load({timer.deadline_ns, timer.number, it.index, it.version});
        }
    }

    template <class OnDue>
    void fire_until(std::uint64_t now_ns, OnDue& on_due) {
        while (!near_.empty() && near_.first().deadline_ns <= now_ns) {
            const near_run::entry due = near_.first();
            near_.pop();
            if (words_[due.index].version != due.stamp) continue;
            body& timer = bodies_[due.index];
            if (timer.deadline_ns != due.deadline_ns) {  // Postponed to later meanwhile.
                timer.placed_ns = timer.deadline_ns;
                place({timer.deadline_ns, due.index, due.stamp});
                continue;
            }
            const std::uint64_t value = timer.value;
            release(due.index);
            on_due(value);
        }
    }

    /// Cleans the next slot in turn when there are more stale tickets than live timers.
    void scrub_if_needed() {
        if (tickets_ <= 2 * live_ + stale_allowed) [[likely]]
            return;
        auto next = levels_.first_from(scrub_from_);
        if (!next) next = levels_.first_from(0);
        if (!next) return;
        scrub_from_ = (*next + 1) % slots_.size();
        slot kept = nullptr;
        drain(*next, [&](const block& from, const ticket* end) {
            for (const ticket* it = from.tickets.data(); it != end; ++it) __builtin_prefetch(&words_[it->index]);
            for (const ticket* it = from.tickets.data(); it != end; ++it) {
                if (words_[it->index].version != it->version) continue;
                push(kept, *it);
                ++tickets_;
            }
        });
        if (kept == nullptr) return;
        slots_[*next] = kept;
        levels_.set(*next);
    }

    levels levels_;
    std::array<slot, level_count * slots_per_level> slots_{};
    near_run near_;
    std::vector<word> words_;
    std::vector<body> bodies_;
    std::vector<std::uint32_t> free_;
    std::uint64_t last_number_ = 0;
    std::size_t live_ = 0;
    std::size_t tickets_ = 0;
    std::size_t scrub_from_ = 0;
    std::vector<std::unique_ptr<std::array<block, blocks_per_chunk>>> chunks_;
    block* free_blocks_ = nullptr;
};

}  // namespace chime_bench::layouts
