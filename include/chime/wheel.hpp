// SPDX-License-Identifier: MIT
#pragma once

/// \file
/// chime::timer_wheel<T>: a hashed hierarchical timing wheel that keeps a heap's promises.
///
/// This header stands alone: it needs nothing but the standard library, reads no clock, starts no thread, takes no
/// lock and makes no system call. Time goes in, due timers come out. Whoever has a loop can drive it.
///
///     chime::timer_wheel<connection*> idle;
///     const chime::timer_id id = idle.arm(now + 30s, peer);
///     idle.postpone(id, now + 30s);                                // on every message
///     idle.advance(now, [](connection* late) { late->close(); });  // whenever the loop comes round
///     const auto next = idle.next_deadline();                      // when it has to, at the latest; nothing: not at all
///
/// # What it promises
///
///  * Never early, and in exact order of (deadline, arming), to the nanosecond, whatever the resolution.
///  * `arm`, `cancel` and `postpone` cost the same with ten timers pending and with ten million, but for cache misses.
///  * `advance` does work in proportion to its budget, also when a million timers share one tick.
///  * An id is a plain value. A stale, doubled, forged or foreign one is answered with "no", for ever.
///  * After warm-up nothing is allocated. What cancelled timers leave behind is bounded by what is live, plus a constant.
///
/// # How it works
///
/// Time is cut into ticks (the resolution; a power of two of nanoseconds). A *record* holds a timer: its deadline,
/// its arming number, what is known of its ticket, and the user's value. A *ticket* of sixteen bytes stands for it in the
/// wheel: the record's index, a stamp, and the deadline that it was placed for. Eight levels of 256 slots hold chains of tickets;
/// a slot of level L spans 256^L ticks. The level of a tick is the position of the highest byte in which it differs
/// from the current tick. So no slot ever holds two rounds of the wheel, the lowest occupied slot of the lowest
/// occupied level is always the next one, and a bitmap finds it however long the gap.
///
/// When time reaches a slot of a higher level, its tickets are dealt out to the levels below; their records are not
/// touched, unless so many tickets are stale that it pays to sort them out on the way. When time reaches a slot of
/// level zero, its tickets are *loaded*: now the records are read, and what is due in this tick is sorted by
/// (deadline, arming number) into the *near run*, from which it fires. Both happen a block of tickets at a time and
/// can stop after any block. Each slot remembers the earliest deadline put into it, which is all that `next_deadline`
/// has to look at.
///
/// **The wheel may lie, the record never does.** A ticket may sit earlier than the deadline in force: when it is met,
/// the record says so, and the ticket moves on. Hence postponing to later writes a deadline and nothing else. Hence,
/// too, a cancelled timer leaves its ticket where it is, and the next timer in the same record *inherits* it if it is
/// due later; where timeouts are armed and cancelled all day long, hardly any ticket is ever written. Only what is due
/// before its ticket would be met takes a new stamp and a second ticket, and whoever meets the first one drops it.
///
/// Stamps have eleven bits and wrap. A stale ticket that looks valid again is harmless: nothing fires but by the deadline
/// and the number in a live record, and firing ends that life; until then it costs its sixteen bytes. All that is known
/// of a timer lies in one record, 32 bytes with a value of eight: at a million timers, an operation costs that one miss.
///
/// **A number is a name.** Numbers are given out once in the whole program: their upper half is an identity that no other
/// wheel has, and a wheel that has used up the lower half takes another, greater one. So the number that keeps the order of
/// arming also tells whether an id still names what is in its record, in one comparison; nothing else has to be looked at.
/// Where a cancel or a postponement waits for its record, the processor goes on to the next one for as many instructions as
/// it has room for: these are few on purpose.
///
/// **Scrubbing.** Before there are more tickets than `2 * live + slack`, each operation that adds to the garbage also
/// looks through some tickets (`scrub_budget`), slot by slot in turn, and drops the stale ones. This needs no memory and cannot fail;
/// it takes a few microseconds when none of their records is in the cache.
///
/// # Ground rules
///
/// One thread at a time. `on_due` may arm, cancel, postpone and clear, may throw, and may call `advance` (which then
/// does nothing); it must not destroy the wheel. The destructor of `T` may do the same, except that it must not arm
/// while the wheel is destroyed. The moves and copies of `T` may throw, but must not touch the wheel that they move it into or
/// out of.

