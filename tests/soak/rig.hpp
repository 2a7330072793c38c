// SPDX-License-Identifier: MIT
#pragma once

#include "runtime/watchdog.hpp"
#include "soak/promises.hpp"

#include <chime/io_context.hpp>
#include <chime/runtime.hpp>
#include <chime/timers.hpp>

#include <array>
#include <cstddef>
#include <memory>

namespace chime::soak {

/// What is put under load: two loops on threads of their own, and a runtime. The first two homes are the loops.
class rig {
 public:
    static constexpr std::size_t homes = 3;

    explicit rig(promises& kept);

    [[nodiscard]] timers& timers_of(std::size_t home) noexcept {
        return home < loops_.size() ? loops_[home]->timers() : workers_.timers();
    }
    [[nodiscard]] io_context& loop(std::size_t which) noexcept { return *loops_[which]; }
    [[nodiscard]] runtime& workers() noexcept { return workers_; }

    [[nodiscard]] std::uint64_t pending() const;

    /// Nobody calls any more: waits until everything has come to its end, and looks at the ledger. False: something is left.
    bool settle(std::chrono::seconds patience);

    /// Ends everything, and looks at what is left.
    void finish();

 private:
    void check(const timer_stats& sums, std::uint64_t most_stale, std::size_t home);

    promises& kept_;
    std::array<std::unique_ptr<io_context>, homes - 1> loops_;
    std::array<std::unique_ptr<test::loop_thread>, homes - 1> threads_;
    runtime workers_;
};

}  // namespace chime::soak
