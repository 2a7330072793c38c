// SPDX-License-Identifier: MIT
#pragma once

#include "shim/engine/sync.hpp"

#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/timers.hpp>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

// Small contexts, and what is noted down about their callbacks.

namespace chime::test {

/// What has become of some callbacks. No step, whoever counts.
class account {
 public:
    void note_run(time_point when) noexcept {
        ran_.add();
        last_run_ns_.add(when.time_since_epoch().count() - last_run_ns_.count());
    }
    void note_end() noexcept { destroyed_.add(); }

    [[nodiscard]] std::int64_t ran() const noexcept { return ran_.count(); }
    [[nodiscard]] std::int64_t destroyed() const noexcept { return destroyed_.count(); }
    [[nodiscard]] time_point last_run() const noexcept { return time_point{duration{last_run_ns_.count()}}; }

    void require_ran(std::uint64_t times) const {
        shim::require_equal(static_cast<std::uint64_t>(ran_.count()), times, "callbacks that have run");
    }
    void require_ended(std::uint64_t runs, std::uint64_t ends) const {
        require_ran(runs);
        shim::require_equal(static_cast<std::uint64_t>(destroyed_.count()), ends, "closures that were destroyed");
    }

 private:
    shim::tally ran_;
    shim::tally destroyed_;
    shim::tally last_run_ns_;
};

/// A closure that may run at certain times only, and is destroyed once. Its members are plain: whoever runs or destroys
/// it must know of whoever made it.
template <bool IsTimed>
class watched_callback {
 public:
    watched_callback(account& notes, time_point first, time_point last) noexcept
        : notes_(&notes), first_(first), last_(last) {}
    watched_callback(watched_callback&& other) noexcept
        : notes_(std::exchange(other.notes_, nullptr)), first_(other.first_), last_(other.last_) {}
    watched_callback& operator=(watched_callback&&) = delete;
    ~watched_callback() {
        if (notes_ != nullptr) notes_->note_end();
    }

    void operator()() {
        shim::require(notes_ != nullptr, "what runs was not destroyed");
        const time_point now = shim::now();
        if (IsTimed) shim::require(now >= first_ && now <= last_, "it runs at its deadline, neither earlier nor later");
        notes_->note_run(now);
    }

 private:
    account* notes_;
    time_point first_;
    time_point last_;
};

[[nodiscard]] inline watched_callback<true> exact_callback(account& notes, time_point deadline) {
    return {notes, deadline, deadline};
}
/// At any of these, or in between.
[[nodiscard]] inline watched_callback<true> callback_at(account& notes, std::initializer_list<time_point> deadlines) {
    return {notes, std::min(deadlines), std::max(deadlines)};
}
[[nodiscard]] inline watched_callback<false> any_callback(account& notes) {
    return {notes, {}, {}};
}

/// A closure that takes its time to end: its number is 1 meanwhile, and then 2.
class slow_end {
 public:
    explicit slow_end(int& shared) noexcept : shared_(&shared) {}
    slow_end(slow_end&& other) noexcept : shared_(std::exchange(other.shared_, nullptr)) {}
    slow_end& operator=(slow_end&&) = delete;
    ~slow_end() {
        if (shared_ == nullptr) return;
        *shared_ = 1;
        shim::yield();
        *shared_ = 2;
    }
    void operator()() const {}

 private:
    int* shared_;
};

/// The ledger, for when nothing is going on and something may have been late.
inline void require_ledger_of_late(const timer_stats& sums) {
    shim::require_equal(sums.fired + sums.cancelled + sums.pending, sums.armed, "L1: fired, cancelled and pending");
    shim::require_equal(sums.resumed() + sums.destroyed + sums.waiting, sums.suspensions, "L2: ends of suspensions");
    shim::require_equal(sums.adopted, sums.migrated, "L7: adopted");
    shim::require_equal(sums.pending, 0, "pending in the end");
    shim::require_equal(sums.tasks, 0, "tasks in the end");
    shim::require_equal(sums.waiting, 0, "waiting in the end");
}

/// The ledger, for when nothing is going on.
inline void require_ledger(const timer_stats& sums) {
    require_ledger_of_late(sums);
    shim::require(sums.lateness.max == std::chrono::nanoseconds::zero(), "L5: nothing is late");
}

/// A context that is quickly made.
class small_loop {
 public:
    small_loop() : context_(small()) {}
    explicit small_loop(const io_context_config& config) : context_(config) {}

    [[nodiscard]] static io_context_config small() {
        io_context_config config;
        config.max_timers = 128;
        config.max_tasks = 128;
        config.huge_pages = false;
        return config;
    }

    io_context* operator->() noexcept { return &context_; }
    io_context& operator*() noexcept { return context_; }

    void require_rest() {
        shim::require(context_.is_out_of_work(), "it is out of work in the end");
        require_ledger(context_.timers().stats());
    }

 private:
    io_context context_;
};

/// A runtime that is quickly made.
[[nodiscard]] inline runtime_config small_runtime(unsigned workers) {
    runtime_config config;
    config.workers = workers;
    config.max_timers = 128;
    config.max_tasks = 128;
    config.huge_pages = false;
    return config;
}

}  // namespace chime::test