#if __cplusplus < 202002L
#error "chime/wheel.hpp needs C++20: compile with -std=c++20 or later"
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace chime {
inline namespace v0 {

/// Names one timer of one wheel, for ever: no other timer of that wheel, nor of any made after it, will have the same id, until
/// four billion identities have been given out: one to each wheel, and one more for every four billion timers that it arms. A
/// value-initialised one names none.
struct timer_id {
    std::uint32_t index = 0;       ///< Of its record.
    std::uint32_t generation = 0;  ///< The lower half of its arming number; never zero.
    std::uint32_t wheel = 0;       ///< The upper half: an identity of its wheel.

    friend auto operator<=>(const timer_id&,
                            const timer_id&) = default;  ///< For sorted containers; tells no order in time.
    explicit operator bool() const noexcept { return generation != 0; }
};

/// How a wheel is built; fixed for its life.
struct wheel_config {
    /// The wheel's first "now". Any time that is not later than the first one given to `advance` is right; a recent one
    /// saves the wheel some way.
    std::chrono::steady_clock::time_point start{};
    /// How finely the wheel sorts, rounded down to a power of two. Order and deadlines are exact whatever it is. Near
    /// the shortest common delay is fast; far above it, timers pile up in one tick and are sorted instead.
    std::chrono::nanoseconds resolution{std::int64_t{1} << 18};
    /// Arming beyond this is refused.
    std::size_t max_timers = std::size_t{1} << 31;
    /// How many stale tickets are tolerated beyond the number of live timers.
    std::size_t stale_slack = 4096;
    /// How many tickets an operation looks through when it is time to drop stale ones. More of them at a time fetch their
    /// records together; fewer make shorter pauses.
    std::size_t scrub_budget = 64;
    /// Where all storage comes from; null: operator new. Must outlive the wheel.
    std::pmr::memory_resource* memory = nullptr;

    /// Empty if usable; otherwise what to change.
    [[nodiscard]] std::string validate() const {
        constexpr std::size_t most_timers = std::size_t{1} << 31;
        if (resolution.count() < 1 || resolution.count() > std::int64_t{1} << 32) {
            return "wheel_config::resolution is " + std::to_string(resolution.count()) +
                   " ns; choose one from 1 to 4294967296 ns";
        }
        if (max_timers < 1 || max_timers > most_timers) {
            return "wheel_config::max_timers is " + std::to_string(max_timers) + "; choose one from 1 to " +
                   std::to_string(most_timers);
        }
        if (stale_slack < 64 || stale_slack > most_timers) {
            return "wheel_config::stale_slack is " + std::to_string(stale_slack) + "; choose one from 64 to " +
                   std::to_string(most_timers);
        }
        if (scrub_budget < 32 || scrub_budget > 65536) {
            return "wheel_config::scrub_budget is " + std::to_string(scrub_budget) + "; choose one from 32 to 65536";
        }
        return {};
    }
};

/// What a wheel has done since it was built. `armed == fired + cancelled + pending` at any moment.
struct wheel_stats {
    std::uint64_t armed = 0;
    std::uint64_t fired = 0;
    std::uint64_t cancelled = 0;
    std::uint64_t postponed = 0;
    std::uint64_t pending = 0;
    std::uint64_t tickets = 0;        ///< Now in the wheel, live and stale.
    std::uint64_t stale = 0;          ///< Of these, the stale ones.
    std::uint64_t stale_dropped = 0;  ///< Stale tickets met when their slot came up.
    std::uint64_t stale_vacant = 0;   ///< Of these, those whose timer was cancelled and had no successor.
    std::uint64_t compactions = 0;    ///< Slots dealt out with a look at every record, because much was stale.
    std::uint64_t scrubbed = 0;       ///< Stale tickets removed before their slot came up.
    std::uint64_t cascaded = 0;       ///< Tickets moved from one slot to another.
};

namespace detail {

struct wheel_audit;  // Defined by the tests: checks every invariant of a wheel the slow way.

/// Another number for every wheel of the program, whatever its type; it repeats after four billion of them. Visible, so that
/// there is one count for all that is linked together, however many shared libraries with symbols of their own that is.
[[gnu::visibility("default")]] inline std::uint32_t next_wheel_identity() noexcept {
    static std::atomic<std::uint32_t> last{0};
    std::uint32_t identity = 0;
    while (identity == 0) identity = last.fetch_add(1, std::memory_order_relaxed) + 1;  // Only uniqueness matters.
    return identity;
}

/// Nanoseconds since the earliest time_point. Unsigned, so that its bits order as the times do.
using ordinal = std::uint64_t;

inline constexpr ordinal end_of_time = ~ordinal{0};
inline constexpr ordinal ordinal_bias = ordinal{1} << 63;

constexpr ordinal to_ordinal(std::chrono::steady_clock::time_point time) noexcept {
    const auto since_epoch = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch());
    return static_cast<ordinal>(since_epoch.count()) ^ ordinal_bias;
}

constexpr std::chrono::steady_clock::time_point to_time_point(ordinal time) noexcept {
    return std::chrono::steady_clock::time_point{
        std::chrono::nanoseconds{static_cast<std::int64_t>(time ^ ordinal_bias)}};
}

static_assert(std::ratio_equal_v<std::chrono::steady_clock::period, std::nano>, "chime counts in nanoseconds");

/// The memory of one wheel: a resource, and how much was taken from it.
class storage {
 public:
    explicit storage(std::pmr::memory_resource* resource) noexcept
        : resource_(resource != nullptr ? resource : std::pmr::new_delete_resource()) {}

    [[nodiscard]] void* take(std::size_t bytes, std::size_t alignment) {
        void* const memory = resource_->allocate(bytes, alignment);
        bytes_ += bytes;
        return memory;
    }

    void give_back(void* memory, std::size_t bytes, std::size_t alignment) noexcept {
        resource_->deallocate(memory, bytes, alignment);
        bytes_ -= bytes;
    }

    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
    std::pmr::memory_resource* resource_;
    std::size_t bytes_ = 0;
};

/// How many elements make a chunk of about 32 KiB.
template <class Element>
inline constexpr std::size_t
    usual_chunk_size = std::bit_floor(std::max<std::size_t>(64, (std::size_t{32} << 10) / sizeof(Element)));

/// An array that grows in chunks and never moves what it holds. Raw memory: it runs no constructors.
template <class Element, std::size_t ChunkSize = usual_chunk_size<Element>>
class chunked_array {
 public:
    static constexpr std::size_t chunk_size = ChunkSize;

    explicit chunked_array(storage& memory) noexcept : memory_(memory) {}
    chunked_array(const chunked_array&) = delete;
    chunked_array& operator=(const chunked_array&) = delete;

    ~chunked_array() {
        for (std::size_t chunk = 0; chunk < chunks_; ++chunk) {
            memory_.give_back(at(chunk * chunk_size), chunk_bytes, chunk_alignment);
        }
        if (table_ != nullptr) memory_.give_back(table_, room_ * sizeof(address), alignof(address));
    }

    [[nodiscard]] Element* at(std::size_t index) const noexcept {
        return reinterpret_cast<Element*>(table_[index / chunk_size] + index * sizeof(Element));
    }

    [[nodiscard]] std::size_t capacity() const noexcept { return chunks_ * chunk_size; }

    /// Puts the first chunk behind the last: what was at `index` is at `index - chunk_size`.
    void rotate() noexcept {
        std::rotate(table_, table_ + 1, table_ + chunks_);
        for (std::size_t chunk = 0; chunk < chunks_; ++chunk) table_[chunk] += chunk_bytes;
        table_[chunks_ - 1] -= chunks_ * chunk_bytes;
    }

    /// Makes room for `count` elements. Throws std::bad_alloc; what is there stays as it is.
    void reserve(std::size_t count) {
        while (capacity() < count) [[unlikely]] add_chunk();
    }

 private:
    /// Where element zero would be if all chunks lay behind each other as one of them does: the address of an element takes
    /// a shift and an addition.
    using address = std::uintptr_t;
    static constexpr std::size_t chunk_bytes = chunk_size * sizeof(Element);
    static constexpr std::size_t chunk_alignment = std::max<std::size_t>(64, alignof(Element));

    [[gnu::noinline, gnu::cold]] void add_chunk() {
        if (chunks_ == room_) {
            const std::size_t room = std::max<std::size_t>(8, room_ * 2);
            auto* const table = static_cast<address*>(memory_.take(room * sizeof(address), alignof(address)));
            if (table_ != nullptr) {
                std::memcpy(table, table_, chunks_ * sizeof(address));
                memory_.give_back(table_, room_ * sizeof(address), alignof(address));
            }
            table_ = table;
            room_ = room;
        }
        table_[chunks_] = reinterpret_cast<address>(memory_.take(chunk_bytes, chunk_alignment)) - chunks_ * chunk_bytes;
        ++chunks_;
    }

    address* table_ = nullptr;
    std::size_t chunks_ = 0;
    std::size_t room_ = 0;
    storage& memory_;
};

/// What sits in a slot: the deadline that it was placed for, which record, and which of the record's tickets.
/// While it is valid, the deadline in force is the same or later.
struct ticket {
    ordinal deadline;
    std::uint32_t index;
    std::uint16_t stamp;
};

/// Where in time a ticket sits, in 20 bits: roughly, or that it is far away. See ticket_wheel::place_of().
using ticket_place = std::uint32_t;
inline constexpr ticket_place far_away = 1U << 19;

/// A link of a slot's chain. Aligned to its size, so that a write pointer tells by itself when its block is full.
struct alignas(512) ticket_block {
    static constexpr std::size_t capacity = 31;

    ticket_block* next;
    alignas(sizeof(ticket)) std::array<ticket, capacity> tickets;

    /// How many tickets this block of a chain holds, if the last block of the chain is filled up to `end`.
    [[nodiscard]] std::size_t count(const ticket* end) const noexcept {
        return next != nullptr ? capacity : static_cast<std::size_t>(end - tickets.data());
    }

    void prefetch() const noexcept {
        const auto* const first = reinterpret_cast<const std::byte*>(this);
        for (std::size_t line = 0; line < sizeof *this; line += 64) __builtin_prefetch(first + line);
    }
};
static_assert(sizeof(ticket_block) == 512 && sizeof(ticket) == 16);

/// Blocks for all the chains of one wheel; a block that was given back is the next to be taken.
class block_pool {
 public:
    explicit block_pool(storage& memory) noexcept : slabs_(memory) {}

    /// Afterwards `count` calls of take() cannot fail. Throws std::bad_alloc; nothing has changed.
    void reserve(std::size_t count) {
        while (free_count_ < count) [[unlikely]] add_slab();
    }

    [[nodiscard]] ticket_block* take() noexcept {
        ticket_block* const block = free_;
        free_ = block->next;
        __builtin_prefetch(free_, 1);  // Whoever takes it reads where the one behind it lies.
        --free_count_;
        return block;
    }

    void give_back(ticket_block* block) noexcept {
        block->next = free_;
        free_ = block;
        ++free_count_;
    }

    [[nodiscard]] std::size_t free_count() const noexcept { return free_count_; }
    [[nodiscard]] std::size_t block_count() const noexcept { return block_count_; }

 private:
    [[gnu::noinline, gnu::cold]] void add_slab() {
        constexpr std::size_t slab_blocks = 64;
        slabs_.reserve(block_count_ + slab_blocks);
        for (std::size_t added = 0; added < slab_blocks; ++added) {
            give_back(::new (static_cast<void*>(slabs_.at(block_count_ + slab_blocks - 1 - added))) ticket_block);
        }
        block_count_ += slab_blocks;
    }

    chunked_array<ticket_block> slabs_;
    ticket_block* free_ = nullptr;
    std::size_t free_count_ = 0;
    std::size_t block_count_ = 0;
};

/// A loaded ticket: everything that its place in the order depends on.
struct due_entry {
    ordinal deadline;
    std::uint64_t number;
    std::uint32_t index;
    std::uint16_t stamp;

    friend bool operator<(const due_entry& a, const due_entry& b) noexcept {
        return a.deadline != b.deadline ? a.deadline < b.deadline : a.number < b.number;
    }
};

/// The tickets of the current tick in firing order: a sorted run for what came together, and beside it a heap for
/// what did not fit behind the end of the run. Firing merges the two.
class near_run {
 public:
    explicit near_run(storage& memory) noexcept : run_(memory), heap_(memory) {}

    /// The first in order, or null. Needs settle() after append().
    [[nodiscard]] const due_entry* front() const noexcept {
        if (heap_size_ == 0) [[likely]]
            return head_ != tail_ ? run_.at(head_) : nullptr;
        return heap_leads() ? heap_.at(0) : run_.at(head_);
    }

    /// One that is likely to come to the front in a while, or null: for who fetches ahead.
    [[nodiscard]] const due_entry* ahead(std::size_t distance) const noexcept {
        return head_ + distance < tail_ ? run_.at(head_ + distance) : nullptr;
    }

    void pop_front() noexcept {
        if (heap_size_ != 0 && heap_leads()) [[unlikely]]
            return remove_from_heap(0);
        if (++head_ == gap_begin_) head_ = gap_end_;
        if (head_ == tail_) clear_run();
    }

    /// Afterwards `count` calls of append() or push() cannot fail. Throws std::bad_alloc; nothing has changed.
    void reserve(std::size_t count) {
        if (tail_ + count > run_.capacity() && head_ >= run_t::chunk_size) reuse_front();
        run_.reserve(tail_ + count);
        heap_.reserve(heap_size_ + (tail_ - sorted_) + count);
    }

    /// Adds an entry to what settle() will sort.
    void append(const due_entry& entry) noexcept { *run_.at(tail_++) = entry; }

    [[nodiscard]] std::size_t unsettled() const noexcept { return tail_ - sorted_; }

    /// Brings what was appended into order: at the end of the run if it belongs there, into the heap otherwise.
    void settle() noexcept {
        while (sorted_ != tail_) {
            const std::size_t piece = std::min(tail_ - sorted_, run_t::chunk_size - sorted_ % run_t::chunk_size);
            due_entry* const first = run_.at(sorted_);
            sort(first, piece);
            if (sorted_ != head_ && *first < *run_.at(sorted_ - 1)) {
                for (std::size_t position = sorted_; position != tail_; ++position) push(*run_.at(position));
                tail_ = sorted_;
                return;
            }
            sorted_ += piece;
        }
    }

    /// Adds one entry wherever it belongs. Needs reserve().
    void push(const due_entry& entry) noexcept { rise(heap_size_++, entry); }

    /// Begins to look through all entries, from the back to the front, a few at a time.
    void begin_scan() noexcept {
        settle();
        gap_begin_ = gap_end_ = tail_;
        heap_scan_ = heap_size_;
    }

    [[nodiscard]] bool scan_is_over() const noexcept { return gap_begin_ <= head_ && heap_scan_ == 0; }

    /// Looks at up to `count` entries and takes out those that `is_stale`. Answers how many it has seen.
    template <class IsStale>
    std::size_t scan(std::size_t count, const IsStale& is_stale) noexcept {
        settle();
        std::size_t seen = 0;
        for (; seen < count && gap_begin_ > head_; ++seen) {
            const due_entry entry = *run_.at(--gap_begin_);
            if (!is_stale(entry)) *run_.at(--gap_end_) = entry;
        }
        if (gap_begin_ <= head_) head_ = std::max(head_, gap_end_);
        if (gap_end_ == tail_) tail_ = sorted_ = gap_end_ = std::max(gap_begin_, head_);
        if (head_ == tail_) clear_run();
        for (; seen < count && heap_scan_ != 0; ++seen) {
            heap_scan_ = std::min(heap_scan_, heap_size_);
            if (heap_scan_ == 0) break;
            if (is_stale(*heap_.at(--heap_scan_))) remove_from_heap(heap_scan_);
        }
        return seen;
    }

    /// Calls `visit` with every entry: those of the run in order, then those of the heap.
    template <class Visit>
    void visit_all(const Visit& visit) const {
        for (std::size_t position = head_; position != tail_;) {
            visit(*run_.at(position));
            if (++position == gap_begin_) position = gap_end_;
        }
        for (std::size_t position = 0; position < heap_size_; ++position) visit(*heap_.at(position));
    }

    void clear() noexcept {
        clear_run();
        heap_size_ = heap_scan_ = 0;
    }

 private:
    friend wheel_audit;
    using run_t = chunked_array<due_entry>;
    static constexpr std::size_t fan_out = 4;

    [[nodiscard]] bool heap_leads() const noexcept { return head_ == tail_ || *heap_.at(0) < *run_.at(head_); }

    static constexpr std::size_t few = 6;           ///< Up to so many are sorted by insertion at once.
    static constexpr std::size_t some = 24;         ///< Up to so many if nothing better has helped.
    static constexpr std::size_t most_ranked = 64;  ///< Up to so many are ranked.

    /// Most ticks hold a handful: insertion sort. Some hold a few dozen: they are ranked, which leaves those of the same
    /// deadline as they came. What comes in order stays in one pass.
    static void sort(due_entry* first, std::size_t count) noexcept {
        if (count > few) {
            if (std::is_sorted(first, first + count)) return;
            if (count <= most_ranked && rank(first, count) && std::is_sorted(first, first + count)) return;
            if (count > some) return std::sort(first, first + count);
        }
        for (std::size_t next = 1; next < count; ++next) {
            const due_entry entry = first[next];
            std::size_t hole = next;
            for (; hole != 0 && entry < first[hole - 1]; --hole) first[hole] = first[hole - 1];
            first[hole] = entry;
        }
    }

    /// Brings entries into the order of their deadlines; false: these do not lie near each other. An entry's rank is how
    /// many come before it. To count that for each is quadratic work, but four at a time and without a branch that cannot
    /// be guessed.
    static bool rank(due_entry* first, std::size_t count) noexcept {
        using lanes [[gnu::vector_size(16)]] = std::int32_t;
        constexpr std::size_t lane_count = sizeof(lanes) / sizeof(std::int32_t);
        constexpr unsigned position_bits = std::bit_width(most_ranked - 1);
        constexpr ordinal too_wide = ordinal{1} << (31 - position_bits);

        ordinal earliest = first->deadline;
        ordinal latest = earliest;
        for (std::size_t position = 1; position < count; ++position) {
            earliest = std::min(earliest, first[position].deadline);
            latest = std::max(latest, first[position].deadline);
        }
        if (latest - earliest >= too_wide) return false;

        std::array<due_entry, most_ranked> unordered;
        std::array<std::int32_t, most_ranked> keys;  // Different ones, whatever the deadlines are.
        for (std::size_t position = 0; position < count; ++position) {
            unordered[position] = first[position];
            keys[position] =
                static_cast<std::int32_t>((first[position].deadline - earliest) << position_bits | position);
        }
        const std::size_t end = (count + lane_count - 1) / lane_count * lane_count;
        std::fill(keys.begin() + count, keys.begin() + end, std::numeric_limits<std::int32_t>::max());
        for (std::size_t position = 0; position < count; ++position) {
            lanes before{};
            for (std::size_t other = 0; other < end; other += lane_count) {
                lanes others;
                std::memcpy(&others, &keys[other], sizeof others);
                before -= others < keys[position];  // A lane that is true is minus one.
            }
            first[before[0] + before[1] + before[2] + before[3]] = unordered[position];
        }
        return true;
    }

    /// The run has moved on and left its first chunk empty.
    void reuse_front() noexcept {
        run_.rotate();
        for (std::size_t* position : {&head_, &tail_, &sorted_}) *position -= run_t::chunk_size;
        for (std::size_t* position : {&gap_begin_, &gap_end_}) *position -= std::min(*position, run_t::chunk_size);
    }

    void clear_run() noexcept { head_ = tail_ = sorted_ = gap_begin_ = gap_end_ = 0; }

    void remove_from_heap(std::size_t position) noexcept {
        const due_entry last = *heap_.at(--heap_size_);
        if (position != heap_size_) sink(position, last);
    }

    /// Puts an entry into a hole, or higher up where it belongs.
    void rise(std::size_t hole, const due_entry& entry) noexcept {
        while (hole != 0) {
            const std::size_t parent = (hole - 1) / fan_out;
            if (!(entry < *heap_.at(parent))) break;
            *heap_.at(hole) = *heap_.at(parent);
            hole = parent;
        }
        *heap_.at(hole) = entry;
    }

    /// Fills a hole with what is below it, and puts the entry into the one that is left.
    void sink(std::size_t hole, const due_entry& entry) noexcept {
        for (std::size_t first = hole * fan_out + 1; first < heap_size_; first = hole * fan_out + 1) {
            std::size_t least = first;
            const std::size_t end = std::min(first + fan_out, heap_size_);
            for (std::size_t child = first + 1; child < end; ++child) {
                if (*heap_.at(child) < *heap_.at(least)) least = child;
            }
            if (!(*heap_.at(least) < entry)) break;
            *heap_.at(hole) = *heap_.at(least);
            hole = least;
        }
        rise(hole, entry);
    }

    run_t run_;
    std::size_t head_ = 0;
    std::size_t tail_ = 0;
    std::size_t sorted_ = 0;     ///< The end of what settle() has seen.
    std::size_t gap_begin_ = 0;  ///< A scan has got this far; from here to gap_end_ there is nothing.
    std::size_t gap_end_ = 0;
    run_t heap_;
    std::size_t heap_size_ = 0;
    std::size_t heap_scan_ = 0;  ///< A scan has got this far.
};

/// What the wheel asks of whoever keeps the records. All calls are cheap, by index, and valid for every index that
/// ever was in a ticket.
// clang-format off
template <class Records>
concept ticket_resolver = requires(Records& records, const Records& view, std::uint32_t index, std::uint16_t stamp,
                                   ordinal deadline, ticket_place place) {
    { view.holds(index, stamp) } noexcept -> std::same_as<bool>;    // Is this the ticket of a pending timer?
    { records.let_go(index, stamp) } noexcept -> std::same_as<bool>; // If it is not, it leaves the wheel; was it the last?
    { view.deadline(index) } noexcept -> std::same_as<ordinal>;     // The deadline in force.
    { view.number(index) } noexcept -> std::same_as<std::uint64_t>; // The arming number.
    { view.prefetch(index) } noexcept;                              // All of these will be asked for soon.
    { records.placed(index, deadline, place) } noexcept;            // Its ticket sits there now; both say the same.
};
// clang-format on

/// Orders tickets. Knows nothing of what they stand for; the records tell it through a resolver.
/// Owned by one timer_wheel or worker; one thread at a time.
class ticket_wheel {
 public:
    using slot_number = std::uint32_t;
    /// How many tickets may be looked at before coming back.
    struct work {
        std::size_t to_load;  ///< Into the near run, or into lower levels.
        std::size_t to_fire;

        /// For a call that may fire `budget` timers. One is dealt out up to seven times and loaded; and before one that
        /// fires, some that were cancelled or moved may have to be taken away.
        static constexpr work for_budget(std::size_t budget) noexcept {
            if (budget >= unlimited / 16) return {unlimited, unlimited};
            return {16 * (budget + 1), 4 * (budget + 1)};
        }
        [[nodiscard]] bool is_unlimited() const noexcept { return to_load == unlimited; }

        static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
    };

    static constexpr unsigned level_bits = 8;
    static constexpr unsigned level_count = 8;
    static constexpr std::size_t slots_per_level = std::size_t{1} << level_bits;
    /// Beyond the levels: what is armed for the current tick or an earlier one. Loaded when the next advance begins.
    static constexpr slot_number overdue_slot = level_count * slots_per_level;

    ticket_wheel(storage& memory, ordinal start, unsigned tick_shift, std::size_t stale_slack, std::size_t scrub_budget)
        : memory_(memory),
          pool_(memory),
          near_(memory),
          current_tick_(start >> tick_shift),
          tick_shift_(tick_shift),
          stale_slack_(stale_slack),
          scrub_budget_(scrub_budget),
          credit_(present()),
          slots_(static_cast<slot_table*>(memory.take(sizeof(slot_table), 64))) {
        ::new (static_cast<void*>(slots_)) slot_table{};
    }
    ticket_wheel(const ticket_wheel&) = delete;
    ticket_wheel& operator=(const ticket_wheel&) = delete;
    ~ticket_wheel() { memory_.give_back(slots_, sizeof(slot_table), 64); }

    [[nodiscard]] std::uint64_t tick_of(ordinal deadline) const noexcept { return deadline >> tick_shift_; }
    [[nodiscard]] std::uint64_t current_tick() const noexcept { return current_tick_; }
    /// How many tickets there are, live and stale.
    [[nodiscard]] std::size_t tickets() const noexcept { return tickets_; }
    /// How many timers have begun their lives here and not ended them.
    [[nodiscard]] std::size_t live() const noexcept {
        const std::int64_t of_timers = credit_ + static_cast<std::int64_t>(tickets_) * ticket_cost - present();
        return static_cast<std::size_t>(of_timers / timer_credit);
    }

    /// How many tickets are stale. None while there are more timers than tickets, as when one was met whose timer somebody else
    /// has ended, and its owner does not know yet.
    [[nodiscard]] std::size_t stale() const noexcept { return tickets() - std::min(tickets(), live()); }

    /// Where a ticket for `tick` belongs now.
    [[nodiscard]] slot_number slot_for(std::uint64_t tick) const noexcept {
        return tick > current_tick_ ? slot_ahead(tick) : overdue_slot;
    }

    /// The place of a ticket for `tick`, in units of 32 ticks, without the high bits: enough to tell how far ahead it
    /// is, unless it is further than 2^24 ticks.
    [[nodiscard]] ticket_place place_of(std::uint64_t tick) const noexcept {
        const std::uint64_t unit = std::max(tick, current_tick_) / ticks_per_place;
        const bool is_far = unit - current_tick_ / ticks_per_place > place_mask;
        return static_cast<ticket_place>(unit & place_mask) | (is_far ? far_away : 0);
    }

    /// What is needed to tell, as long as time stands still, whether a ticket is met in time.
    class reach {
     public:
        /// Will a ticket that sits at `place` be met before time gets to the tick of `target`? False if in doubt.
        [[nodiscard]] bool is_met_before(ticket_place place, ordinal target) const noexcept {
            const auto distance = static_cast<std::int64_t>((target >> shift_) - current_);
            const auto ahead =
                static_cast<std::int64_t>((place - current_) & place_mask);  // 0: the next few ticks, or overdue.
            return distance > ahead && place < far_away;
        }

     private:
        friend ticket_wheel;
        reach(std::uint64_t current_tick, unsigned tick_shift) noexcept
            : current_(current_tick / ticks_per_place), shift_(tick_shift + std::countr_zero(ticks_per_place)) {}

        std::uint64_t current_;  ///< In units of places, like what is shifted by this:
        unsigned shift_;
    };
    [[nodiscard]] reach reach_now() const noexcept { return {current_tick_, tick_shift_}; }

    /// Afterwards `count` calls of put() cannot fail. Throws std::bad_alloc; nothing has changed.
    void reserve(std::size_t count = 1) { pool_.reserve(count); }

    /// How many calls of put() cannot fail, at least.
    [[nodiscard]] std::size_t reserved() const noexcept { return pool_.free_count(); }

    /// Afterwards `count` calls of put_near() cannot fail. Throws std::bad_alloc; nothing has changed.
    void reserve_near(std::size_t count) { near_.reserve(count); }

    /// Adds a ticket. Throws std::bad_alloc; nothing has changed.
    void put(slot_number where, const ticket& fresh) {
        slot& target = slots_->slots[where];
        if (block_is_full(target.write)) [[unlikely]]
            grow(where);
        append(target, fresh);
        count_ticket();
    }

    /// Adds a ticket for the current tick or an earlier one to what is about to fire.
    /// Throws std::bad_alloc; nothing has changed.
    void put_near(const due_entry& entry) {
        near_.reserve(1);
        near_.push(entry);
        count_ticket();
    }

    /// Never later than the earliest live deadline, if there is one.
    [[nodiscard]] ordinal next_deadline() const noexcept {
        ordinal earliest = std::min(slots_->slots[overdue_slot].min, drain_.min);
        if (const due_entry* const entry = near_.front()) earliest = std::min(earliest, entry->deadline);
        if (occupied_words_ != 0) earliest = std::min(earliest, slots_->slots[first_occupied()].min);
        return earliest;
    }

    /// Begins an advance: what was armed for the current tick has to be loaded first. Timers with a number from
    /// `next_number` on wait for the next one.
    ///
    /// Or goes on with the last one, if that has not loaded all that was armed for a time that had come already: whoever
    /// arms such timers faster than they may be looked at must not keep everything from firing. For as many calls as it has
    /// only loaded it then only fires. Where there is all the time in the world, it begins anew.
    void begin_advance(std::uint64_t next_number, const work& left) noexcept {
        check_stale_ = stale() > live() / 8;
        has_progress_ = false;
        if (goes_on() && !left.is_unlimited()) return;
        is_advancing_ = true;
        number_limit_ = next_number;
        take_overdue_ = true;
        loaded_ = false;
        calls_owed_ = 0;
    }

    /// The end of a call; and of the advance, unless the next one goes on with it.
    void end_advance() noexcept {
        if (!has_progress_) {
            ++calls_owed_;
        } else if (calls_owed_ != 0) {
            --calls_owed_;
        } else {
            is_advancing_ = false;
        }
    }

    /// Something has come that belongs among what has been loaded: the next call begins anew.
    void abandon_advance() noexcept { is_advancing_ = false; }

    /// Will the next call go on with this advance?
    [[nodiscard]] bool goes_on() const noexcept { return is_advancing_ && !take_overdue_; }

    /// Is there an advance that has not ended?
    [[nodiscard]] bool is_advancing() const noexcept { return is_advancing_; }

    /// May the advance that is going on fire the timer with this number, if it is due in `tick`? Then its ticket belongs into
    /// the near run.
    [[nodiscard]] bool is_near(std::uint64_t number, std::uint64_t tick) const noexcept {
        return is_advancing_ && number < number_limit_ && tick <= current_tick_;
    }

    /// The first timer in order that is pending and due, for pop_due(); or null: there is none, or no work is left.
    /// Throws std::bad_alloc; nothing is lost.
    template <ticket_resolver Records>
    const due_entry* find_due(Records& records, ordinal now, work& left) {
        for (;;) {
            if (!loaded_ && !load(records, left)) return nullptr;
            const due_entry* const entry = near_.front();
            if (entry != nullptr && entry->deadline <= now) {
                if (left.to_fire == 0) return nullptr;
                --left.to_fire;
                if (!records.holds(entry->index, entry->stamp)) [[unlikely]] {
                    drop_due(records, *entry);
                } else if (records.deadline(entry->index) != entry->deadline ||
                           records.number(entry->index) != entry->number) [[unlikely]] {
                    move_due(records, *entry);
                } else {
                    fetch_one(records);
                    return entry;
                }
            } else {
                has_progress_ = true;
                calls_owed_ = 0;
                if (!step(tick_of(now))) return nullptr;
            }
        }
    }

    /// One that find_due() is likely to find in a while, or null: for who fetches ahead.
    [[nodiscard]] const due_entry* due_ahead(std::size_t distance) const noexcept { return near_.ahead(distance); }

    void pop_due() noexcept {
        near_.pop_front();
        forget_tickets(1);
        has_progress_ = true;
    }

    /// What find_due() has found cannot be decided about now: the next advance looks at it again. Needs reserve().
    template <ticket_resolver Records>
    void defer_due(Records& records, const due_entry& entry) noexcept {
        near_.pop_front();
        put_again(overdue_slot, {entry.deadline, entry.index, entry.stamp});
        records.placed(entry.index, entry.deadline, place_of(current_tick_));
    }

    /// A timer begins its life.
    void count_arm() noexcept { credit_ += timer_credit; }

    /// A timer ends its life.
    void count_end() noexcept { credit_ -= timer_credit; }

    /// Is it time for limit_stale()?
    [[nodiscard]] bool owes_scrub() const noexcept { return credit_ < 0; }

    /// Call after anything that costs credit: keeps the stale tickets below the live ones plus the slack.
    template <ticket_resolver Records>
    void limit_stale(Records& records) noexcept {
        if (credit_ < 0) [[unlikely]]
            scrub(records);
    }

    /// Calls `visit` with the index of every ticket, live or stale, that may be met by `horizon`, and of some others: one
    /// slot after the other, the next ones first. `visit` must leave the wheel alone.
    template <class Visit>
    void visit_until(ordinal horizon, const Visit& visit) const {
        near_.visit_all([&](const due_entry& entry) { visit(entry.index); });
        if (drain_.block != nullptr) visit_chain(drain_.block, drain_.end, visit);
        visit_slot(overdue_slot, visit);
        for (unsigned level = 0; level < level_count; ++level) {
            for (std::size_t position = 0; position < slots_per_level; ++position) {
                const auto where = static_cast<slot_number>(level * slots_per_level + position);
                if (slots_->slots[where].write == nullptr) continue;
                if (slots_->slots[where].min > horizon) return;  // All others are later still.
                visit_slot(where, visit);
            }
        }
    }

    /// All timers end their lives.
    void count_all_ends() noexcept { credit_ -= static_cast<std::int64_t>(live()) * timer_credit; }

    /// Drops all tickets.
    void clear() noexcept {
        for (slot_number where = 0; where <= overdue_slot; ++where) {
            while (drain_.block != nullptr) end_block();
            if (slots_->slots[where].write != nullptr) take(where);
        }
        while (drain_.block != nullptr) end_block();
        near_.clear();
        is_advancing_ = false;
        forget_tickets(tickets_);
    }

    /// Moves time to `horizon` and loads all that is due by then, for take_loaded().
    /// Throws std::bad_alloc; nothing is lost.
    template <ticket_resolver Records>
    void load_until(Records& records, ordinal horizon) {
        work left = work::for_budget(work::unlimited);
        begin_advance(std::numeric_limits<std::uint64_t>::max(), left);
        do {
            if (!loaded_) load(records, left);
        } while (step(tick_of(horizon)));
    }

    /// Takes out the first ticket in order of those that are loaded: its index, or nothing. Asks nothing of the records.
    [[nodiscard]] std::optional<std::uint32_t> take_loaded() noexcept {
        const due_entry* const entry = near_.front();
        if (entry == nullptr) return std::nullopt;
        const std::uint32_t index = entry->index;
        near_.pop_front();
        forget_tickets(1);
        return index;
    }

    /// Moves time to wherever it is wanted, also back. There must be no ticket: see clear().
    void begin_anew(ordinal now) noexcept {
        current_tick_ = tick_of(now);
        loaded_ = true;
        take_overdue_ = false;
    }

    [[nodiscard]] std::uint64_t cascaded() const noexcept { return cascaded_; }
    [[nodiscard]] std::uint64_t stale_dropped() const noexcept { return stale_dropped_; }
    [[nodiscard]] std::uint64_t stale_vacant() const noexcept { return stale_vacant_; }
    [[nodiscard]] std::uint64_t compactions() const noexcept { return compactions_; }
    [[nodiscard]] std::uint64_t scrubbed() const noexcept { return scrubbed_; }

 private:
    friend wheel_audit;

    /// The end of a chain, and the earliest deadline that was put into it since it was empty.
    struct slot {
        ticket* write = nullptr;  ///< Null: the slot is empty.
        ordinal min = end_of_time;
    };

    struct slot_table {
        std::array<slot, overdue_slot + 1> slots;
        std::array<ticket_block*, overdue_slot + 1> heads{};  ///< Valid where `write` is not null.
    };

    /// A chain that was taken out of its slot and is being emptied.
    struct drain {
        ticket_block* block = nullptr;
        ticket* end = nullptr;  ///< Of the last block.
        ordinal min = end_of_time;
        unsigned level = 0;
    };

    void count_ticket() noexcept {
        ++tickets_;
        credit_ -= ticket_cost;
    }

    void forget_tickets(std::size_t count) noexcept {
        tickets_ -= count;
        credit_ += static_cast<std::int64_t>(count) * ticket_cost;
    }

    /// The credit of a wheel that is empty.
    [[nodiscard]] std::int64_t present() const noexcept { return static_cast<std::int64_t>(stale_slack_) * 2; }

    [[nodiscard]] static bool block_is_full(const ticket* write) noexcept {
        return reinterpret_cast<std::uintptr_t>(write) % sizeof(ticket_block) == 0;  // Null counts as full.
    }

    /// The block that holds the ticket before `write`.
    [[nodiscard]] static ticket_block* block_of(ticket* write) noexcept {
        const std::uintptr_t last = reinterpret_cast<std::uintptr_t>(write) - sizeof(ticket);
        return reinterpret_cast<ticket_block*>(last - last % sizeof(ticket_block));
    }

    /// For a tick that is not before the current one.
    [[nodiscard]] slot_number slot_ahead(std::uint64_t tick) const noexcept {
        const unsigned highest_bit = 63U - static_cast<unsigned>(std::countl_zero((tick ^ current_tick_) | 1));
        const unsigned shift = highest_bit / level_bits * level_bits;
        return static_cast<slot_number>(shift / level_bits * slots_per_level + (tick >> shift) % slots_per_level);
    }

    /// Puts a ticket that is in the wheel already. Needs reserve().
    void put_again(slot_number where, const ticket& moved) noexcept {
        slot& target = slots_->slots[where];
        if (block_is_full(target.write)) [[unlikely]]
            extend(where);
        append(target, moved);
    }

    static void append(slot& target, const ticket& added) noexcept {
        *target.write = added;
        // The next line of this chain, or the stores behind the one that begins it wait until it has come. As a number,
        // because behind the last ticket of a block it is somebody else's.
        __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(target.write) + line_bytes),
                           1);
        ++target.write;
        target.min = std::min(target.min, added.deadline);
    }

    [[gnu::noinline]] void grow(slot_number where) {
        pool_.reserve(1);
        extend(where);
    }

    [[gnu::noinline]] void extend(slot_number where) noexcept {
        slot& target = slots_->slots[where];
        ticket_block* const block = pool_.take();
        block->next = nullptr;
        if (target.write != nullptr) {
            block_of(target.write)->next = block;
        } else {
            slots_->heads[where] = block;
            if (where != overdue_slot) mark(where);
        }
        target.write = block->tickets.data();
    }

    void mark(slot_number where) noexcept {
        occupied_[where / 64] |= std::uint64_t{1} << where % 64;
        occupied_words_ |= 1U << where / 64;
    }

    void unmark(slot_number where) noexcept {
        occupied_[where / 64] &= ~(std::uint64_t{1} << where % 64);
        if (occupied_[where / 64] == 0) occupied_words_ &= ~(1U << where / 64);
    }

    /// The next slot, if any is occupied. All of those lie ahead, and those of a lower level before those of a higher one.
    [[nodiscard]] slot_number first_occupied() const noexcept {
        const auto word = static_cast<unsigned>(std::countr_zero(occupied_words_));
        return word * 64 + static_cast<unsigned>(std::countr_zero(occupied_[word]));
    }

    /// Takes the chain out of an occupied slot; the drain empties it.
    void take(slot_number where) noexcept {
        slot& source = slots_->slots[where];
        drain_ = {slots_->heads[where], source.write, source.min,
                  where == overdue_slot ? 0U : static_cast<unsigned>(where / slots_per_level)};
        source = slot{};
        if (where != overdue_slot) unmark(where);
        if (scrub_turn_ == where || scrub_turn_ == drain_turn) scrub_until_ = nullptr;
    }

    template <class Visit>
    void visit_slot(slot_number where, const Visit& visit) const {
        if (ticket* const end = slots_->slots[where].write) visit_chain(slots_->heads[where], end, visit);
    }

    template <class Visit>
    static void visit_chain(ticket_block* block, ticket* end, const Visit& visit) {
        for (; block != nullptr; block = block->next) {
            const std::size_t count = block->count(end);
            for (std::size_t position = 0; position < count; ++position) visit(block->tickets[position].index);
        }
    }

    /// How many tickets the block at hand holds.
    [[nodiscard]] std::size_t block_count() const noexcept { return drain_.block->count(drain_.end); }

    void end_block() noexcept {
        ticket_block* const next = drain_.block->next;
        pool_.give_back(drain_.block);
        drain_.block = next;
        if (next == nullptr) drain_ = drain{};
        if (scrub_turn_ == drain_turn) scrub_until_ = nullptr;
    }

    /// Moves the current tick to the next occupied slot, if it begins by `target_tick`; false: there is none.
    bool step(std::uint64_t target_tick) noexcept {
        if (current_tick_ == target_tick) return false;
        if (occupied_words_ != 0) {
            const slot_number next = first_occupied();
            const unsigned level = next / slots_per_level;
            const unsigned shift = level * level_bits;
            const std::uint64_t round = level + 1 == level_count ? 0 : current_tick_ >> shift >> level_bits;
            const std::uint64_t begin = (round << level_bits | next % slots_per_level) << shift;
            if (begin <= target_tick) {
                current_tick_ = begin;
                take(next);
                compactions_ += static_cast<std::uint64_t>(check_stale_ && level != 0);
                loaded_ = false;
                return true;
            }
        }
        current_tick_ = target_tick;
        return false;
    }

    /// Brings everything that belongs to the current tick into the near run; false: no work is left.
    template <class Records>
    bool load(Records& records, work& left) {
        for (;;) {
            while (drain_.block != nullptr) {
                if (left.to_load == 0) {
                    near_.settle();
                    return false;
                }
                const std::size_t count = block_count();
                left.to_load -= std::min(left.to_load, count);
                if (drain_.block->next != nullptr) drain_.block->next->prefetch();
                pool_.reserve(count);  // From here to the end of the block nothing can fail.
                if (drain_.level != 0) {
                    cascade_block(records);
                } else {
                    near_.reserve(count);
                    load_block(records);
                    if (near_.unsettled() >= most_unsettled) near_.settle();
                }
                end_block();
            }
            near_.settle();  // The next chain may fail to load; what is loaded must be in order by then.
            const auto here = static_cast<slot_number>(current_tick_ % slots_per_level);
            if (slots_->slots[here].write != nullptr) {
                take(here);  // A cascade has put these into the very tick that we are in.
            } else if (std::exchange(take_overdue_, false) && slots_->slots[overdue_slot].write != nullptr) {
                take(overdue_slot);
            } else {
                loaded_ = true;
                return true;
            }
        }
    }

    /// Deals the tickets of one block of a higher level out to the levels below.
    template <class Records>
    void cascade_block(Records& records) noexcept {
        const std::size_t count = block_count();
        for (std::size_t position = 0; position < count; ++position) {
            const ticket met = drain_.block->tickets[position];
            if (check_stale_ && !records.holds(met.index, met.stamp)) {
                drop(records, met.index, met.stamp);
            } else {
                put_again(slot_ahead(tick_of(met.deadline)), met);
                ++cascaded_;
            }
        }
    }

    /// Fetches the records of the tickets in one block of a chain: those that have not been fetched with each timer that fired.
    template <class Records>
    void fetch_records(Records& records, const ticket_block* block, const ticket* end) noexcept {
        fetch_later(block, end);
        for (; fetch_next_ != fetch_end_; ++fetch_next_) records.prefetch(fetch_next_->index);
    }

    /// From now on the records of this block are fetched, one with each timer that fires; unless they are already.
    void fetch_later(const ticket_block* block, const ticket* end) noexcept {
        if (std::exchange(fetched_, block) == block) return;
        fetch_next_ = block->tickets.data();
        fetch_end_ = fetch_next_ + block->count(end);
    }

    /// Fetches the next one of those. All at once they would be more than a processor has under way at a time, and it
    /// would wait.
    template <class Records>
    void fetch_one(Records& records) noexcept {
        if (fetch_next_ != fetch_end_) records.prefetch((fetch_next_++)->index);
    }

    /// Says what will be loaded after the block at hand: its records arrive while those of this one fire.
    void fetch_ahead() noexcept {
        if (drain_.block->next != nullptr) {
            fetch_later(drain_.block->next, drain_.end);
        } else if ((occupied_words_ & words_of_first_level) != 0) {
            const slot_number next = first_occupied();
            fetch_later(slots_->heads[next], slots_->slots[next].write);
        }
    }

    /// Loads the tickets of one block of the current tick.
    template <class Records>
    void load_block(Records& records) noexcept {
        const std::size_t count = block_count();
        fetch_records(records, drain_.block, drain_.end);
        fetch_ahead();
        for (std::size_t position = 0; position < count; ++position) {
            const ticket met = drain_.block->tickets[position];
            if (!records.holds(met.index, met.stamp)) {
                drop(records, met.index, met.stamp);
                continue;
            }
            const due_entry entry{records.deadline(met.index), records.number(met.index), met.index, met.stamp};
            if (tick_of(entry.deadline) > current_tick_) {
                replace(records, entry);
            } else if (entry.number >= number_limit_) {
                put_again(overdue_slot, met);
            } else {
                near_.append(entry);
                if (entry.deadline != met.deadline) records.placed(met.index, entry.deadline, place_of(current_tick_));
            }
        }
    }

    /// Places the ticket of a postponed timer anew, in a later tick.
    template <class Records>
    void replace(Records& records, const due_entry& entry) noexcept {
        const std::uint64_t tick = tick_of(entry.deadline);
        put_again(slot_ahead(tick), {entry.deadline, entry.index, entry.stamp});
        records.placed(entry.index, entry.deadline, place_of(tick));
        ++cascaded_;
    }

    template <class Records>
    void drop(Records& records, std::uint32_t index, std::uint16_t stamp) noexcept {
        stale_vacant_ += static_cast<std::uint64_t>(records.let_go(index, stamp));
        forget_tickets(1);
        ++stale_dropped_;
    }

    template <class Records>
    [[gnu::noinline]] void drop_due(Records& records, const due_entry& entry) noexcept {
        drop(records, entry.index, entry.stamp);
        near_.pop_front();
        has_progress_ = true;
    }

    /// The first of the near run was postponed after it was loaded, or a new timer has inherited its ticket.
    template <class Records>
    [[gnu::noinline]] void move_due(Records& records, const due_entry& entry) {
        const due_entry moved{records.deadline(entry.index), records.number(entry.index), entry.index, entry.stamp};
        reserve();
        near_.reserve(1);
        near_.pop_front();
        has_progress_ = true;
        if (tick_of(moved.deadline) > current_tick_) return replace(records, moved);
        if (moved.number >= number_limit_) {
            put_again(overdue_slot, {moved.deadline, moved.index, moved.stamp});
        } else {
            near_.push(moved);
        }
        records.placed(moved.index, moved.deadline, place_of(current_tick_));
    }

    /// Looks through a few dozen tickets, wherever the last call left off, and drops the stale ones.
    template <class Records>
    [[gnu::noinline]] void scrub(Records& records) noexcept {
        std::size_t seen = 0;
        // Slots of one ticket take two steps each, and eight of them a call is what keeps the bound.
        const std::size_t most_steps = std::max<std::size_t>(16, scrub_budget_ / 4);
        for (std::size_t steps = 0; steps < most_steps && seen < scrub_budget_; ++steps) {
            if (scrub_until_ == nullptr && near_.scan_is_over()) {
                if (!next_turn()) return;
            } else if (scrub_turn_ == near_turn) {
                seen += scrub_near(records);
            } else if (scrub_turn_ == drain_turn) {
                seen += scrub_drain(records);
            } else {
                seen += scrub_slot(records);
            }
        }
    }

    /// Finds who is next: an occupied slot, the chain that an advance has left half drained, the near run.
    /// False: the round is over.
    bool next_turn() noexcept {
        while (++scrub_turn_ < overdue_slot) {
            const std::uint64_t ahead = occupied_[scrub_turn_ / 64] >> scrub_turn_ % 64;
            if (ahead != 0) {
                scrub_turn_ += static_cast<slot_number>(std::countr_zero(ahead));
                break;
            }
            scrub_turn_ |= 63;
        }
        if (scrub_turn_ <= overdue_slot) {
            if (ticket* const write = slots_->slots[scrub_turn_].write) scrub_until_ = block_of(write);
        } else if (scrub_turn_ == drain_turn) {
            if (drain_.block != nullptr) scrub_until_ = block_of(drain_.end);
        } else if (scrub_turn_ == near_turn) {
            near_.begin_scan();
        } else {
            scrub_turn_ = ~slot_number{0};
            return false;
        }
        return true;
    }

    template <class Records>
    std::size_t scrub_slot(Records& records) noexcept {
        slot& target = slots_->slots[scrub_turn_];
        const std::size_t seen = scrub_block(records, slots_->heads[scrub_turn_], target.write);
        if (target.write == nullptr) {
            target = slot{};
            if (scrub_turn_ != overdue_slot) unmark(scrub_turn_);
        }
        return seen;
    }

    template <class Records>
    std::size_t scrub_drain(Records& records) noexcept {
        const std::size_t seen = scrub_block(records, drain_.block, drain_.end);
        if (drain_.block == nullptr) drain_ = drain{};
        return seen;
    }

    /// Sorts out the first block of a chain; what is live goes to the end of the chain. Answers how many it has seen.
    template <class Records>
    std::size_t scrub_block(Records& records, ticket_block*& head, ticket*& write) noexcept {
        ticket_block* const block = head;
        if (block == scrub_until_ || block == nullptr) scrub_until_ = nullptr;
        if (block == nullptr) return 0;
        ticket* const first = block->tickets.data();
        if (block->next == nullptr) {
            const auto count = static_cast<std::size_t>(write - first);
            write = first + keep_live(records, first, count);
            if (write == first) {
                pool_.give_back(block);
                head = nullptr;
                write = nullptr;
            }
            return count;
        }
        head = block->next;
        const std::size_t live = keep_live(records, first, ticket_block::capacity);
        const std::size_t moved = std::min(live, block_is_full(write) ? 0 : room_behind(write));
        write = std::copy_n(first, moved, write);
        if (moved == live) {
            pool_.give_back(block);
        } else {
            block_of(write)->next = block;
            block->next = nullptr;
            write = std::copy(first + moved, first + live, first);
        }
        return ticket_block::capacity;
    }

    [[nodiscard]] static std::size_t room_behind(const ticket* write) noexcept {
        return (sizeof(ticket_block) - reinterpret_cast<std::uintptr_t>(write) % sizeof(ticket_block)) / sizeof(ticket);
    }

    /// Moves the tickets that are not stale to the front, without a branch for each; answers how many they are.
    template <class Records>
    std::size_t keep_live(Records& records, ticket* tickets, std::size_t count) noexcept {
        std::size_t kept = 0;
        for (std::size_t position = 0; position < count; ++position) records.prefetch(tickets[position].index);
        for (std::size_t position = 0; position < count; ++position) {
            const ticket met = tickets[position];
            tickets[kept] = met;
            kept += static_cast<std::size_t>(records.holds(met.index, met.stamp));
            static_cast<void>(records.let_go(met.index, met.stamp));
        }
        forget_tickets(count - kept);
        scrubbed_ += count - kept;
        return kept;
    }

    template <class Records>
    std::size_t scrub_near(Records& records) noexcept {
        return near_.scan(ticket_block::capacity, [&](const due_entry& entry) {
            if (records.holds(entry.index, entry.stamp)) return false;
            static_cast<void>(records.let_go(entry.index, entry.stamp));
            forget_tickets(1);
            ++scrubbed_;
            return true;
        });
    }

    /// In scrubbing, whose turn comes after that of the last slot.
    static constexpr slot_number drain_turn = overdue_slot + 1;
    static constexpr slot_number near_turn = overdue_slot + 2;

    /// Every live timer brings some credit, every ticket costs some, and the slack is a present. In the red, there are
    /// so many stale tickets that it is time to scrub: 4 * tickets > 7 * live + 2 * slack. That is early enough for a
    /// whole round, during which more may come, before there are 2 * live + slack.
    static constexpr std::int64_t timer_credit = 7;
    static constexpr std::int64_t ticket_cost = 4;

    static constexpr std::uint64_t place_mask = far_away - 1;
    static constexpr std::uint64_t ticks_per_place = 32;
    static_assert(std::has_single_bit(ticks_per_place));
    static constexpr std::size_t slot_words = level_count * slots_per_level / 64;
    static_assert(slot_words <= std::numeric_limits<std::uint32_t>::digits, "a bit of occupied_words_ for each");
    static constexpr std::uint32_t words_of_first_level = (1U << slots_per_level / 64) - 1;
    static constexpr std::size_t most_unsettled = 4096 - ticket_block::capacity;
    static constexpr std::size_t line_bytes = 64;

    storage& memory_;
    block_pool pool_;
    near_run near_;
    drain drain_;
    std::uint64_t current_tick_;
    unsigned tick_shift_;
    std::uint32_t occupied_words_ = 0;  ///< In which words of occupied_ there is anything.
    bool loaded_ = true;                ///< All of the current tick but the overdue slot is in the near run.
    bool take_overdue_ = false;
    bool is_advancing_ = false;
    bool has_progress_ = false;       ///< In this call something has left the near run, or time has gone on.
    std::size_t calls_owed_ = 0;      ///< How many calls may only fire, because as many have only loaded.
    bool check_stale_ = true;         ///< Enough tickets are stale to look for them in cascades.
    std::uint64_t number_limit_ = 0;  ///< Of the advance: what has this number or a higher one waits for the next.
    std::size_t stale_slack_;
    std::size_t scrub_budget_;
    std::int64_t credit_;
    std::size_t tickets_ = 0;
    slot_table* slots_;
    const ticket_block* fetched_ = nullptr;  ///< The block whose records were fetched last, or are being fetched:
    const ticket* fetch_next_ = nullptr;     ///< from here
    const ticket* fetch_end_ = nullptr;      ///< to here.
    std::array<std::uint64_t, slot_words> occupied_{};
    slot_number scrub_turn_ = ~slot_number{0};
    ticket_block* scrub_until_ = nullptr;  ///< The last block of a chain's turn; null: it is over.
    std::uint64_t cascaded_ = 0;
    std::uint64_t stale_dropped_ = 0;
    std::uint64_t stale_vacant_ = 0;
    std::uint64_t compactions_ = 0;
    std::uint64_t scrubbed_ = 0;
};

}  // namespace detail

