// SPDX-License-Identifier: MIT
#include "runtime/metronome.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <utility>

namespace chime::inline v0::detail {

metronome::metronome(crew& watched, settings wanted) : watched_(watched), settings_(std::move(wanted)) {
    sights_.reserve(crew::most_seats);
    overdue_.reserve(crew::most_seats);
}

void metronome::start() {
    thread_ = base::thread([this] { run(); });
}

void metronome::stop() noexcept {
    is_stopped_.store(true, base::memory_order_seq_cst);
    wake();
    if (thread_.joinable()) thread_.join();
}

void metronome::wake() noexcept {
    bell_.fetch_add(1, base::memory_order_seq_cst);
    base::futex_wake_one(bell_);
}

bool metronome::all_sleep() const noexcept {
    const std::uint32_t count = watched_.seat_count();
    for (std::uint32_t seat = 0; seat < count; ++seat) {
        const worker& each = watched_.at(seat);
        if (each.is_driven() && !each.is_parked()) return false;
    }
    return true;
}

void metronome::run() noexcept {
    base::name_this_thread("chime-metronome");
    running_on_.store(base::this_thread_mark(), base::memory_order_relaxed);  // Only this thread asks for it.
    for (;;) {
        // Before the look at whether it is over: whoever stops us says so first and rings then, so either we see that or the
        // bell is another one than what we have seen.
        const std::uint32_t seen = bell_.load(base::memory_order_acquire);
        if (is_stopped_.load(base::memory_order_acquire)) break;
        // Says that it goes to sleep, then looks whether anybody is awake; whoever wakes up looks the other way round.
        is_silent_.store(true, base::memory_order_seq_cst);
        if (all_sleep()) {
            static_cast<void>(base::futex_wait(bell_, seen));
            is_silent_.store(false, base::memory_order_relaxed);
            continue;
        }
        is_silent_.store(false, base::memory_order_relaxed);
        beat(base::now());
        static_cast<void>(base::futex_wait(bell_, seen, deadline_after(base::now(), settings_.period)));
    }
    // Relaxed, as above: the next thread may get the place of this one, and its mark, once this one was joined.
    running_on_.store(nullptr, base::memory_order_relaxed);
}

void metronome::beat(time_point now) {
    beats_.fetch_add(1, base::memory_order_relaxed);
    const std::uint32_t count = watched_.seat_count();
    if (sights_.size() < count) sights_.resize(count, sight{.since = now, .next_report = settings_.stuck_after});
    const time_point shown = watched_.now();  // By the clock of the runtime, which may be another one than ours.
    bool has_news = false;
    for (std::uint32_t seat = 0; seat < count; ++seat) {
        worker& each = watched_.at(seat);
        each.show_time(shown);
        sight& last = sights_[seat];
        const std::uint64_t progress = each.progress();
        if (progress != last.progress || progress % 2 == 0) {
            last = {.progress = progress, .since = now, .next_report = settings_.stuck_after};
        } else if (now - last.since >= last.next_report) {
            // Once more when it has taken twice as long: what comes due meanwhile is late, too.
            last.next_report = 2 * std::min(now - last.since, std::chrono::nanoseconds::max() / 2);
            last.is_news = has_news = true;
            reports_.fetch_add(1, base::memory_order_relaxed);
            each.count_stuck_report();
        }
    }
    if (has_news && settings_.on_stuck) report_stuck(now, to_ordinal(shown));
    if (settings_.on_beat) settings_.on_beat();
}

/// One walk over all that is pending, however many are stuck.
void metronome::report_stuck(time_point now, ordinal shown) {
    overdue_.assign(sights_.size(), {});
    watched_.find_overdue(shown, overdue_);
    for (std::size_t seat = 0; seat < sights_.size(); ++seat) {
        if (!std::exchange(sights_[seat].is_news, false)) continue;
        const overdue_timers& late = overdue_[seat];
        constexpr auto most_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds::max().count());
        const std::uint64_t late_ns = late.count != 0 ? std::min(shown - late.first, most_ns) : 0;
        settings_.on_stuck({.seat = static_cast<std::uint32_t>(seat),
                            .since = now - sights_[seat].since,
                            .overdue = std::chrono::nanoseconds{static_cast<std::int64_t>(late_ns)},
                            .overdue_timers = late.count});
    }
}

}  // namespace chime::inline v0::detail
