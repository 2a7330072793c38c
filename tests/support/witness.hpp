// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <thread>
#include <utility>

namespace chime::test {

/// What became of a witness: how often it ended, and on which thread the last time.
struct witness_report {
    std::atomic<int> ends{0};
    std::atomic<std::thread::id> thread{};
};

/// Something to be captured by a closure or a frame: reports its end, unless it was moved from.
class witness {
 public:
    explicit witness(witness_report& report) noexcept : report_(&report) {}
    witness(witness&& other) noexcept : report_(std::exchange(other.report_, nullptr)) {}
    witness& operator=(witness&&) = delete;
    ~witness() {
        if (report_ == nullptr) return;
        report_->thread.store(std::this_thread::get_id());
        report_->ends.fetch_add(1);
    }

    /// False: it was moved from.
    [[nodiscard]] bool is_here() const noexcept { return report_ != nullptr; }

 private:
    witness_report* report_;
};

}  // namespace chime::test
