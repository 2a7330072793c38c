// SPDX-License-Identifier: MIT
#pragma once

#include "base/atomic.hpp"
#include "base/mapping.hpp"
#include "base/mutex.hpp"
#include "base/poison.hpp"
#include "base/prefetch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace chime::inline v0::detail {

/// Records and slots are named by their position, with the highest bit for the kind. All are one cache line, so that an
/// index is an address, whatever it names.
using unit_index = std::uint32_t;
inline constexpr std::size_t unit_bytes = 64;
inline constexpr unit_index no_unit = ~unit_index{0};
inline constexpr unit_index slot_bit = unit_index{1} << 31U;

/// How many a thread takes when it has none left; how many the owner keeps for itself before it gives some away.
inline constexpr std::size_t carved_at_once = 64;
inline constexpr std::size_t kept_in_reserve = 256;
inline constexpr std::size_t donated_at_once = 128;

/// All records, or all slots, of one context: memory that never moves and is never unmapped while the context lives.
///
/// A unit that is free is in the magazine of a worker or on the shared stack here, linked through `link`, and sealed; whoever
/// puts something into it unseals it. Only the owner
/// of a unit frees it, so what it is freed into is the owner's. Any thread may take from the shared stack.
template <class Unit, unit_index Kind>
class unit_pool {
 public:
    static_assert(sizeof(Unit) == unit_bytes);

    /// Throws std::bad_alloc when there is no such range of addresses.
    unit_pool(std::size_t limit, base::huge_pages advice) : memory_(limit * sizeof(Unit), advice), limit_(limit) {}

    [[nodiscard]] std::byte* data() const noexcept { return memory_.data(); }

    [[nodiscard]] Unit& at(unit_index index) const noexcept {
        return *std::launder(reinterpret_cast<Unit*>(memory_.data() + std::size_t{index ^ Kind} * unit_bytes));
    }

    [[nodiscard]] static constexpr unit_index index_of(std::size_t position) noexcept {
        return static_cast<unit_index>(position) | Kind;
    }

    /// How many there are, free ones included. Acquire: pairs with the release in carve(), so they are constructed.
    [[nodiscard]] std::size_t size() const noexcept { return used_.load(base::memory_order_acquire); }

    /// Does this index name one, whoever made it up? One of the other kind is larger than all of ours.
    [[nodiscard]] bool contains(unit_index index) const noexcept { return (index ^ Kind) < size(); }

    /// One of those that were given back, for a thread that has no magazine; no_unit: there is none. Any thread.
    [[nodiscard]] unit_index pop_shared() noexcept {
        // Acquire: pairs with the release of whoever pushed; the unit's fields are his last writes.
        std::uint64_t top = shared_.load(base::memory_order_acquire);
        while (index_in(top) != no_unit) {
            const unit_index next = at(index_in(top)).link.load(base::memory_order_relaxed);
            // If the unit was taken meanwhile, `next` is nonsense, and the tag has changed.
            if (shared_.compare_exchange_weak(top, tagged(top, next), base::memory_order_acquire)) break;
        }
        return index_in(top);
    }

    /// All of them, linked; no_unit: there is none. Any thread.
    [[nodiscard]] unit_index pop_all_shared() noexcept {
        std::uint64_t top = shared_.load(base::memory_order_relaxed);
        // Acquire: as in pop_shared(), but nothing of a unit is read before.
        while (index_in(top) != no_unit &&
               !shared_.compare_exchange_weak(top, tagged(top, no_unit), base::memory_order_acquire)) {}
        return index_in(top);
    }

    [[nodiscard]] bool shared_is_empty() const noexcept {
        return index_in(shared_.load(base::memory_order_relaxed)) == no_unit;
    }

    /// Gives a chain from `first` to `last` to everybody. Any thread.
    void push_shared(unit_index first, unit_index last) noexcept {
        std::uint64_t top = shared_.load(base::memory_order_relaxed);
        do {
            at(last).link.store(index_in(top), base::memory_order_relaxed);
            // Release: pairs with the acquire of whoever pops.
        } while (!shared_.compare_exchange_weak(top, tagged(top, first), base::memory_order_release,
                                                base::memory_order_relaxed));
    }

    /// Takes up to `count` more into use, linked; no_unit: the limit is reached. Any thread.
    /// Throws std::bad_alloc; nothing has changed.
    [[nodiscard, gnu::noinline]] unit_index carve(std::size_t count) {
        const base::lock_guard lock(growth_);
        const std::size_t used = used_.load(base::memory_order_relaxed);
        const std::size_t end = std::min(used + count, limit_);
        if (end == used) return no_unit;
        if (!memory_.commit(end * sizeof(Unit))) throw std::bad_alloc();
        for (std::size_t position = used; position != end; ++position) {
            Unit* const made = ::new (static_cast<void*>(memory_.data() + position * sizeof(Unit))) Unit;
            seal(index_of(position));
            made->link.store(position + 1 == end ? no_unit : index_of(position + 1), base::memory_order_relaxed);
        }
        used_.store(end, base::memory_order_release);  // Pairs with the acquire in size().
        return index_of(used);
    }

    [[nodiscard]] std::size_t limit() const noexcept { return limit_; }

    void prefetch(unit_index index) const noexcept { base::prefetch_to_write(&at(index)); }

    /// It is free: if the address sanitizer looks, it finds whoever uses what is in it all the same.
    void seal(unit_index freed) const noexcept {
        if constexpr (base::poisons_memory && requires(Unit & unit) { unit.seal(); }) at(freed).seal();
    }
    /// Somebody is about to put something into it.
    void unseal(unit_index taken) const noexcept {
        if constexpr (base::poisons_memory && requires(Unit & unit) { unit.unseal(); }) at(taken).unseal();
    }

