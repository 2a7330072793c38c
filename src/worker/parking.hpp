// SPDX-License-Identifier: MIT
#pragma once

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/descriptor.hpp"
#include "base/descriptor_watch.hpp"
#include "base/event_descriptor.hpp"
#include "base/futex.hpp"
#include "base/timer_descriptor.hpp"

#include <chime/wheel.hpp>

#include <cstdint>
#include <memory>

namespace chime::inline v0::detail {

/// How a worker sleeps, and how it is woken.
///
/// The owner publishes the deadline that it will sleep for, looks once more for work that came meanwhile, and sleeps.
/// A sender first makes its work visible and then looks at what is published. Both in this order, in the one order of
/// all seq_cst steps: so either the owner sees the work or the sender sees the deadline (models/park.pml).
class parking {
 public:
    /// The owner: from now on senders wake it for what matters before `deadline`.
    void publish(ordinal deadline) noexcept {
        // Before it is published, so that whoever rings for what is published changes it [park: note the bell].
        ticket_ = bell_.load(base::memory_order_relaxed);
        // Seq_cst: comes before the owner's second look at its inbox. Pairs with wake_before() and
        // inbox::push() [park: publish].
        published_.store(deadline == awake ? awake + 1 : deadline, base::memory_order_seq_cst);
    }

    /// The owner: it is awake, nobody need bother. Seq_cst: comes before its look at whether it was called. Whoever calls
    /// it marks it first and then looks whether it sleeps; see crew::call_somebody() and
    /// worker::find_work() [park: withdraw].
    void withdraw() noexcept { published_.store(awake, base::memory_order_seq_cst); }

    /// The owner sleeps until `deadline`, a wake-up since publish(), or for no reason.
    void sleep(time_point deadline) noexcept;

    /// Wakes the owner if it is parked for something later than `when`; true: this call did. Any thread.
    bool wake_before(ordinal when) noexcept {
        ordinal published = published_.load(base::memory_order_seq_cst);  // See publish() [park: look].
        if (published == awake || when >= published) return false;
        // Who fails here was overtaken by another waker, or by the owner, who will look into its inbox. Relaxed: what has to
        // be in order is the load before. Whatever the owner stores after what that has seen, it stores after our work was
        // visible; and the bell that it has noted was read before it published [park: wake].
        if (!published_.compare_exchange_strong(published, awake, base::memory_order_relaxed)) return false;
        ring();
        return true;
    }

    [[nodiscard]] bool is_parked() const noexcept { return published_.load(base::memory_order_seq_cst) != awake; }
    /// Until when; the beginning of time: it is awake.
    [[nodiscard]] ordinal parked_until() const noexcept { return published_.load(base::memory_order_seq_cst); }

    /// Wakes the owner whatever it sleeps for. Any thread.
    bool wake() noexcept { return wake_before(0); }

    /// A descriptor that is readable when there is work or a deadline has come. Throws std::system_error.
    int descriptor();
    [[nodiscard]] bool has_descriptor() const noexcept {
        return descriptors_.load(base::memory_order_acquire) != nullptr;  // Pairs with the release in descriptor().
    }
    /// The owner leaves its loop: the descriptor takes over.
    void set_descriptor(time_point deadline, bool ready) noexcept;
    /// The owner is back.
    void drain_descriptor() noexcept;

 private:
    static constexpr ordinal awake = 0;

    struct descriptors {
        base::event_descriptor event;
        base::timer_descriptor timer;
        base::descriptor either = base::watch_either(event.get(), timer.get());
    };

    void ring() noexcept;

    alignas(base::cache_line_bytes) base::atomic<ordinal> published_{awake};
    base::futex_word bell_{0};
    std::uint32_t ticket_ = 0;  ///< What the bell showed when the owner published.
    std::unique_ptr<descriptors> own_descriptors_;
    base::atomic<const descriptors*> descriptors_{nullptr};  ///< Null: nobody has asked for one.
};

}  // namespace chime::inline v0::detail
