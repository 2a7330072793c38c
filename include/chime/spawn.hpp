// SPDX-License-Identifier: MIT
#pragma once

#include <chime/detail/as_task.hpp>
#include <chime/detail/context_access.hpp>
#include <chime/detail/export.hpp>
#include <chime/detail/frame_maker.hpp>
#include <chime/detail/task_control.hpp>
#include <chime/error.hpp>
#include <chime/io_context.hpp>
#include <chime/task.hpp>

#include <concepts>
#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>
#include <variant>

namespace chime {
inline namespace v0 {

namespace detail {

struct join_access;

/// Gives a frame to a loop. Throws std::system_error: errc::too_many_tasks, errc::stopped; std::bad_alloc. The frame is
/// still the caller's then, and so is his reference to `control`.
CHIME_API void spawn_frame(crew& home, std::coroutine_handle<> root, task_control* control, const void* where);

/// Gives the frame that `maker` makes to a loop that has a place for it. False: refused, and nothing was made.
/// Throws what making it throws; std::bad_alloc.
[[nodiscard]] CHIME_API bool try_spawn_frame(crew& home, const frame_maker& maker, const void* where);

/// Throws std::system_error: errc::too_many_tasks or errc::stopped, as it is.
[[noreturn]] CHIME_API void refuse_spawn(crew& home, const char* call);

template <class T>
void spawn_task(crew& home, task<T> spawned, task_control* control, const void* where) {
    if (!spawned) {
        refuse(errc::empty_task, "chime::spawn: there is nothing to spawn: the task was moved away or spawned before");
    }
    const auto frame = task_access::release(spawned);
    try {
        spawn_frame(home, frame, control, where);
    } catch (...) {
        frame.destroy();
        throw;
    }
}

/// What a task leaves for whoever joins it.
template <class T>
class join_state final : public task_control {
 public:
    using kept = std::conditional_t<std::is_void_v<T>, std::monostate,
                                    std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, T>>;

    static_assert(alignof(kept) <= frame_alignment, "a result must not be aligned more strictly than a frame");
    static void* operator new(std::size_t bytes) { return take_frame(bytes); }
    static void operator delete(void* memory, std::size_t bytes) noexcept { give_frame(memory, bytes); }

    T take() {
        if (std::exchange(is_taken, true)) {
            refuse(errc::empty_task, "chime::join_handle: the result was taken before; await a handle once");
        }
        if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
        if (!value) refuse(errc::cancelled, "chime::join_handle: the task was destroyed before it came to its end");
        if constexpr (std::is_reference_v<T>) {
            return **value;
        } else if constexpr (!std::is_void_v<T>) {
            return std::move(*value);
        }
    }

    std::optional<kept> value;
    std::exception_ptr failure;
    bool is_taken = false;
};

template <class T>
task<> run_joined(task<T> body, join_state<T>& state) {
    try {
        if constexpr (std::is_void_v<T>) {
            co_await std::move(body);
            state.value.emplace();
        } else if constexpr (std::is_reference_v<T>) {
            state.value.emplace(std::addressof(co_await std::move(body)));
        } else {
            state.value.emplace(co_await std::move(body));
        }
    } catch (...) {
        if (state.is_detached()) throw;  // Nobody will ask: it goes where exceptions of detached tasks go.
        state.failure = std::current_exception();
    }
}

}  // namespace detail

/// A task that was spawned. `co_await` it, once, for its result or exception; cancel it; or drop it, and it runs on its
/// own. An exception that nobody asked for by then is lost with the handle, one that comes later goes out of run().
/// Move-only. May outlive the context. One thread at a time, except cancel().
template <class T = void>
class [[nodiscard("dropping a join_handle detaches the task; use spawn_detached for that")]] join_handle {
 public:
    join_handle() noexcept = default;
    join_handle(join_handle && other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    join_handle& operator=(join_handle&& other) noexcept {
        if (this != &other) {
            detach();
            state_ = std::exchange(other.state_, nullptr);
        }
        return *this;
    }
    ~join_handle() {
        detach();
    }

    /// False: it was moved away, detached, or never was one.
    explicit operator bool() const noexcept {
        return state_ != nullptr;
    }

    /// Has the task come to its end?
    [[nodiscard]] bool is_done() const noexcept {
        return state_ != nullptr && state_->ended.is_complete();
    }

    /// Asks the task to end: the sleep that it is in, and every sleep from now on, ends at once with `cancelled`. What it
    /// makes of that is its own affair. False: it has ended. Any thread.
    bool cancel() noexcept {
        return state_ != nullptr && state_->cancel();
    }

    /// Lets the task run on its own; an exception of it goes out of run().
    void detach() noexcept {
        if (state_ == nullptr) return;
        state_->detach();
        std::exchange(state_, nullptr)->drop_reference();
    }

    class awaiter {
     public:
        explicit awaiter(detail::join_state<T>& state) noexcept : state_(state), wait_(state.ended) {}

        [[nodiscard]] bool await_ready() const noexcept { return wait_.await_ready(); }
        template <class Promise>
        bool await_suspend(std::coroutine_handle<Promise> frame) {
            state_.refuse_itself();
            return wait_.await_suspend(frame);
        }
        T await_resume() {
            wait_.await_resume();
            return state_.take();
        }

     private:
        detail::join_state<T>& state_;
        detail::completion_awaiter wait_;
    };

    /// Blocks this thread until the task has come to its end; for code that is not a task, while another thread runs it.
    /// Throws std::system_error: errc::empty_task for an empty handle, errc::on_a_worker on a thread that may have to
    /// run the task itself: there, await it.
    void wait() const {
        if (state_ == nullptr) detail::refuse(errc::empty_task, "chime::join_handle: there is no task to wait for");
        state_->wait();
    }

    /// The result of a task that is_done(), or its exception; for code that is not a task. Throws std::system_error:
    /// errc::empty_task if it is not done, or was asked before; errc::cancelled if it was destroyed with its context.
    T take() {
        if (state_ == nullptr) detail::refuse(errc::empty_task, "chime::join_handle::take: this handle has no task");
        if (!is_done()) {
            detail::refuse(
                errc::empty_task,
                "chime::join_handle::take: the task has not ended yet; co_await the handle, or wait() for it on a "
                "thread outside");
        }
        return state_->take();
    }

    /// Waits for the end of the task, from any task of any context. Gives its result, or throws what it has thrown;
    /// std::system_error: errc::cancelled if it was destroyed with its context, errc::empty_task for an empty handle,
    /// errc::on_a_worker in that very task, which would wait for ever.
    [[nodiscard]] awaiter operator co_await() const {
        if (state_ == nullptr) detail::refuse(errc::empty_task, "chime::join_handle: there is no task to wait for");
        return awaiter(*state_);
    }

 private:
    template <detail::task_home Context, class Awaitable>
    friend auto spawn(Context & context, Awaitable && awaitable, const std::source_location& where);

    friend struct detail::join_access;

    explicit join_handle(detail::join_state<T> * state) noexcept : state_(state) {}

    detail::join_state<T>* state_ = nullptr;
};

namespace detail {

struct join_access {
    template <class T>
    [[nodiscard]] static task_control& control_of(join_handle<T>& joined) noexcept {
        return *joined.state_;
    }
    template <class T>
    [[nodiscard]] static join_state<T>& state_of(join_handle<T>& joined) noexcept {
        return *joined.state_;
    }
    /// Of a task that is yet to be spawned. Throws std::bad_alloc.
    template <class T>
    [[nodiscard]] static join_handle<T> make() {
        return join_handle<T>(new join_state<T>);
    }
};

/// Spawns a task that leaves its result in `state`. Throws like spawn(); then nothing has changed.
template <class T>
void spawn_into(crew& home, task<T> body, join_state<T>& state, const void* where) {
    task<> driver = run_joined<T>(std::move(body), state);
    state.where = where;
    state.add_reference();  // For the slot.
    try {
        spawn_task(home, std::move(driver), &state, where);
    } catch (...) {
        state.drop_reference();
        throw;
    }
}

}  // namespace detail

/// Starts a task, or anything that can be awaited, on an io_context or a runtime. It begins to run in run() or on a worker,
/// not here. Any thread.
///
/// Throws std::system_error: errc::too_many_tasks, errc::stopped, errc::empty_task; std::bad_alloc. Then nothing runs, and
/// what was to be spawned is destroyed.
template <detail::task_home Context, class Awaitable>
auto spawn(Context& context, Awaitable&& awaitable,
           const std::source_location& where = std::source_location::current()) {
    auto body = detail::as_task(std::forward<Awaitable>(awaitable));
    using result = typename decltype(body)::value_type;
    if (!body)
        detail::refuse(errc::empty_task, "chime::spawn: there is nothing to spawn: the task was moved away before");
    auto joined = detail::join_access::make<result>();
    detail::spawn_into(detail::context_access::home_of(context), std::move(body), detail::join_access::state_of(joined),
                       detail::pack(where));
    return joined;
}

/// On something that only leads to a context: the compiler says what to write.
template <detail::leads_to_home Context, class Awaitable>
join_handle<> spawn(Context&, Awaitable&&) {
    detail::ask_for_home<Context>();
    return {};
}

/// Like spawn(), but when there are too many tasks, or the context was stopped, it gives nothing and has not touched
/// `awaitable`: it can be spawned later, or elsewhere.
///
///     if (auto joined = chime::try_spawn(ctx, std::move(work))) open.push_back(std::move(*joined));
///
/// Throws std::system_error (errc::empty_task): that is a mistake, and no shortage; std::bad_alloc, and then what was to be
/// spawned may be destroyed.
template <detail::task_home Context, class Awaitable>
[[nodiscard]] std::optional<join_handle<detail::spawned_result_t<Awaitable>>>
try_spawn(Context& context, Awaitable&& awaitable,
          const std::source_location& where = std::source_location::current()) {
    using result = detail::spawned_result_t<Awaitable>;
    detail::require_task(awaitable);
    std::optional<join_handle<result>> joined;
    auto make = [&] {
        joined.emplace(detail::join_access::make<result>());
        auto& state = detail::join_access::state_of(*joined);
        task<> driver = detail::run_joined<result>(detail::as_task(std::forward<Awaitable>(awaitable)), state);
        state.where = detail::pack(where);
        state.add_reference();  // For the slot.
        return detail::made_frame{detail::task_access::release(driver), &state};
    };
    static_cast<void>(detail::try_spawn_frame(detail::context_access::home_of(context), detail::frame_maker(make),
                                              detail::pack(where)));
    return joined;
}

namespace detail {

struct reference_drop {
    void operator()(task_control* held) const noexcept { held->drop_reference(); }
};

/// Spawns a task, and before it one that waits for it: it may go to another context, and who waits stays. Neither runs until
/// both have their places.
template <class T>
join_handle<T> spawn_beside_waiter(io_context& context, task<T> body, const std::source_location& where) {
    if (!body) refuse(errc::empty_task, "chime::block_on: there is nothing to run: the task was moved away before");
    join_handle<T> awaited = join_access::make<T>();
    join_state<T>& state = join_access::state_of(awaited);
    // Who waits may run on another thread, and be through before we are.
    state.add_reference();
    const std::unique_ptr<join_state<T>, reference_drop> still_ours(&state);
    join_handle<T> joined = chime::spawn(context, await_once(std::move(awaited)), where);
    try {
        spawn_into(context_access::home_of(context), std::move(body), state, pack(where));
    } catch (...) {
        state.failure = std::current_exception();  // Who waits brings it to who asks.
        state.end();
    }
    return joined;
}

}  // namespace detail

/// Runs a context on this thread until a task, or anything that can be awaited, has come to its end; gives its result.
/// Whatever else there is to do on the context meanwhile is done, too.
///
///     const int n = chime::block_on(ctx, answer());
///
/// It takes two places of io_context_config::max_tasks: the task may go to another context, and who waits for it stays.
/// If there are not two, it is refused, and the task is destroyed.
///
/// Throws what the task throws, what callbacks throw, and like spawn() and io_context::run(); std::system_error:
/// errc::stopped if the context is stopped, errc::already_running. Then nothing of the task has run.
///
/// If stop() comes while it runs (errc::stopped), or it leaves with an exception of somebody else, the task lives on and
/// goes on with the next run(): keep alive what it refers to.
template <class Awaitable>
decltype(auto) block_on(io_context& context, Awaitable&& awaitable,
                        const std::source_location& where = std::source_location::current()) {
    if (context.is_running()) {
        detail::refuse(
            errc::already_running,
            "chime::block_on: the context is running already: in a task co_await it; on another thread spawn() it "
            "and wait() for the handle");
    }
    if (context.is_stopped()) {
        detail::refuse(errc::stopped,
                       "chime::block_on: the context is stopped; restart() it before. Nothing of the task has run");
    }
    auto body = detail::as_task(std::forward<Awaitable>(awaitable));
    auto joined = detail::spawn_beside_waiter(context, std::move(body), where);
    while (!joined.is_done()) {
        if (context.run_one() == 0 && !joined.is_done()) {
            detail::refuse(errc::stopped,
                           "chime::block_on: the context was stopped before the task has ended; restart() it");
        }
    }
    return joined.take();
}

/// On a runtime, or something that has a context inside: the compiler says what to write.
template <class Context, class Awaitable>
requires(detail::leads_to_home<Context> ||
         (detail::task_home<Context> && !std::convertible_to<Context&, io_context&>)) void block_on(Context&,
                                                                                                    Awaitable&&) {
    static_assert(sizeof(Context) == 0,
                  "chime::block_on runs an io_context; a runtime, a virtual_context and a simulated runtime have "
                  "their own: rt.block_on(task), ctx.block_on(task), sim->block_on(task)");
}

/// Starts a task, or anything that can be awaited, that nobody will join. An exception of it goes out of run(), or to
/// runtime_config::on_exception. One frame and one slot, nothing else. Throws like spawn().
template <detail::task_home Context, class Awaitable>
void spawn_detached(Context& context, Awaitable&& awaitable,
                    const std::source_location& where = std::source_location::current()) {
    detail::spawn_task(detail::context_access::home_of(context), detail::as_task(std::forward<Awaitable>(awaitable)),
                       nullptr, detail::pack(where));
}

template <detail::leads_to_home Context, class Awaitable>
void spawn_detached(Context&, Awaitable&&) {
    detail::ask_for_home<Context>();
}

/// Like spawn_detached(), but when there are too many tasks, or the context was stopped, it gives false and has not touched
/// `awaitable`. Throws like try_spawn().
template <detail::task_home Context, class Awaitable>
[[nodiscard]] bool try_spawn_detached(Context& context, Awaitable&& awaitable,
                                      const std::source_location& where = std::source_location::current()) {
    detail::require_task(awaitable);
    auto make = [&] {
        auto body = detail::as_task(std::forward<Awaitable>(awaitable));
        return detail::made_frame{detail::task_access::release(body)};
    };
    return detail::try_spawn_frame(detail::context_access::home_of(context), detail::frame_maker(make),
                                   detail::pack(where));
}

}  // namespace v0
}  // namespace chime