 private:
    [[nodiscard]] static constexpr unit_index index_in(std::uint64_t top) noexcept {
        return static_cast<unit_index>(top);
    }
    /// Every change takes another tag, so that a stack that looks as before is not taken for unchanged.
    [[nodiscard]] static constexpr std::uint64_t tagged(std::uint64_t before, unit_index index) noexcept {
        return ((before >> 32U) + 1) << 32U | index;
    }

    base::mapping memory_;
    std::size_t limit_;
    base::atomic<std::size_t> used_{0};
    base::mutex growth_;
    alignas(64) base::atomic<std::uint64_t> shared_{no_unit};
};

/// The free units of one worker: a stack of indices, because to walk a list through the units would miss the cache once
/// for each. The owner's alone.
template <class Pool>
class unit_magazine {
 public:
    /// Throws std::bad_alloc.
    explicit unit_magazine(Pool& pool) : pool_(pool), memory_((pops_ahead + pool.limit()) * sizeof(unit_index)) {
        if (!make_room()) throw std::bad_alloc();
        std::fill_n(fetched(), pops_ahead, Pool::index_of(0));
    }

    [[nodiscard]] bool is_empty() const noexcept { return at_hand_ == no_unit && count_ == 0; }
    [[nodiscard]] std::size_t count() const noexcept { return count_ + (at_hand_ != no_unit ? 1 : 0); }

    /// The next one to be taken, without the stack: who cancels one timer arms another. False: there is such a one already.
    [[nodiscard]] bool keep_at_hand(unit_index freed) noexcept {
        if (at_hand_ != no_unit) return false;
        pool_.seal(freed);
        at_hand_ = freed;
        return true;
    }

    /// False: there is no memory for one more; it goes to where all take from.
    bool push(unit_index freed) noexcept {
        pool_.seal(freed);
        if (count_ == room_ && !make_room()) [[unlikely]]
            return false;
        stack()[count_++] = freed;
        return true;
    }

    /// There is always memory for as many as the owner keeps in reserve.
    void push_within_reserve(unit_index freed) noexcept {
        pool_.seal(freed);
        stack()[count_++] = freed;
    }

    [[nodiscard]] unit_index pop() noexcept {
        if (at_hand_ != no_unit) return std::exchange(at_hand_, no_unit);
        const unit_index taken = stack()[--count_];
        pool_.prefetch(fetched()[count_]);
        return taken;
    }

    /// The same, or no_unit if there is none.
    [[nodiscard]] unit_index try_pop() noexcept {
        if (at_hand_ != no_unit) [[likely]]
            return std::exchange(at_hand_, no_unit);
        return count_ != 0 ? pop() : no_unit;
    }

    /// Takes from where all take, then from what was never used; false: there is nothing left.
    /// Throws std::bad_alloc; nothing has changed.
    [[nodiscard]] bool refill(std::size_t count) {
        const std::size_t first = count_;
        if (room_ - count_ < count && room_ < pool_.limit() && !make_room()) throw std::bad_alloc();
        while (count_ - first < count) {
            const unit_index shared = pool_.pop_shared();
            if (shared == no_unit) break;
            push(shared);
        }
        if (count_ == first) {
            unit_index chain = pool_.carve(count);
            for (; chain != no_unit; chain = pool_.at(chain).link.load(base::memory_order_relaxed)) push(chain);
        }
        std::reverse(stack() + first, stack() + count_);  // So that what lies in front is taken first.
        return count_ != 0;
    }

    void donate(std::size_t count) noexcept {
        donate(count, [](const auto&) {});
    }

    /// Gives `count` of them to everybody; `part_with` sees each before it goes.
    template <class PartWith>
    void donate(std::size_t count, PartWith&& part_with) noexcept {
        if (at_hand_ != no_unit) {
            const unit_index single = std::exchange(at_hand_, no_unit);
            part_with(pool_.at(single));
            pool_.push_shared(single, single);
            if (--count == 0) return;
        }
        const unit_index first = stack()[count_ - 1];
        for (std::size_t left = count; left > 1; --left, --count_) {
            part_with(pool_.at(stack()[count_ - 1]));
            pool_.at(stack()[count_ - 1]).link.store(stack()[count_ - 2], base::memory_order_relaxed);
        }
        part_with(pool_.at(stack()[count_ - 1]));
        pool_.push_shared(first, stack()[--count_]);
    }

 private:
    /// How far ahead a unit is fetched: those of timers that fired lie anywhere.
    static constexpr std::size_t pops_ahead = 8;

    /// What is fetched when the stack is so high. Below the stack there are as many entries that name the first unit.
    [[nodiscard]] unit_index* fetched() const noexcept { return reinterpret_cast<unit_index*>(memory_.data()); }
    [[nodiscard]] unit_index* stack() const noexcept { return fetched() + pops_ahead; }

    static_assert(base::mapping::chunk_bytes / sizeof(unit_index) >= pops_ahead + kept_in_reserve);

    /// There is address space for all units of the pool, and memory for as many as were ever here at once.
    [[gnu::noinline]] bool make_room() noexcept {
        if (!memory_.commit(memory_.committed_bytes() + 1)) return false;
        room_ = memory_.committed_bytes() / sizeof(unit_index) - pops_ahead;
        return true;
    }

    Pool& pool_;
    base::mapping memory_;
    std::size_t room_ = 0;
    std::size_t count_ = 0;         ///< In the stack.
    unit_index at_hand_ = no_unit;  ///< One more, or none.
};

}  // namespace chime::inline v0::detail
