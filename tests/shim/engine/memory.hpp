// SPDX-License-Identifier: MIT
#pragma once

#include "shim/engine/vector_clock.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

namespace chime::shim {

/// What the memory knows of one thread.
struct memory_view {
    vector_clock clock;     ///< What happened before.
    vector_clock read;      ///< What an acquire fence would make known.
    vector_clock released;  ///< What the last release fence has made public.
    unsigned thread = 0;

    [[nodiscard]] std::uint32_t now() const noexcept { return clock.at[thread]; }
    void tick() noexcept { ++clock.at[thread]; }
};

/// Is it a variable of the program, and not of one execution?
[[nodiscard]] bool outlives_executions(const void* address) noexcept;

/// Answers which of several values a load gives: 0 is the newest.
using value_chooser = unsigned (*)(void* who, unsigned count);

/// Memory as the standard describes it, for one execution: every location has the order of its stores, and a load may
/// give any of them that coherence, what happened before, and the order of all seq_cst steps allow.
///
/// A store, or a step that reads and writes, may come before stores of its location that were executed before it, as if those
/// had been held back, and a seq_cst load before seq_cst stores that were: all that it has to come behind is what its thread
/// knows of. As in C++20, who reads a seq_cst store with less than seq_cst does not come behind it in the order of all.
///
/// Simpler than the standard in two ways. Only who asks for it is given what is stored later: see foresee(). And what is older
/// than `kept_stores` is forgotten.
class memory {
 public:
    static constexpr unsigned kept_stores = 8;

    /// A new execution begins, everything is forgotten.
    void begin();
    /// An execution has ended: variables that outlive it get back the values that they had before it.
    void end() noexcept;

    /// An object begins its life at this address.
    void made(const void* address) noexcept;

    struct choice {
        value_chooser choose;
        void* who;
    };

    /// The thread's clock was advanced for this step before.
    [[nodiscard]] std::uint64_t load(memory_view& mine, const void* address, unsigned bytes, std::memory_order order,
                                     choice chosen);
    void store(memory_view& mine, void* address, unsigned bytes, std::uint64_t value, std::memory_order order,
               choice chosen);
    /// `change` gives the new value for the one before, which is answered.
    template <class Change>
    std::uint64_t modify(memory_view& mine, void* address, unsigned bytes, std::memory_order order, choice chosen,
                         Change&& change) {
        location& its = find(address, bytes);
        doubt(mine, its);
        const std::uint32_t index = pick_place(mine, its, order, chosen);
        const std::uint64_t before = its.stores[index % kept_stores].value;
        see(mine, its, index, order);
        insert(mine, its, index, change(before), order, true);
        return before;
    }
    struct exchange {
        std::uint64_t expected;
        std::uint64_t desired;
        std::memory_order success;
        std::memory_order failure;
    };
    /// True: it has succeeded. `found` is what it has read.
    [[nodiscard]] bool compare(memory_view& mine, void* address, unsigned bytes, const exchange& wanted, choice chosen,
                               std::uint64_t& found);
    static void fence(memory_view& mine, std::memory_order order, vector_clock& all_fences) noexcept;

    // --- Load buffering. A load may give what is stored later, as long as nothing says that the store happens after it. Nobody
    // knows what will be stored; so it is a guess, from what was stored there in other executions, and if it does not come true,
    // all that follows from it means nothing. One in each execution.

    /// From now on it is known that this may be stored here.
    void remember(const void* address, std::uint64_t value);
    /// Answers how many values are known that are not there.
    [[nodiscard]] unsigned count_guesses(const void* address, unsigned bytes);
    /// The load gives this one of them. Not a seq_cst one.
    [[nodiscard]] std::uint64_t foresee(const memory_view& mine, const void* address, unsigned bytes,
                                        std::memory_order order, unsigned guess);
    /// The same for an exchange: what is stored later comes right before what it stores.
    [[nodiscard]] std::uint64_t foresee_and_store(memory_view& mine, const void* address, unsigned bytes,
                                                  std::uint64_t value, std::memory_order order, unsigned guess);
    [[nodiscard]] bool has_foreseen() const noexcept { return guess_.now != guess::state::none; }
    /// Nothing was foreseen that has not come true.
    [[nodiscard]] bool is_sound() const noexcept {
        return guess_.now == guess::state::none || guess_.now == guess::state::true_by_now;
    }

