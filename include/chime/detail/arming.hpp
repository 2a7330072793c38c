// SPDX-License-Identifier: MIT
#pragma once

#include <chime/cancel.hpp>
#include <chime/detail/closure.hpp>
#include <chime/detail/export.hpp>
#include <chime/detail/suspension.hpp>
#include <chime/time.hpp>
#include <chime/timer_handle.hpp>

#include <bit>
#include <concepts>
#include <cstdint>
#include <exception>
#include <source_location>

namespace chime {
inline namespace v0 {
namespace detail {

/// A record that a closure is being put into.
struct arming {
    void* closure = nullptr;  ///< Null: refused.
    std::uint32_t index = 0;
    std::uint32_t records_location = 0;  ///< Not zero: it shall be known where it was armed.
};

/// A handle in two registers, so that it is looked at and stored as two words and not as three.
struct packed_handle {
    std::uint64_t life = 0;
    std::uint64_t place = 0;  ///< Index and runtime; zero: it names nothing.

    [[nodiscard]] timer_handle unpacked() const noexcept { return std::bit_cast<timer_handle>(*this); }
};
static_assert(sizeof(packed_handle) == sizeof(timer_handle) && std::endian::native == std::endian::little);

/// All that makes a timer of a closure.
struct arming_details {
    const closure_operations* operations = nullptr;
    wait_limit limit{};
    std::int64_t period_ns = 0;  ///< Zero: once.
    missed_ticks policy = missed_ticks::skip;
    const cancel_token* token = nullptr;  ///< Null: nobody cancels it that way.
    const void* where = nullptr;
};

/// What stands where every() expects a policy, and is none.
template <class Given>
concept no_policy = !std::convertible_to<Given, missed_ticks>;

template <class Given>
[[noreturn]] void ask_for_policy() {
    static_assert(!no_policy<Given>,
                  "say behind the period what becomes of ticks that could not run in time: every(period, "
                  "chime::missed_ticks::skip, function), or ::burst, or ::delay");
    std::terminate();  // So that the compiler has nothing more to say.
}

/// A source location in the eight bytes that it really has.
[[nodiscard]] inline const void* pack(const std::source_location& where) noexcept {
    if constexpr (sizeof(std::source_location) == sizeof(const void*)) {
        return std::bit_cast<const void*>(where);
    } else {
        return nullptr;
    }
}

CHIME_API arming begin_arming(crew& home);
/// All of it in one step, for a closure that is nothing but bytes, by the thread of a worker. A handle that names nothing:
/// it takes more than one step, and nothing was done.
[[nodiscard]] CHIME_API packed_handle try_arm_image(crew& home, const closure_operations& operations,
                                                    std::int64_t delay_ns, std::uint64_t first_word,
                                                    std::uint64_t second_word, std::uint64_t third_word) noexcept;
CHIME_API void abandon_arming(crew& home, const arming& begun) noexcept;
CHIME_API timer_handle arm(crew& home, std::uint32_t index, const closure_operations& operations,
                           wait_limit limit) noexcept;
CHIME_API timer_handle arm_with_extra(crew& home, const arming& begun, const arming_details& details);
CHIME_API void post(crew& home, const arming& begun, const closure_operations& operations) noexcept;
[[noreturn]] CHIME_API void refuse_arming(crew& home, const char* call);

}  // namespace detail
}  // namespace v0
}  // namespace chime