/// Something that `advance` can hand a due value to, as an rvalue: it takes it as `T`, `T&&` or `const T&`, and after it,
/// if it wants to, the deadline.
template <class OnDue, class T>
concept due_sink = std::invocable<OnDue&, T&&> || std::invocable<OnDue&, T&&, std::chrono::steady_clock::time_point>;

namespace detail {

/// For what was given something else where a time belongs: the compiler says what to write.
template <class Other>
constexpr void ask_for_time() {
    static_assert(
        sizeof(Other) == 0,
        "a wheel takes times of std::chrono::steady_clock: write now + 5ms for a delay, bring what counts in "
        "floating point to nanoseconds with std::chrono::ceil, and for another clock add what is left to now");
}

template <class Other>
concept no_time = !std::convertible_to<const Other&, std::chrono::steady_clock::time_point>;

}  // namespace detail

/// Holds values of type T until their deadlines. See the top of this file for what it promises and how it works.
///
/// Owned by whoever drives it; one thread at a time. `GenerationBits` is for tests that want to see generations used up.
template <class T, unsigned GenerationBits = 32>
class timer_wheel {
    static_assert(std::is_object_v<T> && !std::is_array_v<T>, "a wheel holds objects, not references, arrays or void");
    static_assert(std::is_nothrow_destructible_v<T>, "a value that is dropped must not throw");
    static_assert(std::is_move_constructible_v<T>, "a wheel holds values that can be moved into it and out of it");
    static_assert(GenerationBits >= 1 && GenerationBits <= 32);

