// SPDX-License-Identifier: MIT
#pragma once

#include "soak/jumping_clock.hpp"
#include "soak/promises.hpp"

#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/timers.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <thread>

namespace chime::soak {

/// Runs a loop until it is out of work and nobody wants to keep it. Short of memory, it goes on as soon as there is some.
class tireless_loop {
 public:
    tireless_loop(io_context& driven, promises& kept)
        : guard_(driven.make_work_guard()), thread_([&driven, &kept] { run(driven, kept); }) {}
    tireless_loop(const tireless_loop&) = delete;
    tireless_loop& operator=(const tireless_loop&) = delete;
    ~tireless_loop() {
        guard_.reset();
        thread_.join();
    }

 private:
    static void run(io_context& driven, promises& kept) noexcept;

    io_context::work_guard guard_;
    std::thread thread_;
};

/// What is put under load: two loops on threads of their own, and a runtime. The first two homes are the loops; the second of
/// them follows a clock that jumps.
class rig {
 public:
    static constexpr std::size_t homes = 3;
    static constexpr std::size_t jumping_home = 1;

    explicit rig(promises& kept);

    [[nodiscard]] timers& timers_of(std::size_t home) noexcept {
        return home < loops_.size() ? loops_[home]->timers() : workers_.timers();
    }
    [[nodiscard]] io_context& loop(std::size_t which) noexcept { return *loops_[which]; }
    [[nodiscard]] runtime& workers() noexcept { return workers_; }
    [[nodiscard]] jumping_clock& jumping() noexcept { return jumping_; }
    /// The time of that home.
    [[nodiscard]] time_point now(std::size_t home) noexcept { return timers_of(home).now(); }

    [[nodiscard]] std::uint64_t pending() const;

    /// Nobody calls any more: waits until everything has come to its end, and looks at the ledger. False: something is left.
    bool settle(std::chrono::seconds patience);

    /// Ends everything, and looks at what is left.
    void finish();

 private:
    void check(const timer_stats& sums, std::uint64_t most_stale, std::size_t home);

    promises& kept_;
    jumping_clock jumping_;
    std::array<std::unique_ptr<io_context>, homes - 1> loops_;
    std::array<std::unique_ptr<tireless_loop>, homes - 1> threads_;
    runtime workers_;
};

}  // namespace chime::soak
