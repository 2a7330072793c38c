// SPDX-License-Identifier: MIT
#include "worker/crew.hpp"

#include "base/check.hpp"
#include "base/thread.hpp"
#include "worker/hot_paths.hpp"

#include <algorithm>
#include <new>

// Who is in the crew, how what concerns a worker gets to it, and who is woken when there is work.

namespace chime::inline v0::detail {

namespace {

std::uint32_t next_identity() noexcept {
    static base::atomic<std::uint32_t> last{0};
    std::uint32_t identity = 0;
    // Relaxed: only uniqueness matters.
    while (identity == 0) identity = last.fetch_add(1, base::memory_order_relaxed) + 1;
    return identity;
}

}  // namespace

[[gnu::tls_model("initial-exec")]] thread_local constinit const crew::visit* crew::visit::innermost = nullptr;

crew::crew(const worker_settings& settings, std::uint32_t seats)
    : settings_(settings),
      clock_(settings.clock),
      identity_(next_identity()),
      fork_(base::fork_number()),
      is_alone_(seats == 1),
      callbacks_(settings.max_timers, settings.huge_pages),
      slots_(settings.max_tasks, settings.huge_pages),
      units_(callbacks_, slots_),
      seats_(std::make_unique<base::atomic<worker*>[]>(seats)) {
    if (settings.records_locations) {
        locations_ = base::mapping((settings.max_timers + settings.max_tasks) * sizeof(base::atomic<const void*>));
        if (!locations_.commit(locations_.reserved_bytes())) throw std::bad_alloc();
    }
    owned_.reserve(seats);
    CHIME_CHECK(add_worker() != nullptr, "the first seat is free");
}

/// A clock of the user's. If it runs back, time stands for us until it is there again: what has fired would be early, and
/// what is armed would be compared with a time that has not come. Acquire and release: who sees a time has seen what was
/// done before it came.
time_point crew::followed_now() const noexcept {
    const duration::rep shown = clock_->now().time_since_epoch().count();
    duration::rep latest = latest_.load(base::memory_order_acquire);
    while (latest < shown && !latest_.compare_exchange_weak(latest, shown, base::memory_order_acq_rel)) {}
    return time_point{duration{std::max(latest, shown)}};
}

// --- Who is there.

worker* crew::add_worker() {
    const std::uint32_t count = seat_count();
    for (std::uint32_t seat = 0; seat < count; ++seat) {
        worker& left = at(seat);
        if (!left.inbox_.is_closed() || left.is_driven() || !is_seat_clean(seat)) continue;
        left.inbox_.open();
        return &left;
    }
    if (count == owned_.capacity()) return nullptr;
    owned_.push_back(std::make_unique<worker>(*this, count));
    seats_[count].store(owned_.back().get(), base::memory_order_release);  // Pairs with await().
    seat_count_.store(count + 1, base::memory_order_seq_cst);              // See seat_count().
    // Relaxed: it is a matter of degree. Together no more than a quarter of all records wait in inboxes, and in one no more
    // than fit into the nearest cache.
    constexpr std::size_t near = 512;
    const std::size_t share = settings_.max_timers / 4 / (count + 1);
    most_undrained_.store(static_cast<std::uint32_t>(std::clamp<std::size_t>(share, 1, near)),
                          base::memory_order_relaxed);
    return owned_.back().get();
}

/// A thread that has linked or locked a unit of a worker before that retired may still be about to push it: whoever has
/// the seat by then would take it for one of its own [retire: scan].
bool crew::is_seat_clean(std::uint32_t seat) const noexcept {
    const auto is_held = [&](const timed& its, state_word busy_state) {
        // Relaxed: the worker that has left has looked at all of them before, and is_driven() has acquired its end.
        const state_word value = its.state.load(base::memory_order_relaxed);
        return its.owner() == seat &&
               ((value & (linked_flag | locked_flag)) != 0 || (value & state_mask) == busy_state);
    };
    for (std::size_t position = 0; position < callbacks_.size(); ++position) {
        if (is_held(callbacks_.at(callback_pool::index_of(position)), static_cast<state_word>(timer_state::ending)))
            return false;
    }
    for (std::size_t position = 0; position < slots_.size(); ++position) {
        if (is_held(slots_.at(slot_pool::index_of(position)), state_mask)) return false;  // No phase is called that.
    }
    return true;
}

/// Who is given what a thread arms that is no worker: always the same one, so that its timers keep their
/// order [retire: choose].
worker& crew::choose_worker() const noexcept {
    if (is_alone_) return first();
    const std::uint32_t count = seat_count();
    const std::uint32_t start = settings_.is_simulated ? 0 : base::thread_number() % count;
    for (std::uint32_t step = 0; step < count; ++step) {
        worker& candidate = at((start + step) % count);
        if (!candidate.inbox_.is_closed()) return candidate;
    }
    return at(start);  // They are leaving this moment; the merge queue takes it.
}

// --- How what concerns a worker gets to it.

/// To whoever comes first.
void crew::send_to_all(unit_index index, timed& its) noexcept {
    its.set_owner(timed::nobody);
    outside_.add(outside_count::migrated, 1);
    // Whoever takes it from there becomes its owner, so it has none until then [retire: merge].
    static_cast<void>(merged_.push(units_, index));
    // After the push: whoever goes to sleep has seen it, or is seen [retire: call].
    call_somebody();
}

/// The same as at(), for who has read the seat in a unit that somebody else has linked, and has acquired nothing by it: who has
/// just joined may be its owner already, and not be seen in his seat. Acquire: pairs with the release in add_worker().
worker& crew::await(std::uint32_t seat) const noexcept {
    for (;;) {
        if (worker* const seated = seats_[seat].load(base::memory_order_acquire)) [[likely]]
            return *seated;
        base::yield_this_thread();
    }
}

/// It is linked already, by somebody else: whoever drains it reads the word as it is then, but must not sleep through
/// it [park: linked already].
void crew::ring_owner(const timed& its, ordinal deadline) noexcept {
    const std::uint32_t seat = its.owner();
    if (seat == timed::nobody) {
        call_somebody();
    } else {
        await(seat).ring_for(deadline, 0);
    }
}

/// Somebody leaves, and gives out no number from here on. Relaxed: see worker::take_commands().
void crew::raise_left_number(std::uint64_t least) noexcept {
    std::uint64_t before = left_number_.load(base::memory_order_relaxed);
    // Said before the inbox is closed [retire: announce number].
    while (before < least && !left_number_.compare_exchange_weak(before, least, base::memory_order_relaxed)) {}
}

void crew::inject(unit_index index) noexcept {
    // Visible before the look at who is parked [steal: inject].
    injection_.push(units_, index);
    call_somebody();
}

/// There is work for anybody: if somebody sleeps and nobody looks for work, one is woken to look. Whoever looks and finds
/// nothing looks once more after he has announced to sleep; whoever finds something, and was the last to look, passes the
/// call on. While we call we count as one who looks, so whoever has more work meanwhile leaves it to us: if nobody could be
/// woken, it is on us to look again. So either somebody is awake who will see it, or somebody is called (models/steal.pml).
void crew::call_somebody() noexcept {
    do {
        // Seq_cst: comes after the work was made visible; pairs with publishing in
        // worker::begin_park() [steal: look for parked].
        if (parked_.load(base::memory_order_seq_cst) == 0) return;
        // Seq_cst, also if it fails: pairs with the end of a search, which is followed by a look at
        // everything [steal: count caller].
        std::uint32_t nobody_searches = 0;
        if (!searching_.compare_exchange_strong(nobody_searches, 1, base::memory_order_seq_cst)) return;
        const std::uint32_t count = seat_count();
        for (std::uint32_t seat = 0; seat < count; ++seat) {
            worker& candidate = at(seat);
            // Marked before it is woken, so that it finds the call [steal: call].
            if (!candidate.is_parked() || candidate.is_called_.exchange(true, base::memory_order_seq_cst)) continue;
            if (candidate.wake_up()) return;
            // It was awake after all. If it has taken the call meanwhile, it looks. Relaxed: it says nothing
            // else [steal: take call back].
            if (!candidate.is_called_.exchange(false, base::memory_order_relaxed)) return;
        }
        // Who was parked and is awake now, but has not said so yet, is no reason to try again [steal: end call].
    } while (searching_.fetch_sub(1, base::memory_order_seq_cst) == 1 && has_ready_work() && is_anybody_parked());
}

/// One after the other (models/steal.pml) [steal: look for sleepers].
bool crew::is_anybody_parked() const noexcept {
    const std::uint32_t count = seat_count();
    for (std::uint32_t seat = 0; seat < count; ++seat) {
        if (at(seat).is_parked()) return true;
    }
    return false;
}

bool crew::has_unowned_work() const noexcept {
    return !injection_.is_empty() || !merged_.is_empty() || !merged_later_.is_empty();
}

/// All that anybody may take (models/steal.pml) [steal: look for work].
bool crew::has_ready_work() const noexcept {
    if (has_unowned_work()) return true;
    const std::uint32_t count = seat_count();
    for (std::uint32_t seat = 0; seat < count; ++seat) {
        if (!at(seat).ring_.is_empty()) return true;
    }
    return false;
}

bool crew::is_below_us() const noexcept {
    // Threads of the parent have left their marks there, and any thread of the child may have got the place of one of those.
    const bool has_only_own_marks = !is_in_forked_child();
    const std::uint32_t count = seat_count();
    for (std::uint32_t seat = 0; seat < count; ++seat) {
        if (has_only_own_marks ? at(seat).is_below() : at(seat).is_current()) return true;
    }
    return false;
}

/// A thread that is no worker has found nothing free; true: it is worth to try again. Throws std::bad_alloc.
bool crew::tidy_up() const {
    bool is_worth_it = false;
    const std::uint32_t count = seat_count();
    for (std::uint32_t seat = 0; seat < count; ++seat) is_worth_it = at(seat).tidy_up_elsewhere() || is_worth_it;
    return is_worth_it;
}

/// A worker has found nothing free; others may have plenty, and give it away in their next turns.
void crew::ask_for_free_units() const noexcept {
    const std::uint32_t count = seat_count();
    for (std::uint32_t seat = 0; seat < count; ++seat) {
        worker& each = at(seat);
        if (&each == here()) continue;
        each.is_wanted_.store(true, base::memory_order_seq_cst);  // Before the look at whether it sleeps.
        each.wake_up();
    }
}

void crew::stop_timers() noexcept {
    const visit visiting(*this);
    // Said before anybody is woken for it [park: stop timers].
    is_stopped_.store(true, base::memory_order_seq_cst);
    const std::uint32_t count = seat_count();
    for (std::uint32_t seat = 0; seat < count; ++seat) at(seat).wake_up();
}

// --- Work that only counts.

void crew::add_work() const noexcept {
    // Relaxed: more work is no reason to wake anybody. Who is sent it has seen it counted, because the push releases; and
    // who drops it does so after it was added, or has heard of it.
    if (is_alone_) first().foreign_work_.fetch_add(1, base::memory_order_relaxed);
}

void crew::add_guard() noexcept {
    guards_.fetch_add(1, base::memory_order_relaxed);  // It is printed, and looked at when all have gone.
    add_work();
}

void crew::drop_guard() noexcept {
    const visit visiting(*this);
    guards_.fetch_sub(1, base::memory_order_relaxed);
    drop_work();
}

void crew::add_outside_work() const noexcept {
    first().outside_work_.fetch_add(1, base::memory_order_relaxed);  // As in add_work().
    add_work();
}

void crew::drop_outside_work() const noexcept {
    const bool was_last = first().outside_work_.fetch_sub(1, base::memory_order_seq_cst) == 1;
    drop_work();
    if (was_last && clock_ != nullptr) first().wake_up();  // It may be that time can go on now.
}

}  // namespace chime::inline v0::detail