 public:
    using value_type = T;
    using clock = std::chrono::steady_clock;
    using time_point = clock::time_point;

    /// For `advance`: fire all that is due.
    static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

    /// Throws std::system_error (std::errc::invalid_argument) with what to change, or std::bad_alloc.
    explicit timer_wheel(const wheel_config& config = {})
        : memory_(config.memory),
          now_(detail::to_ordinal(config.start)),
          number_at_cap_(next_number_ + config.max_timers),
          max_timers_(config.max_timers),
          records_(memory_),
          free_(memory_),
          wheel_(memory_, now_, shift_of(config), config.stale_slack, config.scrub_budget) {}

    timer_wheel(const timer_wheel&) = delete;
    timer_wheel& operator=(const timer_wheel&) = delete;

    ~timer_wheel() { clear(); }

    /// Holds `value` until `deadline`; one in the past is due at the next `advance`.
    ///
    /// Throws std::system_error (std::errc::resource_unavailable_try_again) when `max_timers` are pending,
    /// std::bad_alloc, and what the move of T throws. Then nothing was armed.
    timer_id arm(time_point deadline, T value) {
        if (is_at_cap()) [[unlikely]]
            refuse();
        return arm_now(deadline, std::move(value));
    }
    template <detail::no_time Other>
    timer_id arm(const Other&, const T&) {
        detail::ask_for_time<Other>();
        return {};
    }

