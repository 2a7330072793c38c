// SPDX-License-Identifier: MIT
#pragma once

#include "shim/engine/memory.hpp"
#include "shim/engine/sites.hpp"

#include <chime/time.hpp>

#include <boost/context/detail/fcontext.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace chime::shim {

/// The variables of a thread: what the linker has put into the program's thread-local block, and the exceptions that the
/// C++ library keeps for each thread. All fibers run on one thread, so they are exchanged whenever another fiber runs.
class thread_image {
 public:
    thread_image();
    /// As they are when a thread begins.
    void reset() noexcept;
    void save() noexcept;
    void restore() const noexcept;

    /// Is it a variable that every thread has for itself?
    [[nodiscard]] static bool contains(const void* address) noexcept;

 private:
    std::vector<std::byte> variables_;
    std::byte exceptions_[16] = {};
};

/// Memory for the stack of a fiber, with a page below it that nobody may touch.
class fiber_stack {
 public:
    static constexpr std::size_t bytes = std::size_t{256} << 10U;

    fiber_stack();
    fiber_stack(const fiber_stack&) = delete;
    fiber_stack& operator=(const fiber_stack&) = delete;
    ~fiber_stack();

    [[nodiscard]] std::byte* top() const noexcept { return bottom_ + bytes; }

 private:
    std::byte* bottom_;
};

/// One thread of an execution.
struct fiber {
    enum class state : std::uint8_t { ready, blocked, finished };

    unsigned number = 0;
    std::string name;
    state now = state::finished;
    boost::context::detail::fcontext_t context = nullptr;
    std::function<void()> body;

    memory_view view;
    const site* last = nullptr;  ///< Where it has touched something that others see.
    std::uint32_t steps = 0;     ///< Its own choice points so far: together with the number, a place in any schedule.

    bool is_near = false;  ///< It is about to touch something that the strategy cares for.

    // While it tries again and again.
    bool has_looked = false;   ///< Since time went on.
    bool sees_newest = false;  ///< The next load.

    // While it is blocked.
    const void* waits_for = nullptr;
    const char* waits_how = "";
    time_point deadline = never;
    bool may_wake_falsely = false;
    bool has_timed_out = false;

    /// Who goes to sleep on this thread; null: nobody that anybody looks after. See execution::sleep_watch.
    struct {
        void* worker = nullptr;
        const void* is_stopped = nullptr;
    } sleeps_as;

    bool* next_wake_is_lost = nullptr;  ///< Where to note that it was; null: it arrives.

    struct destructor {
        void (*destroy)(void*);
        void* object;
    };
    std::vector<destructor> at_end;  ///< Of thread-local variables.
    thread_image image;
    fiber_stack stack;
};

}  // namespace chime::shim
