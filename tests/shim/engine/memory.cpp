// SPDX-License-Identifier: MIT
#include "shim/engine/memory.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

// The bounds of what the linker calls data.
extern "C" {
extern char __data_start;
extern char _end;
}

namespace chime::shim {

bool outlives_executions(const void* address) noexcept {
    const char* const byte = static_cast<const char*>(address);
    return byte >= &__data_start && byte < &_end;
}

namespace {

bool acquires(std::memory_order order) noexcept {
    return order != std::memory_order_relaxed && order != std::memory_order_release;
}

bool releases(std::memory_order order) noexcept {
    return order == std::memory_order_release || order == std::memory_order_acq_rel ||
           order == std::memory_order_seq_cst;
}

void write_raw(const void* address, unsigned bytes, std::uint64_t value) noexcept {
    std::memcpy(const_cast<void*>(address), &value, bytes);
}

}  // namespace

std::uint64_t memory::raw(const void* address, unsigned bytes) noexcept {
    std::uint64_t value = 0;
    std::memcpy(&value, address, bytes);
    return value;
}

void memory::begin() {
    ++execution_;
    used_ = 0;
    seq_cst_steps_ = 0;
    fences = {};
    guess_ = {};
}

void memory::end() noexcept {
    for (std::size_t position = 0; position < used_; ++position) {
        const location& its = locations_[position];
        if (its.is_static) write_raw(its.address, its.bytes, its.before);
    }
    ++execution_;
    used_ = 0;
}

memory::slot& memory::slot_of(const void* address) noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t position = (reinterpret_cast<std::uintptr_t>(address) * 0x9e3779b97f4a7c15U >> 32U) & mask;
    while (slots_[position].execution == execution_ && slots_[position].address != address) {
        position = (position + 1) & mask;
    }
    return slots_[position];
}

std::uint64_t memory::writes_ = 0;

void memory::made(const void* address) noexcept {
    const slot& found = slot_of(address);
    if (found.execution == execution_) found.its->is_alive = false;
}

void memory::grow() {
    slots_.assign(slots_.size() * 2, slot{});
    for (std::size_t position = 0; position < used_; ++position) {
        location& its = locations_[position];
        slot_of(its.address) = {its.address, &its, execution_};
    }
}

memory::location& memory::find(const void* address, unsigned bytes) {
    slot* found = &slot_of(address);
    if (found->execution != execution_) {
        if (used_ * 2 >= slots_.size()) {
            grow();
            found = &slot_of(address);
        }
        if (used_ == locations_.size()) locations_.emplace_back();
        location& added = locations_[used_];
        added.number = static_cast<unsigned>(used_++);
        added.is_alive = false;
        added.address = address;
        added.is_static = outlives_executions(address);
        added.bytes = bytes;
        added.before = raw(address, bytes);
        *found = {address, &added, execution_};
    }
    location& its = *found->its;
    if (!its.is_alive) {
        // What it was made with happened before whatever led here.
        its.is_alive = true;
        its.bytes = bytes;
        its.count = 1;
        its.changed = 0;
        its.stores[0] = {.value = raw(address, bytes), .published = {}, .seen = {}};
    }
    return its;
}

namespace {

constexpr std::uint32_t behind_all = ~std::uint32_t{0};

/// A load comes behind whatever its thread has to come behind, and no further.
std::uint32_t place_of_load(const memory_view& mine, std::memory_order order) noexcept {
    return order == std::memory_order_seq_cst ? mine.clock.seq_cst : 0;
}

}  // namespace

/// The oldest store that this thread may still read.
std::uint32_t memory::floor_of(const memory_view& mine, const location& its, std::uint32_t behind) noexcept {
    const std::uint32_t lowest = its.count > kept_stores ? its.count - kept_stores : 0;
    for (std::uint32_t index = its.count - 1; index > lowest; --index) {
        const store_entry& each = its.stores[index % kept_stores];
        if (each.position != 0 && each.position <= behind) return index;
        for (unsigned thread = 0; thread < most_threads; ++thread) {
            if (each.seen[thread] != 0 && mine.clock.knows(thread, each.seen[thread])) return index;
        }
    }
    return lowest;
}