    /// Like `arm`, but when `max_timers` are pending it gives nothing and leaves `value` as it was.
    [[nodiscard]] std::optional<timer_id> try_arm(time_point deadline, T&& value) {
        if (is_at_cap()) [[unlikely]]
            return std::nullopt;
        return arm_now(deadline, std::move(value));
    }

    [[nodiscard]] std::optional<timer_id> try_arm(time_point deadline,
                                                  const T& value) requires std::copy_constructible<T> {
        if (is_at_cap()) [[unlikely]]
            return std::nullopt;
        return arm_now(deadline, value);
    }

    /// Gives the value back if the timer is pending; it will never fire. Anything but the id of a pending timer of
    /// this wheel is answered with nothing. If the move of T throws, the timer stays armed.
    std::optional<T> cancel(timer_id id) noexcept(std::is_nothrow_move_constructible_v<T>) {
        std::optional<T> value;  // One object and one return: the value is moved once.
        if (is_pending(id)) {
            record& cancelled = records_.at(id.index);
            value.emplace(std::move(cancelled.value));
            end_life(cancelled);
            free_record(cancelled, id.index);
            wheel_.limit_stale(records_);
        }
        return value;
    }

    /// Says that `id` will be used soon: what it names is on its way to the cache when `cancel` or `postpone` needs it.
    /// Changes nothing, whatever the id. With many timers and a batch of events at hand, naming them some eight ahead
    /// saves most of what an operation costs.
    void prefetch(timer_id id) const noexcept {
        if (id.index < records_.used) [[likely]]
            records_.prefetch(id.index);
    }

