// SPDX-License-Identifier: MIT
#pragma once

#include <chime/detail/export.hpp>
#include <chime/detail/suspension.hpp>

#include <cstddef>
#include <cstdint>

namespace chime {
inline namespace v0 {
namespace detail {

/// What a task and its join_handle share: where the task is now, whether it has ended, who waits for that.
/// Counted references; any thread.
class CHIME_API task_control {
 public:
    task_control() noexcept;
    task_control(const task_control&) = delete;
    task_control& operator=(const task_control&) = delete;

    void add_reference() noexcept;
    /// Deletes it if this was the last one.
    void drop_reference() noexcept;

    /// Asks the task to end: what it sleeps in, and every sleep from now on, ends at once with `cancelled`.
    /// False: it has ended.
    bool cancel() noexcept;

    /// The task has moved to this slot, or has none any more.
    void moved_to(crew* home, std::uint32_t slot) noexcept;

    /// The task has come to its end, or was destroyed: tells whoever waits.
    void end() noexcept;
    /// Blocks until then. Throws std::system_error: errc::on_a_worker.
    void wait();
    /// For who is about to await the end. Throws std::system_error: errc::on_a_worker, if it is the task itself.
    void refuse_itself() const;

    /// Nobody will ask for the result.
    void detach() noexcept;
    [[nodiscard]] bool is_detached() const noexcept;

    completion ended;
    const void* where = nullptr;  ///< Where it was spawned.

 protected:
    virtual ~task_control();

 private:
    struct state;
    [[nodiscard]] state& its() const noexcept;
    alignas(8) mutable std::byte storage_[72];
};

}  // namespace detail
}  // namespace v0
}  // namespace chime