    /// The newest value, as the kernel sees it.
    [[nodiscard]] static std::uint64_t raw(const void* address, unsigned bytes) noexcept;

    /// When it was last written to, in the order of all writes of the process; 0: not yet.
    [[nodiscard]] std::uint64_t changed_at(const void* address, unsigned bytes) { return find(address, bytes).changed; }
    /// A number for each location, in the order in which they are first used.
    [[nodiscard]] unsigned number_of(const void* address, unsigned bytes) { return find(address, bytes).number; }
    /// How many loads had a choice, and how many took an old value.
    [[nodiscard]] std::uint64_t stale_loads() const noexcept { return stale_loads_; }

    vector_clock fences;  ///< The order of all seq_cst fences.

 private:
    struct store_entry {
        std::uint64_t value = 0;
        vector_clock published;                          ///< What an acquire learns.
        std::array<std::uint32_t, most_threads> seen{};  ///< When each thread has first read or written it; 0: never.
        std::uint32_t position = 0;                      ///< In the order of all seq_cst steps; 0: it is none of them.
        bool modifies = false;                           ///< The one before it, and nothing comes between them.
    };
    struct location {
        const void* address = nullptr;
        unsigned bytes = 0;
        unsigned number = 0;
        std::uint32_t count = 0;    ///< Of all stores so far; the last ones are kept.
        std::uint64_t before = 0;   ///< What it held before the execution.
        std::uint64_t changed = 0;  ///< See changed_at().
        bool is_static = false;
        bool is_alive = false;
        std::array<store_entry, kept_stores> stores;
    };
    struct guess {
        enum class state : std::uint8_t { none, open, true_by_now, wrong } now = state::none;
        bool acquires = false;
        bool exchanges = false;
        location* its = nullptr;
        std::uint64_t value = 0;
        std::uint32_t own = 0;   ///< If it exchanges: its own store.
        std::uint32_t step = 0;  ///< Of the thread.
        unsigned thread = 0;
        vector_clock clock;  ///< Of the thread, at that time.
    };
    struct slot {
        const void* address = nullptr;
        location* its = nullptr;
        std::uint32_t execution = 0;
    };

    [[nodiscard]] slot& slot_of(const void* address) noexcept;
    [[nodiscard]] location& find(const void* address, unsigned bytes);
    void grow();
    /// Whoever looks at a location for which there is a guess, and should have seen that by now, proves it wrong.
    void doubt(const memory_view& mine, const location& its) noexcept;
    /// True: this store is what was foreseen.
    [[nodiscard]] bool is_foreseen(const memory_view& mine, const location& its, std::uint64_t value,
                                   const vector_clock& published) const noexcept;
    [[nodiscard]] static store_entry& newest(location& its) noexcept {
        return its.stores[(its.count - 1) % kept_stores];
    }
    /// `behind`: how far in the order of all seq_cst steps it comes.
    [[nodiscard]] static std::uint32_t floor_of(const memory_view& mine, const location& its,
                                                std::uint32_t behind) noexcept;
    [[nodiscard]] static std::uint32_t place_floor_of(const memory_view& mine, const location& its,
                                                      std::memory_order order) noexcept;
    static void see(memory_view& mine, location& its, std::uint32_t index, std::memory_order order) noexcept;
    static void come_behind(memory_view& mine, const location& its, std::uint32_t index,
                            std::memory_order order) noexcept;
    /// Which store another one follows, or a read-modify-write.
    [[nodiscard]] std::uint32_t pick_place(const memory_view& mine, const location& its, std::memory_order order,
                                           choice chosen);
    void insert(memory_view& mine, location& its, std::uint32_t after, std::uint64_t value, std::memory_order order,
                bool modifies) noexcept;

    std::vector<slot> slots_ = std::vector<slot>(std::size_t{1} << 13U);
    std::deque<location> locations_;
    std::size_t used_ = 0;
    std::uint32_t execution_ = 0;
    std::uint64_t stale_loads_ = 0;
    std::uint32_t seq_cst_steps_ = 0;  ///< So far, but for loads.
    guess guess_;
    std::unordered_map<const void*, std::vector<std::uint64_t>> remembered_;
    static std::uint64_t writes_;
};

}  // namespace chime::shim