    /// Gives a pending timer a new deadline, earlier or later; it keeps its arming number. False: it is not pending.
    /// Throws std::bad_alloc; then nothing has changed.
    bool postpone(timer_id id, time_point deadline) {
        if (!is_pending(id)) return false;
        record& moved = records_.at(id.index);
        const detail::ordinal target = detail::to_ordinal(deadline);
        if (moved.is_met_before(target)) [[likely]] {
            moved.deadline = target;
        } else {
            move_ticket(id.index, target);
        }
        ++postponed_;
        return true;
    }
    template <detail::no_time Other>
    bool postpone(timer_id, const Other&) {
        detail::ask_for_time<Other>();
        return false;
    }

    /// Moves time to `now` (or leaves it, if `now` lies before what was given earlier) and calls `on_due` for what is
    /// due, in the order of (deadline, arming): as `on_due(value)` or `on_due(value, deadline)`, the value as an rvalue.
    /// Answers how often.
    ///
    /// At most `budget` timers fire, and other work is bounded by a multiple of the budget. So it may fire fewer, even
    /// none, while more are due: then there is a `next_deadline()`, and it is not after `now`. Only what was armed before the call fires; what
    /// `on_due` arms waits for the next one. What `on_due` postpones to a time that is due still fires, in order.
    /// If more timers were armed for a time that has come than a call with a budget may look at, the next calls go on with
    /// those, and what is armed in between waits behind them: nobody who keeps arming what is due can keep the others from
    /// firing.
    ///
    /// During `on_due` its timer is gone already. If it throws, its timer counts as fired and the others stay due.
    /// Called from inside `on_due` it does nothing and answers 0. Throws std::bad_alloc when a growth fails; then
    /// nothing is lost, and the next call goes on.
    template <due_sink<T> OnDue>
    std::size_t advance(time_point now, OnDue&& on_due, std::size_t budget = unlimited) {
        if (advancing_) return 0;
        now_ = std::max(now_, detail::to_ordinal(now));
        if (budget == 0) return 0;
        auto left = detail::ticket_wheel::work::for_budget(budget);
        const advance_guard guard(*this, left);
        std::size_t count = 0;
        while (count < budget) {
            const detail::due_entry* const due = wheel_.find_due(records_, now_, left);
            if (due == nullptr) break;
            ++count;
            fire(due->index, on_due);
        }
        return count;
    }