void memory::see(memory_view& mine, location& its, std::uint32_t index, std::memory_order order) noexcept {
    store_entry& read = its.stores[index % kept_stores];
    if (read.seen[mine.thread] == 0) read.seen[mine.thread] = mine.now();
    mine.read.join(read.published);
    // What a seq_cst load has read is no floor for others, unless the store was seq_cst as well: a processor gives a thread
    // its own store before anybody else can see it.
    if (acquires(order)) mine.clock.join(read.published);
}

/// After a load: it comes behind what it has read, if both are among the seq_cst steps.
void memory::come_behind(memory_view& mine, const location& its, std::uint32_t index,
                         std::memory_order order) noexcept {
    if (order != std::memory_order_seq_cst) return;
    mine.clock.seq_cst = std::max(mine.clock.seq_cst, its.stores[index % kept_stores].position);
}

/// What stands behind nothing that this thread knows of, and is not modified already. The last that can be taken back to.
std::uint32_t memory::place_floor_of(const memory_view& mine, const location& its, std::memory_order order) noexcept {
    const std::uint32_t lowest = floor_of(mine, its, order == std::memory_order_seq_cst ? behind_all : 0);
    std::uint32_t index = its.count - 1;
    while (index > lowest && !its.stores[index % kept_stores].modifies) --index;
    return index;
}

std::uint32_t memory::pick_place(const memory_view& mine, const location& its, std::memory_order order, choice chosen) {
    const std::uint32_t newest_index = its.count - 1;
    const std::uint32_t lowest = place_floor_of(mine, its, order);
    if (lowest == newest_index) return newest_index;
    const unsigned back = chosen.choose(chosen.who, newest_index - lowest + 1);
    stale_loads_ += back != 0;
    return newest_index - back;
}

void memory::insert(memory_view& mine, location& its, std::uint32_t after, std::uint64_t value, std::memory_order order,
                    bool modifies) noexcept {
    // If it modifies, it carries on what the store before it has released.
    const vector_clock carried = modifies ? its.stores[after % kept_stores].published : vector_clock{};
    // One more, and what was held back moves up.
    for (std::uint32_t index = its.count; index > after + 1; --index) {
        its.stores[index % kept_stores] = its.stores[(index - 1) % kept_stores];
    }
    store_entry& added = its.stores[(after + 1) % kept_stores];
    added.value = value;
    // Without its own place in the order of all seq_cst steps.
    added.published = releases(order) ? mine.clock : mine.released;
    added.published.join(carried);
    added.seen = {};
    added.seen[mine.thread] = mine.now();
    added.modifies = modifies;
    added.position = 0;
    if (order == std::memory_order_seq_cst) added.position = mine.clock.seq_cst = ++seq_cst_steps_;
    ++its.count;
    its.changed = ++writes_;
    write_raw(its.address, its.bytes, newest(its).value);
    if (is_foreseen(mine, its, value, added.published) &&
        (guess_.exchanges ? after + 1 == guess_.own : after + 2 == its.count)) {
        added.seen[guess_.thread] = guess_.step;
        guess_.now = guess::state::true_by_now;
    } else if (guess_.now == guess::state::open && guess_.exchanges && guess_.its == &its && after < guess_.own) {
        guess_.now = guess::state::wrong;
    }
}

// --- What is stored later.

void memory::remember(const void* address, std::uint64_t value) {
    constexpr std::size_t most = 6;
    std::vector<std::uint64_t>& known = remembered_[address];
    if (known.size() < most && std::find(known.begin(), known.end(), value) == known.end()) known.push_back(value);
}

unsigned memory::count_guesses(const void* address, unsigned bytes) {
    const auto known = remembered_.find(address);
    if (known == remembered_.end() || has_foreseen()) return 0;
    const std::uint64_t now = newest(find(address, bytes)).value;
    return static_cast<unsigned>(known->second.size() -
                                 static_cast<std::size_t>(std::count(known->second.begin(), known->second.end(), now)));
}

std::uint64_t memory::foresee(const memory_view& mine, const void* address, unsigned bytes, std::memory_order order,
                              unsigned guessed) {
    location& its = find(address, bytes);
    for (const std::uint64_t value : remembered_[address]) {
        if (value == newest(its).value || guessed-- != 0) continue;
        guess_ = {.now = guess::state::open,
                  .acquires = acquires(order),
                  .its = &its,
                  .value = value,
                  .step = mine.now(),
                  .thread = mine.thread,
                  .clock = mine.clock};
        break;
    }
    return guess_.value;
}

