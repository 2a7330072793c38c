// SPDX-License-Identifier: MIT
#pragma once

#include <chime/detail/closure.hpp>
#include <chime/detail/export.hpp>
#include <chime/detail/frame_memory.hpp>
#include <chime/detail/suspension.hpp>
#include <chime/error.hpp>

#include <atomic>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace chime {
inline namespace v0 {

class cpu_pool;

namespace detail {

/// A job, and what became of it. Shared by the pool and whoever awaits it.
class CHIME_API pool_job_base {
 public:
    pool_job_base() noexcept = default;
    pool_job_base(const pool_job_base&) = delete;
    pool_job_base& operator=(const pool_job_base&) = delete;

    void add_reference() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    void drop_reference() noexcept {
        // Acquire and release: whoever deletes it sees what the other one did before it let go.
        if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

    /// Whoever comes first may take what the job has left. Throws std::system_error: errc::empty_task.
    void take_once() {
        // Relaxed: it only tells the second from the first, who has seen the end of the job before.
        if (is_taken_.exchange(true, std::memory_order_relaxed)) {
            refuse(errc::empty_task, "chime::pool_job: what the job has left was taken before; await a job once");
        }
    }

    /// Does the work. Never throws: what the function throws is kept.
    virtual void run() noexcept = 0;
    /// The function is not needed any more; nobody has run it if there is no result.
    virtual void drop_function() noexcept = 0;

    completion ended;
    pool_job_base* next = nullptr;  ///< In the pool's queue.

 protected:
    virtual ~pool_job_base() = default;

 private:
    std::atomic<std::uint32_t> references_{1};
    std::atomic<bool> is_taken_{false};
};

template <class Function, class Result>
class pool_job_state;

[[noreturn]] inline void refuse_dropped() {
    refuse(errc::cancelled, "chime::pool_job: the job was dropped with its context before it was run");
}

/// The part that the awaiter sees.
template <class Result>
class pool_job_result : public pool_job_base {
 public:
    Result take() {
        take_once();
        if (failure_) std::rethrow_exception(std::move(failure_));
        if (!value_) refuse_dropped();
        Result result = std::move(*value_);
        value_.reset();
        return result;
    }

 protected:
    template <class Function>
    void run_with(Function& function) noexcept {
        try {
            value_.emplace(std::invoke(function));
        } catch (...) {
            failure_ = std::current_exception();
        }
    }

    std::optional<Result> value_;
    std::exception_ptr failure_;
};

template <>
class pool_job_result<void> : public pool_job_base {
 public:
    void take() {
        take_once();
        if (failure_) std::rethrow_exception(std::move(failure_));
        if (!is_done_) refuse_dropped();
    }

 protected:
    template <class Function>
    void run_with(Function& function) noexcept {
        try {
            std::invoke(function);
            is_done_ = true;
        } catch (...) {
            failure_ = std::current_exception();
        }
    }

    bool is_done_ = false;
    std::exception_ptr failure_;
};

template <class Function, class Result>
class pool_job_state final : public pool_job_result<Result> {
 public:
    template <class Source>
    pool_job_state(std::in_place_t, Source&& source) : function_(std::in_place, std::forward<Source>(source)) {}

    static_assert(alignof(Function) <= frame_alignment && alignof(pool_job_result<Result>) <= frame_alignment,
                  "a job and its result must not be aligned more strictly than a frame");
    static void* operator new(std::size_t bytes) { return take_frame(bytes); }
    static void operator delete(void* memory, std::size_t bytes) noexcept { give_frame(memory, bytes); }

    void run() noexcept override { this->run_with(*function_); }  // NOLINT(bugprone-unchecked-optional-access)
    void drop_function() noexcept override { function_.reset(); }

 private:
    std::optional<Function> function_;
};

}  // namespace detail

/// A function that runs in a cpu_pool. Await it for its result, or its exception: the task continues on its own loop.
/// Dropping it lets the job run to its end unwatched. Move-only; await it once.
template <class Result>
class [[nodiscard("await the job for its result; cast it to void to let it run unwatched")]] pool_job {
 public:
    pool_job(pool_job && other) noexcept : job_(std::exchange(other.job_, nullptr)) {}
    pool_job& operator=(pool_job&& other) noexcept {
        std::swap(job_, other.job_);
        return *this;
    }
    ~pool_job() {
        if (job_ != nullptr) job_->drop_reference();
    }

    class awaiter {
     public:
        explicit awaiter(detail::pool_job_result<Result>& job) noexcept : job_(job), wait_(job.ended) {}

        [[nodiscard]] bool await_ready() const noexcept { return wait_.await_ready(); }
        template <class Promise>
        bool await_suspend(std::coroutine_handle<Promise> frame) {
            return wait_.await_suspend(frame);
        }
        Result await_resume() {
            wait_.await_resume();
            return job_.take();
        }

     private:
        detail::pool_job_result<Result>& job_;
        detail::completion_awaiter wait_;
    };

    /// Throws what the function has thrown; std::system_error: errc::cancelled if the pool was destroyed before it ran,
    /// errc::empty_task if it was moved away, or awaited before, whether it gives a value or not; or if another task waits
    /// for it.
    [[nodiscard]] awaiter operator co_await() const {
        if (job_ == nullptr) detail::refuse(errc::empty_task, "chime::pool_job: there is no job to wait for");
        return awaiter(*job_);
    }

    [[nodiscard]] bool is_done() const noexcept {
        return job_ != nullptr && job_->ended.is_complete();
    }

 private:
    friend cpu_pool;
    explicit pool_job(detail::pool_job_result<Result> * job) noexcept : job_(job) {}

    detail::pool_job_result<Result>* job_;
};

/// Threads for heavy work, so that the loop stays free. They are started with the first job, one per processor.
///
///     auto job = ctx.cpu_pool().submit([&] { return compress(page); });
///     const auto small = co_await job;   // Continues on the loop.
///
/// Give the job a name, as above: g++ 12 destroys a lambda with captures twice if it is made inside of the co_await
/// expression, as in `co_await pool.submit([page] { … })`.
///
/// Belongs to a context. submit() from any thread. A context that is destroyed waits for jobs that run and drops those
/// that wait.
class cpu_pool {
 public:
    cpu_pool(const cpu_pool&) = delete;
    cpu_pool& operator=(const cpu_pool&) = delete;

    /// Runs `function` on one of the threads. Jobs begin in the order of submission.
    ///
    /// Throws std::system_error: errc::empty_function, errc::stopped while the context is being destroyed, or that no
    /// thread could be started; std::bad_alloc; what moving the function throws.
    template <class Function>
    requires std::invocable < std::decay_t<Function>
    & > auto submit(Function&& function) {
        detail::require_function(function, "chime::cpu_pool::submit");
        open();
        return enter(std::forward<Function>(function));
    }

    /// Like submit(), but when the context is being destroyed, or no thread could be started, it gives nothing and has not
    /// touched `function`.
    template <class Function>
    requires std::invocable < std::decay_t<Function>
    & > [[nodiscard]] auto try_submit(Function&& function)
            -> std::optional<pool_job<std::invoke_result_t<std::decay_t<Function>&>>> {
        detail::require_function(function, "chime::cpu_pool::try_submit");
        if (!try_open()) return std::nullopt;
        return enter(std::forward<Function>(function));
    }

    /// How many threads there are; none before the first job.
    [[nodiscard]] CHIME_API unsigned thread_count() const noexcept;

 private:
    friend class io_context;
    struct state;

    explicit cpu_pool(std::unique_ptr<state> made) noexcept;
    CHIME_API ~cpu_pool();

    /// Makes a job of a function, now that nothing can be refused any more.
    template <class Function>
    auto enter(Function&& function) {
        using stored = std::decay_t<Function>;
        using result = std::invoke_result_t<stored&>;
        static_assert(
            !requires { typename result::promise_type; },
            "this job returns a task, which the pool would not run: give the pool a plain function, or spawn the task");
        static_assert(!std::is_reference_v<result>,
                      "a job gives a value; return a pointer or a std::reference_wrapper");
        pool_job<result> job(
            new detail::pool_job_state<stored, result>(std::in_place, std::forward<Function>(function)));
        enqueue(*job.job_);
        return job;
    }

    CHIME_API void open();
    [[nodiscard]] CHIME_API bool try_open();
    CHIME_API void enqueue(detail::pool_job_base& job) noexcept;
    void close() noexcept;
    [[nodiscard]] bool has_threads() const noexcept;

    std::unique_ptr<state> state_;
};

}  // namespace v0
}  // namespace chime