    /// What cannot be called for a due value: the compiler says how it would be called.
    template <class OnDue>
    std::size_t advance(time_point, OnDue&&, std::size_t = unlimited) {
        static_assert(due_sink<OnDue, T>,
                      "on_due is called as on_due(value) or on_due(value, deadline), with the wheel's T as an rvalue: "
                      "let it take T, T&& or const T&, and a steady_clock::time_point behind it if it wants to");
        return 0;
    }

    template <detail::no_time Other, class OnDue>
    std::size_t advance(const Other&, OnDue&&, std::size_t = unlimited) {
        detail::ask_for_time<Other>();
        return 0;
    }

    /// When to call `advance` next: never later than the earliest deadline, and exactly it unless a timer near it was
    /// cancelled or postponed. Nothing: nothing is pending.
    [[nodiscard]] std::optional<time_point> next_deadline() const noexcept {
        if (empty()) return std::nullopt;
        return detail::to_time_point(wheel_.next_deadline());
    }

    /// The deadline in force; nothing: it is not pending.
    [[nodiscard]] std::optional<time_point> deadline_of(timer_id id) const noexcept {
        if (!is_pending(id)) return std::nullopt;
        return detail::to_time_point(records_.at(id.index).deadline);
    }

    [[nodiscard]] std::size_t size() const noexcept { return max_timers_ - (number_at_cap_ - next_number_); }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }

    /// Bytes taken from the memory resource; they are kept for the life of the wheel. An empty one has about 50 kB, from
    /// the first timers on about 150 kB: make one for each thread, not one for each connection.
    [[nodiscard]] std::size_t memory() const noexcept { return memory_.bytes(); }

    /// The latest time given so far.
    [[nodiscard]] time_point now() const noexcept { return detail::to_time_point(now_); }

    [[nodiscard]] wheel_stats stats() const noexcept {
        const std::size_t tickets = wheel_.tickets();
        const std::uint64_t armed = next_number_ - first_number_;
        return {.armed = armed,
                .fired = fired_,
                .cancelled = armed - size() - fired_,
                .postponed = postponed_,
                .pending = size(),
                .tickets = tickets,
                .stale = tickets - size(),
                .stale_dropped = wheel_.stale_dropped(),
                .stale_vacant = wheel_.stale_vacant(),
                .compactions = wheel_.compactions(),
                .scrubbed = wheel_.scrubbed(),
                .cascaded = wheel_.cascaded()};
    }

    /// Cancels everything, in time proportional to the largest number ever pending. Keeps the memory. What the
    /// destructor of a value arms meanwhile may be cancelled with the rest or stay.
    void clear() noexcept {
        wheel_.clear();
        const std::uint32_t count = records_.used;
        for (std::uint32_t index = 0; index < count; ++index) records_.at(index).ticket |= record::nowhere;
        for (std::uint32_t index = 0; index < count; ++index) {
            record& each = records_.at(index);
            if (!each.is_pending()) continue;
            end_life(each);
            free_record(each, index);
        }
    }

 private:
    friend detail::wheel_audit;

    /// One timer, or a free place for one.
    struct record {
        static constexpr std::uint64_t gone = 1;           ///< The ticket has left the wheel.
        static constexpr std::uint64_t mark_mask = 0xFFF;  ///< The flag and the stamp, which has eleven bits.
        /// Where a ticket sits that has left the wheel: nobody is due after that.
        static constexpr std::uint64_t nowhere = ~mark_mask | gone;

        detail::ordinal deadline = 0;
        std::uint64_t number = 0;        ///< In the order of arming, and the timer's name; 0: none is pending.
        std::uint64_t ticket = nowhere;  ///< The deadline of its ticket; instead of the last bits, flag and stamp.
        union {
            T value;
        };

        record() noexcept {}
        ~record() {}

        [[nodiscard]] bool is_pending() const noexcept { return number != 0; }
        /// Will its ticket be met, wherever it is, before time gets to `target`? False if in doubt.
        [[nodiscard]] bool is_met_before(detail::ordinal target) const noexcept {
            return (ticket | mark_mask) < target;
        }
        [[nodiscard]] bool has_stamp(std::uint16_t stamp) const noexcept { return (ticket & mark_mask) == stamp; }
        [[nodiscard]] std::uint16_t next_stamp() const noexcept {
            return static_cast<std::uint16_t>(((ticket | gone) + 1) & mark_mask);
        }
        void set_ticket(std::uint64_t marks, detail::ordinal placed_for) noexcept {
            ticket = (placed_for & ~mark_mask) | marks;
        }
    };

    /// The records, as the ticket wheel sees them.
    struct record_table {
        explicit record_table(detail::storage& memory) noexcept : records(memory) {}

        [[nodiscard]] record& at(std::uint32_t index) const noexcept { return *records.at(index); }

        [[nodiscard]] bool holds(std::uint32_t index, std::uint16_t stamp) const noexcept {
            const record& its = at(index);
            const bool is_its_ticket = its.has_stamp(stamp);  // Both are looked at, or scrubbing would toss coins.
            const bool is_pending = its.is_pending();
            return is_pending && is_its_ticket;
        }
        bool let_go(std::uint32_t index, std::uint16_t stamp) noexcept {
            record& its = at(index);
            const bool was_its_ticket = its.has_stamp(stamp);
            const bool is_vacant = !its.is_pending();
            const bool was_left_behind = is_vacant && was_its_ticket;
            its.ticket |= std::uint64_t{was_left_behind} * record::nowhere;  // Without a branch, for the same reason.
            return was_left_behind;
        }
        [[nodiscard]] detail::ordinal deadline(std::uint32_t index) const noexcept { return at(index).deadline; }
        [[nodiscard]] std::uint64_t number(std::uint32_t index) const noexcept { return at(index).number; }
        void prefetch(std::uint32_t index) const noexcept { __builtin_prefetch(records.at(index)); }
        void placed(std::uint32_t index, detail::ordinal deadline, detail::ticket_place) noexcept {
            at(index).set_ticket(at(index).ticket & record::mark_mask, deadline);
        }

        /// Takes one more record into use. Throws std::bad_alloc; nothing has changed.
        std::uint32_t add() {
            if (used == std::numeric_limits<std::uint32_t>::max()) throw std::bad_alloc();
            records.reserve(used + std::size_t{1});
            ::new (static_cast<void*>(records.at(used))) record;
            return used++;
        }

        detail::chunked_array<record> records;
        std::uint32_t used = 0;
    };

    /// While it lives, timers fire, and new ones wait.
    class advance_guard {
     public:
        advance_guard(timer_wheel& wheel, const detail::ticket_wheel::work& left) noexcept : wheel_(wheel) {
            wheel_.advancing_ = true;
            wheel_.wheel_.begin_advance(wheel_.next_number_, left);
        }
        advance_guard(const advance_guard&) = delete;
        advance_guard& operator=(const advance_guard&) = delete;
        ~advance_guard() {
            wheel_.wheel_.end_advance();
            wheel_.advancing_ = false;
        }

     private:
        timer_wheel& wheel_;
    };

    /// Beyond the last generation that goes with one identity; zero with all 32 bits.
    static constexpr auto after_last_generation = static_cast<std::uint32_t>(std::uint64_t{1} << GenerationBits);
    /// How far ahead `arm` fetches what it will read: the records of timers that fired lie anywhere.
    static constexpr std::uint32_t arms_ahead = 16;

    [[nodiscard]] static unsigned shift_of(const wheel_config& config) {
        if (const std::string problem = config.validate(); !problem.empty()) {
            throw std::system_error(std::make_error_code(std::errc::invalid_argument),
                                    "chime::timer_wheel: " + problem);
        }
        return static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(config.resolution.count()))) - 1;
    }

    [[nodiscard]] bool is_at_cap() const noexcept { return next_number_ == number_at_cap_; }

    [[noreturn, gnu::noinline, gnu::cold]] void refuse() const {
        throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again),
                                "chime::timer_wheel::arm: " + std::to_string(size()) +
                                    " timers are pending, which is all that this wheel may hold; cancel some or raise "
                                    "wheel_config::max_timers");
    }

    [[nodiscard]] bool is_pending(timer_id id) const noexcept {
        const std::uint64_t number = std::uint64_t{id.wheel} << 32 | id.generation;
        if (number == 0) [[unlikely]]
            return false;  // Before the record, so that nobody has to put two answers together.
        return id.index < records_.used && records_.at(id.index).number == number;
    }

    template <class Value>
    timer_id arm_now(time_point deadline, Value&& value) {
        if (spare_ == nullptr) find_spare();
        record& fresh = *spare_;
        const std::uint32_t index = spare_index_;
        const detail::ordinal target = detail::to_ordinal(deadline);
        constexpr bool can_throw = !std::is_nothrow_constructible_v<T, Value>;
        if constexpr (can_throw) {
            wheel_.reserve();
            std::construct_at(std::addressof(fresh.value), std::forward<Value>(value));
        }
        if (!fresh.is_met_before(target))
            put_ticket(fresh, index, target);  // Or it inherits. The last step that may fail.
        if constexpr (!can_throw) std::construct_at(std::addressof(fresh.value), std::forward<Value>(value));
        spare_ = nullptr;
        const std::uint64_t number = next_number_++;
        fresh.deadline = target;
        fresh.number = number;
        wheel_.count_arm();
        if (static_cast<std::uint32_t>(next_number_) == after_last_generation) [[unlikely]]
            change_identity();
        return {index, static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32)};
    }

    /// The first number that goes with another identity: greater than all before, and in no other wheel, as long as there are
    /// identities.
    [[nodiscard]] static std::uint64_t number_block() noexcept {
        return std::uint64_t{detail::next_wheel_identity()} << 32 | 1;
    }

    /// All numbers of this identity are used up. What counts numbers counts on.
    [[gnu::noinline, gnu::cold]] void change_identity() noexcept {
        const std::uint64_t skipped = number_block() - next_number_;
        for (std::uint64_t* each : {&first_number_, &next_number_, &number_at_cap_}) *each += skipped;
    }

    /// Throws std::bad_alloc; nothing has changed.
    [[gnu::noinline]] void put_ticket(record& its, std::uint32_t index, detail::ordinal target) {
        const std::uint16_t stamp = its.next_stamp();
        wheel_.put(wheel_.slot_for(wheel_.tick_of(target)), {target, index, stamp});
        its.set_ticket(stamp, target);
    }

    /// Takes a free record from the stack, or a new one. Throws std::bad_alloc; nothing has changed.
    [[gnu::noinline]] void find_spare() {
        if (free_count_ == 0) [[unlikely]]
            return add_record();
        spare_index_ = *free_.at(--free_count_);
        spare_ = &records_.at(spare_index_);
        records_.prefetch(*free_.at(free_count_ - std::min(free_count_, arms_ahead)));
    }

    [[gnu::noinline]] void add_record() {
        free_.reserve(records_.used + std::size_t{1});  // So that giving a record back cannot fail.
        spare_index_ = records_.add();
        spare_ = &records_.at(spare_index_);
    }

    /// The id becomes stale, then the value goes. The record is not free yet: the destructor of T may arm.
    void end_life(record& ended) noexcept {
        ended.number = 0;
        ++number_at_cap_;
        wheel_.count_end();
        std::destroy_at(std::addressof(ended.value));
    }

    void free_record(record& freed, std::uint32_t index) noexcept {
        if (spare_ != nullptr) *free_.at(free_count_++) = spare_index_;
        spare_ = &freed;
        spare_index_ = index;
    }

    template <class OnDue>
    void fire(std::uint32_t index, OnDue& on_due) {
        wheel_.pop_due();
        record& fired = records_.at(index);
        fired.number = 0;
        fired.ticket |= record::nowhere;
        ++number_at_cap_;
        ++fired_;
        wheel_.count_end();
        const fired_record guard{*this, fired, index};
        if constexpr (std::invocable<OnDue&, T&&, time_point>) {
            on_due(std::move(fired.value), detail::to_time_point(fired.deadline));
        } else {
            on_due(std::move(fired.value));
        }
    }

    /// Ends the life of a value that was handed to `on_due`, whichever way that was left.
    struct fired_record {
        ~fired_record() {
            std::destroy_at(std::addressof(fired.value));
            wheel.free_record(fired, index);
            wheel.wheel_.limit_stale(wheel.records_);
        }
        timer_wheel& wheel;
        record& fired;
        std::uint32_t index;
    };

    /// Postpones to a time before the one that the ticket would be met at, or where that is hard to tell.
    [[gnu::noinline]] void move_ticket(std::uint32_t index, detail::ordinal target) {
        record& moved = records_.at(index);
        if (target >= moved.deadline) {
            moved.deadline = target;  // Wherever the ticket is, it is not later than the deadline in force.
            return;
        }
        const std::uint64_t tick = wheel_.tick_of(target);
        if (wheel_.is_near(moved.number, tick)) {
            const std::uint16_t stamp = moved.next_stamp();
            wheel_.put_near({target, moved.number, index, stamp});  // In time for this very advance.
            moved.set_ticket(stamp, target);
        } else {
            put_ticket(moved, index, target);
        }
        moved.deadline = target;
        wheel_.limit_stale(records_);
    }

    detail::storage memory_;
    detail::ordinal now_;
    std::uint64_t next_number_ = number_block();
    std::uint64_t number_at_cap_;  ///< The next timer would be one too many if it had this number.
    record* spare_ = nullptr;      ///< The record that was freed last, unless it is in use again.
    std::uint32_t spare_index_ = 0;
    std::uint32_t free_count_ = 0;
    std::size_t max_timers_;
    record_table records_;
    detail::chunked_array<std::uint32_t> free_;  ///< A stack: to walk a list through the records would miss the cache.
    bool advancing_ = false;
    std::uint64_t fired_ = 0;
    std::uint64_t postponed_ = 0;
    std::uint64_t first_number_ = next_number_;  ///< That the first timer would have had, of all of this identity.
    detail::ticket_wheel wheel_;
};

}  // namespace v0
}  // namespace chime

template <>
struct std::hash<chime::timer_id> {
    std::size_t operator()(const chime::timer_id& id) const noexcept {
        const std::uint64_t who = std::uint64_t{id.generation} << 32 | id.index;
        return std::hash<std::uint64_t>{}((who ^ id.wheel) * 0x9E3779B97F4A7C15U);
    }
};
