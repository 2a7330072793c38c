// SPDX-License-Identifier: MIT
#pragma once

#include <chime/detail/export.hpp>
#include <chime/detail/promise.hpp>
#include <chime/time.hpp>
#include <chime/timer_handle.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>

// How awaitables suspend a task: begin, start whatever may wake it, commit. See src/worker for the other side.

namespace chime {
inline namespace v0 {
namespace detail {

class crew;

/// Names one suspension of one task, for who may wake it.
struct wake_key {
    crew* home = nullptr;
    std::uint32_t slot = 0;
    std::uint64_t epoch = 0;
};

/// When a wait ends by itself.
struct wait_limit {
    std::int64_t count = 0;  ///< Nanoseconds from now, or since the clock's epoch.
    /// Not a bool: it is stored and loaded together with the count, and a processor does not forward one byte to eight.
    std::uint64_t is_absolute = 0;

    [[nodiscard]] static wait_limit after(duration delay) noexcept { return {delay.count(), 0}; }
    [[nodiscard]] static wait_limit at(time_point time) noexcept { return {time.time_since_epoch().count(), 1}; }
};

/// Suspends the current task of `home` (null: of whatever loop is running) until `limit`, or until somebody wakes it.
/// False: it goes on at once. Throws std::system_error: errc::not_in_a_task.
CHIME_API bool sleep_task(crew* home, wait_limit limit, std::coroutine_handle<> frame, promise_base* promise);

/// Begins a suspension: from now on it can be woken. Throws std::system_error: errc::not_in_a_task.
CHIME_API wake_key begin_suspension(crew* home, std::coroutine_handle<> frame, promise_base* promise);
/// Gives the suspension that has begun a deadline.
CHIME_API timer_handle limit_suspension(const wake_key& key, wait_limit limit);
/// The last step. True: suspended, and nothing of the frame may be touched any more. False: woken already, it goes on.
CHIME_API bool commit_suspension(const wake_key& key) noexcept;
/// The suspension that has begun does not happen.
CHIME_API void abandon_suspension(const wake_key& key) noexcept;

/// What comes of a hop that is refused.
enum class if_refused { throws, answers };

/// Puts the current task behind all that are ready, on `home` (null: on whatever loop is running). False: `home` takes
/// nobody, and the task goes on where it is. Throws std::system_error: errc::not_in_a_task; also, if it shall, why it was
/// refused.
CHIME_API bool yield_task(crew* home, std::coroutine_handle<> frame, promise_base* promise, if_refused then);

/// Makes the task ready, if it still is in that suspension: `cancelled` or not is what it will be told. Any thread.
CHIME_API void wake_task(const wake_key& key, wake_reason reason) noexcept;

/// Why the current task was resumed; to be asked first thing.
[[nodiscard]] CHIME_API wake_reason reason_of_wake() noexcept;

/// Something that ends once, and the one task that may wait for it. Any thread may complete it.
class CHIME_API completion {
 public:
    completion() noexcept;
    completion(const completion&) = delete;
    completion& operator=(const completion&) = delete;
    ~completion();

    /// Wakes the waiter, if there is one. The second time it does nothing.
    void complete() noexcept;
    [[nodiscard]] bool is_complete() const noexcept;

    enum class answer { will_wake, is_complete, is_taken };
    /// From now on `key` is woken by complete(); unless it is complete already, or somebody else waits for it.
    [[nodiscard]] answer subscribe(const wake_key& key) noexcept;
    /// Afterwards complete() touches nothing of the waiter's any more.
    void unsubscribe() noexcept;

 private:
    struct state;
    [[nodiscard]] state& its() const noexcept;
    alignas(8) mutable std::byte storage_[80];
};

/// Throws std::system_error: errc::empty_task.
[[noreturn]] CHIME_API void refuse_second_waiter();

/// Awaits a completion; lives in the frame of whoever waits.
class completion_awaiter {
 public:
    explicit completion_awaiter(completion& awaited) noexcept : awaited_(&awaited) {}
    completion_awaiter(const completion_awaiter&) = delete;
    completion_awaiter& operator=(const completion_awaiter&) = delete;
    ~completion_awaiter() {
        if (is_subscribed_) awaited_->unsubscribe();
    }

    [[nodiscard]] bool await_ready() const noexcept { return awaited_->is_complete(); }

    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> frame) {
        const wake_key key = begin_suspension(nullptr, frame, promise_of(frame));
        const completion::answer answer = awaited_->subscribe(key);
        if (answer != completion::answer::will_wake) {
            abandon_suspension(key);
            if (answer == completion::answer::is_taken) refuse_second_waiter();
            return false;
        }
        is_subscribed_ = true;
        return commit_suspension(key);
    }

    void await_resume() noexcept {
        if (is_subscribed_) awaited_->unsubscribe();
        is_subscribed_ = false;
    }

 private:
    completion* awaited_;
    bool is_subscribed_ = false;
};

}  // namespace detail
}  // namespace v0
}  // namespace chime
