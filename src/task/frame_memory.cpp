// SPDX-License-Identifier: MIT
#include <chime/detail/frame_memory.hpp>

#include "base/mutex.hpp"
#include "base/poison.hpp"
#include "base/thread.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

// Every thread keeps a magazine of free blocks for each size. A full magazine gives a batch to the depot, an empty one
// asks there before it cuts new blocks from a slab. So frames that are made on one thread and destroyed on another
// find their way back, and a thread that does both meets nobody. Slabs are kept for the life of the process.

namespace chime::inline v0::detail {

namespace {

constexpr std::size_t step_bytes = frame_alignment;
constexpr std::size_t largest_bytes = 1024;
constexpr std::size_t class_count = largest_bytes / step_bytes;
constexpr std::size_t slab_bytes = std::size_t{64} << 10U;
constexpr std::uint32_t batch_blocks = 32;

/// A block that nobody uses. The first one of a batch also leads to the next batch.
struct free_block {
    free_block* next;
    free_block* next_batch;
};
static_assert(sizeof(free_block) <= step_bytes);

struct slab {
    slab* next;
    alignas(frame_alignment) std::byte memory[1];
};

/// What the threads share.
struct depot {
    base::mutex mutex;
    std::array<free_block*, class_count> batches CHIME_GUARDED_BY(mutex){};
    slab* slabs CHIME_GUARDED_BY(mutex) = nullptr;  ///< All of them, so that whoever looks for leaks finds them.
};

/// There before anything runs and never destroyed: frames may be given back while the process is taken down.
depot shared_depot;
static_assert(std::is_trivially_destructible_v<depot>);

/// This thread forks, and holds the lock of the depot until that is over: a forked child may destroy frames, and so may what
/// others have asked to be called around a fork.
thread_local constinit bool is_forking = false;

// The analysis sees only halves.
void begin_fork() CHIME_NOT_ANALYSED {
    shared_depot.mutex.lock();
    is_forking = true;
}
void end_fork() CHIME_NOT_ANALYSED {
    is_forking = false;
    shared_depot.mutex.unlock();
}
[[maybe_unused]] const bool is_called_around_forks = [] {
    base::call_around_fork(begin_fork, end_fork);
    return true;
}();

class CHIME_SCOPED_CAPABILITY depot_lock {
 public:
    depot_lock() CHIME_ACQUIRE(shared_depot.mutex) CHIME_NOT_ANALYSED {
        if (!is_forking) [[likely]]
            shared_depot.mutex.lock();
    }
    depot_lock(const depot_lock&) = delete;
    depot_lock& operator=(const depot_lock&) = delete;
    ~depot_lock() CHIME_RELEASE() CHIME_NOT_ANALYSED {
        if (!is_forking) [[likely]]
            shared_depot.mutex.unlock();
    }
};

constexpr std::size_t class_of(std::size_t bytes) noexcept {
    return (std::max<std::size_t>(bytes, 1) - 1) / step_bytes;
}

/// The free blocks of one thread and one size: up to two batches, the one in use and a full or empty one.
struct magazine {
    free_block* blocks = nullptr;
    free_block* full_batch = nullptr;
    std::uint32_t count = 0;  ///< Of `blocks`.
    std::byte* fresh = nullptr;
    std::byte* fresh_end = nullptr;
};

/// One thread's. Behind a pointer, because a library that is loaded while the program runs gets little room for the variables of
/// its threads.
struct magazines {
    std::array<magazine, class_count> of_class{};
};

/// Trivially destructible, so that it can be asked for as long as the thread runs.
struct magazine_holder {
    magazines* open;            ///< Null: not yet, or not any more.
    bool is_without;            ///< The thread is ending, or just getting them: nothing stays here.
    std::uint8_t given_before;  ///< How many blocks it has given before it had any.
};

thread_local constinit magazine_holder mine{};

void give_to_depot(std::size_t size_class, free_block* batch) noexcept {
    const depot_lock lock;
    batch->next_batch = std::exchange(shared_depot.batches[size_class], batch);
}

/// When the thread ends, what it has goes to the others.
struct closing_time {
    ~closing_time() {
        mine.is_without = true;
        const std::unique_ptr<magazines> closed(std::exchange(mine.open, nullptr));
        for (std::size_t size_class = 0; size_class < class_count; ++size_class) {
            magazine& last = closed->of_class[size_class];
            const std::size_t bytes = (size_class + 1) * step_bytes;
            for (; last.fresh != last.fresh_end; last.fresh += bytes) {
                base::unpoison(last.fresh, sizeof(free_block));
                last.blocks = ::new (static_cast<void*>(last.fresh)) free_block{last.blocks, nullptr};
            }
            if (last.blocks != nullptr) give_to_depot(size_class, last.blocks);
            if (last.full_batch != nullptr) give_to_depot(size_class, last.full_batch);
        }
    }
};

/// Null: the thread is ending, or there is no memory for them; then it does without.
[[gnu::noinline, gnu::cold]] magazines* try_open_magazines() noexcept {
    // A new-handler of the user's, which runs meanwhile, may give frames back.
    if (std::exchange(mine.is_without, true)) return nullptr;
    mine.open = new (std::nothrow) magazines;
    mine.is_without = false;
    if (mine.open != nullptr) {
        static thread_local closing_time at_the_end;
        static_cast<void>(at_the_end);
    }
    return mine.open;
}

[[nodiscard]] magazines* try_get_magazines() noexcept {
    magazines* const known = mine.open;
    return known != nullptr ? known : try_open_magazines();
}

/// For a thread that gives something back. If that is all it does, and not often, it needs none: it may be here for a moment only.
[[nodiscard]] magazines* try_get_magazines_to_give() noexcept {
    magazines* const known = mine.open;
    if (known != nullptr) [[likely]]
        return known;
    if (mine.given_before == batch_blocks) return try_open_magazines();
    ++mine.given_before;
    return nullptr;
}

/// A batch from the depot, or a new slab to cut from. Throws std::bad_alloc.
[[gnu::noinline, gnu::cold]] void refill(std::size_t size_class, magazine& into) {
    {
        const depot_lock lock;
        if (free_block* const batch = shared_depot.batches[size_class]) {
            shared_depot.batches[size_class] = batch->next_batch;
            into.blocks = batch;
            into.count = batch_blocks;  // The last batch of a thread may hold any number; the count is but a hint.
            return;
        }
    }
    const std::size_t bytes = (size_class + 1) * step_bytes;
    slab* const added = static_cast<slab*>(::operator new(slab_bytes));
    const std::size_t count = (slab_bytes - offsetof(slab, memory)) / bytes;
    into.fresh = added->memory;
    into.fresh_end = added->memory + count * bytes;
    base::poison(into.fresh, count * bytes);
    const depot_lock lock;
    added->next = std::exchange(shared_depot.slabs, added);
}

/// The thread keeps nothing: one block of a batch, or one of its own.
[[gnu::noinline, gnu::cold]] void* take_without_magazine(std::size_t size_class) {
    const std::size_t bytes = (size_class + 1) * step_bytes;
    {
        const depot_lock lock;
        if (free_block* const block = shared_depot.batches[size_class]) {
            free_block* const rest = block->next;
            if (rest != nullptr) rest->next_batch = block->next_batch;
            shared_depot.batches[size_class] = rest != nullptr ? rest : block->next_batch;
            base::unpoison(block, bytes);
            return block;
        }
    }
    return ::operator new(bytes);
}

}  // namespace

void prepare_frames() noexcept {
    static_cast<void>(try_get_magazines());
}

void* take_frame(std::size_t bytes) {
    if (bytes > largest_bytes) [[unlikely]]
        return ::operator new(bytes);
    const std::size_t size_class = class_of(bytes);
    magazines* const own = try_get_magazines();
    if (own == nullptr) [[unlikely]]
        return take_without_magazine(size_class);
    magazine& from = own->of_class[size_class];
    for (;;) {
        if (free_block* const block = from.blocks) {
            from.blocks = block->next;
            from.count -= from.count != 0;
            base::unpoison(block, bytes);
            return block;
        }
        if (from.full_batch != nullptr) {
            from.blocks = std::exchange(from.full_batch, nullptr);
            from.count = batch_blocks;
        } else if (from.fresh != from.fresh_end) {
            void* const memory = from.fresh;
            from.fresh += (size_class + 1) * step_bytes;
            base::unpoison(memory, bytes);
            return memory;
        } else {
            refill(size_class, from);
        }
    }
}

void give_frame(void* memory, std::size_t bytes) noexcept {
    if (bytes > largest_bytes) [[unlikely]] {
        ::operator delete(memory);
        return;
    }
    const std::size_t size_class = class_of(bytes);
    base::unpoison(memory, sizeof(free_block));
    free_block* const block = ::new (memory) free_block{nullptr, nullptr};
    if ((size_class + 1) * step_bytes > sizeof(free_block)) {
        base::poison(block + 1, (size_class + 1) * step_bytes - sizeof(free_block));
    }
    magazines* const own = try_get_magazines_to_give();
    if (own == nullptr) [[unlikely]] {
        give_to_depot(size_class, block);
        return;
    }
    magazine& into = own->of_class[size_class];
    if (into.count >= batch_blocks) [[unlikely]] {
        if (into.full_batch != nullptr) give_to_depot(size_class, into.full_batch);
        into.full_batch = std::exchange(into.blocks, nullptr);
        into.count = 0;
    }
    block->next = std::exchange(into.blocks, block);
    ++into.count;
}

}  // namespace chime::inline v0::detail
