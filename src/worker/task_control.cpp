// SPDX-License-Identifier: MIT
#include <chime/detail/task_control.hpp>

#include "base/atomic.hpp"
#include "base/futex.hpp"
#include "base/mutex.hpp"
#include "worker/crew.hpp"

#include <chime/error.hpp>

#include <new>

namespace chime::inline v0::detail {

struct task_control::state {
    base::atomic<std::uint32_t> references{1};
    base::atomic<bool> is_detached{false};
    base::mutex mutex;
    crew* home CHIME_GUARDED_BY(mutex) = nullptr;  ///< Null: the task has ended.
    unit_index slot CHIME_GUARDED_BY(mutex) = no_unit;
    base::futex_word outcome{running};

    static constexpr std::uint32_t running = 0;
    static constexpr std::uint32_t awaited = 1;  ///< A thread waits for the end.
    static constexpr std::uint32_t over = 2;
};

task_control::state& task_control::its() const noexcept {
    return *std::launder(reinterpret_cast<state*>(storage_));
}

task_control::task_control() noexcept {
    static_assert(sizeof(state) <= sizeof(storage_) && alignof(state) <= 8);
    ::new (static_cast<void*>(storage_)) state;
}

task_control::~task_control() {
    its().~state();
}

void task_control::add_reference() noexcept {
    its().references.fetch_add(1, base::memory_order_relaxed);  // Whoever adds one has one.
}

void task_control::drop_reference() noexcept {
    // Acquire and release: whoever deletes it sees what all others did before they let go.
    if (its().references.fetch_sub(1, base::memory_order_acq_rel) == 1) delete this;
}

bool task_control::cancel() noexcept {
    // Under the lock the task cannot move, nor its loop go away.
    const base::lock_guard lock(its().mutex);
    if (its().home == nullptr) return false;
    its().home->doom(its().slot);
    return true;
}

void task_control::moved_to(crew* home, std::uint32_t slot) noexcept {
    const base::lock_guard lock(its().mutex);
    its().home = home;
    its().slot = slot;
}

void task_control::end() noexcept {
    moved_to(nullptr, no_unit);
    ended.complete();
    // Whoever calls this has a reference, and so has whoever waits: it does not go away under either.
    // Release: pairs with the acquire in wait().
    const bool is_awaited = its().outcome.exchange(state::over, base::memory_order_release) == state::awaited;
    if (is_awaited) base::futex_wake_all(its().outcome);
}

void task_control::wait() {
    {
        const base::lock_guard lock(its().mutex);
        if (its().home != nullptr && its().home->settings().is_simulated) {
            refuse(
                errc::on_a_worker,
                "chime::join_handle::wait: in a simulation nobody else runs the task; use block_on(), or let time go on");
        }
        if (its().home != nullptr && its().home->is_in_forked_child()) {
            refuse(errc::stopped,
                   "chime::join_handle::wait: this is a forked child, and whoever runs the task is in its parent");
        }
        if (its().home != nullptr && its().home->is_below_us()) {
            refuse(
                errc::on_a_worker,
                "chime::join_handle::wait: this thread runs the task itself, or could have to; co_await the handle instead");
        }
    }
    std::uint32_t seen = state::running;
    // Relaxed: whoever finds it over looks once more, acquires, and sees what the task has done.
    its().outcome.compare_exchange_strong(seen, state::awaited, base::memory_order_relaxed);
    while (its().outcome.load(base::memory_order_acquire) != state::over) {
        static_cast<void>(base::futex_wait(its().outcome, state::awaited));
    }
}

void task_control::refuse_itself() const {
    const worker* const here = worker::current();
    if (here == nullptr) return;  // Who is no task is told so when it waits.
    worker::assume_owner(here);
    if (here->is_executing(*this)) {
        refuse(errc::on_a_worker,
               "chime::join_handle: a task that waits for its own end waits for ever; let whoever has spawned it wait");
    }
}

void task_control::detach() noexcept {
    its().is_detached.store(true, base::memory_order_relaxed);  // A mark; nothing comes with it.
}

bool task_control::is_detached() const noexcept {
    return its().is_detached.load(base::memory_order_relaxed);
}

}  // namespace chime::inline v0::detail