std::uint64_t memory::foresee_and_store(memory_view& mine, const void* address, unsigned bytes, std::uint64_t value,
                                        std::memory_order order, unsigned guessed) {
    const std::uint64_t before = foresee(mine, address, bytes, order, guessed);
    location& its = *guess_.its;
    const guess made = std::exchange(guess_, {});
    insert(mine, its, its.count - 1, value, order, false);
    guess_ = made;
    guess_.exchanges = true;
    guess_.own = its.count - 1;
    return before;
}

void memory::doubt(const memory_view& mine, const location& its) noexcept {
    if (guess_.now != guess::state::open || guess_.its != &its) return;
    if (mine.clock.knows(guess_.thread, guess_.step)) guess_.now = guess::state::wrong;
}

bool memory::is_foreseen(const memory_view& mine, const location& its, std::uint64_t value,
                         const vector_clock& published) const noexcept {
    if (guess_.now != guess::state::open || guess_.its != &its || guess_.value != value) return false;
    if (mine.clock.knows(guess_.thread, guess_.step)) return false;
    if (!guess_.acquires) return true;
    // It has gone on without what it would have learned.
    vector_clock learned = guess_.clock;
    learned.join(published);
    return learned.at == guess_.clock.at && learned.seq_cst == guess_.clock.seq_cst;
}

std::uint64_t memory::load(memory_view& mine, const void* address, unsigned bytes, std::memory_order order,
                           choice chosen) {
    location& its = find(address, bytes);
    doubt(mine, its);
    const std::uint32_t lowest = floor_of(mine, its, place_of_load(mine, order));
    std::uint32_t index = its.count - 1;
    if (index != lowest) {
        const unsigned back = chosen.choose(chosen.who, index - lowest + 1);
        stale_loads_ += back != 0;
        index -= back;
    }
    see(mine, its, index, order);
    come_behind(mine, its, index, order);
    return its.stores[index % kept_stores].value;
}

void memory::store(memory_view& mine, void* address, unsigned bytes, std::uint64_t value, std::memory_order order,
                   choice chosen) {
    location& its = find(address, bytes);
    doubt(mine, its);
    std::uint32_t after = pick_place(mine, its, order, chosen);
    const bool comes_before_exchange = guess_.exchanges && guess_.own > place_floor_of(mine, its, order) &&
                                       is_foreseen(mine, its, value, releases(order) ? mine.clock : mine.released);
    if (comes_before_exchange) after = guess_.own - 1;
    insert(mine, its, after, value, order, false);
    if (comes_before_exchange) its.stores[(guess_.own + 1) % kept_stores].modifies = true;
}

bool memory::compare(memory_view& mine, void* address, unsigned bytes, const exchange& wanted, choice chosen,
                     std::uint64_t& found) {
    location& its = find(address, bytes);
    doubt(mine, its);
    const std::uint32_t lowest = floor_of(mine, its, place_of_load(mine, wanted.failure));
    std::uint32_t index = its.count - 1;
    if (index != lowest) {
        const unsigned back = chosen.choose(chosen.who, index - lowest + 1);
        // An old value that is the expected one has to succeed, if it can be followed by another one.
        const bool is_expected = its.stores[(index - back) % kept_stores].value == wanted.expected;
        if (back != 0 && (!is_expected || index - back >= place_floor_of(mine, its, wanted.success))) {
            index -= back;
            ++stale_loads_;
        }
    }
    found = its.stores[index % kept_stores].value;
    const bool is_equal = found == wanted.expected;
    see(mine, its, index, is_equal ? wanted.success : wanted.failure);
    if (is_equal) {
        insert(mine, its, index, wanted.desired, wanted.success, true);
    } else {
        come_behind(mine, its, index, wanted.failure);
    }
    return is_equal;
}

void memory::fence(memory_view& mine, std::memory_order order, vector_clock& all_fences) noexcept {
    if (acquires(order)) mine.clock.join(mine.read);
    if (order == std::memory_order_seq_cst) {
        mine.clock.join(all_fences);
        all_fences = mine.clock;
    }
    if (releases(order)) mine.released = mine.clock;
}

}  // namespace chime::shim
